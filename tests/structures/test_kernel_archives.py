"""Kernels that another machine compiled are used, or refused by name."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tocsin.structures.kernel_archives import PORTABLE, target_environment

pytestmark = pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")

USE = """
import json, logging, sys
logging.basicConfig(stream=sys.stderr, level=logging.INFO)
from tocsin.structures import hash_index
from tocsin.structures.compile_log import compiled
index = hash_index.new_hash_index(2)
hash_index.insert(index, 5, 6, 0)
assert hash_index.find(index, 5, 6, 0) == 0
assert hash_index.find(index, 5, 7, 0) == -1
print(json.dumps([one.name for one in compiled()]))
"""
WRITE = """
import sys
from pathlib import Path
from tocsin.structures.folders import user_cache
from tocsin.structures.jit import compile_target, sources_digest
from tocsin.structures.kernel_archives import write_archive
write_archive(Path(sys.argv[1]), user_cache(), compile_target(), sources_digest())
"""


def run(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "TOCSIN_KERNELS": "", **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an archive for a portable processor, of what `USE` needs."""
    folder = tmp_path_factory.mktemp("archive")
    target = {"TOCSIN_CACHE_DIR": str(folder / "cache"), **target_environment(PORTABLE)}
    assert json.loads(run(USE, **target).stdout)
    run(WRITE, str(folder / "kernels.tar"), **target)
    return folder / "kernels.tar"


def use(archive: Path, cache: Path) -> tuple[list[str], str]:
    """Return what a process with an empty cache had to compile, and its log."""
    ended = run(USE, TOCSIN_CACHE_DIR=str(cache), TOCSIN_KERNELS=str(archive))
    return json.loads(ended.stdout), ended.stderr


def test_a_process_with_an_archive_compiles_nothing(archive: Path, tmp_path: Path) -> None:
    found, log = use(archive, tmp_path / "cache")
    assert found == []
    assert "compiling" not in log


def test_functions_that_are_kept_are_not_counted_as_to_be_compiled(archive: Path, tmp_path: Path) -> None:
    count = (
        "from tocsin.structures import hash_index, jit; print(jit.functions_to_compile(), len(jit._KERNELS))"
    )
    empty = run(count, TOCSIN_CACHE_DIR=str(tmp_path)).stdout.split()
    kept = run(count, TOCSIN_CACHE_DIR=str(tmp_path), TOCSIN_KERNELS=str(archive)).stdout.split()
    cached = {"TOCSIN_CACHE_DIR": str(archive.parent / "cache")}
    compiled = json.loads(run(USE, TOCSIN_CACHE_DIR=str(tmp_path / "cache")).stdout)
    assert empty[0] == empty[1]
    assert int(empty[0]) - int(kept[0]) == len(set(compiled))
    assert run(count, **cached).stdout.split() == kept


def test_the_extracted_folder_will_do(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "kernels", filter="data")
    assert use(tmp_path / "kernels", tmp_path / "cache")[0] == []


def test_an_archive_is_used_where_no_cache_can_be_written(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    assert use(archive, tmp_path / "file")[0] == []


def test_without_an_archive_it_compiles_and_says_so_once(tmp_path: Path) -> None:
    ended = run(USE, TOCSIN_CACHE_DIR=str(tmp_path))
    assert "tocsin.structures.hash_index.insert" in json.loads(ended.stdout)
    assert ended.stderr.count("compiling kernels") == 1


def rewritten(archive: Path, into: Path, change: Callable[[str, bytes], bytes]) -> Path:
    """Return a copy of an archive with changed files."""
    with tarfile.open(archive) as tar, tarfile.open(into, "w") as out:
        for member in tar.getmembers():
            found = tar.extractfile(member)
            assert found is not None
            content = change(member.name, found.read())
            member.size = len(content)
            out.addfile(member, io.BytesIO(content))
    return into


def manifest_with(**changes: Any) -> Callable[[str, bytes], bytes]:
    def change(name: str, content: bytes) -> bytes:
        if not name.endswith(".json"):
            return content
        return json.dumps(json.loads(content) | changes).encode()

    return change


def flip(name: str, content: bytes) -> bytes:
    return content if name.endswith(".json") else content[:-1] + bytes([content[-1] ^ 1])


TRIPLE = "riscv64-unknown-linux-gnu"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (flip, "is damaged"),
        (manifest_with(numba="0.1"), "compiled by Numba 0.1"),
        (manifest_with(sources="others"), "compiled from other sources"),
        (manifest_with(target=[TRIPLE, "generic", ""]), f"compiled for {TRIPLE}"),
        (manifest_with(target="x"), "cannot be read"),
    ],
)
def test_an_archive_that_is_no_use_is_refused_by_name(
    archive: Path, tmp_path: Path, change: Callable[[str, bytes], bytes], why: str
) -> None:
    bad = rewritten(archive, tmp_path / "bad.tar", change)
    found, log = use(bad, tmp_path / "cache")
    assert found  # work goes on
    assert str(bad) in log
    assert why in log


def test_a_processor_that_lacks_something_is_named(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as tar:
        found = tar.extractfile("tocsin-kernels.json")
        assert found is not None
        triple = json.loads(found.read())["target"][0]
    bad = rewritten(archive, tmp_path / "bad.tar", manifest_with(target=[triple, "future", "+avx9000"]))
    assert "this processor has no avx9000" in use(bad, tmp_path / "cache")[1]


def test_a_file_that_is_no_archive_is_refused_by_name(tmp_path: Path) -> None:
    bad = tmp_path / "bad.tar"
    bad.write_bytes(b"no tar")
    found, log = use(bad, tmp_path / "cache")
    assert found
    assert f"{bad} is not used: it cannot be read" in log


def test_an_archive_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    gone = tmp_path / "gone.tar"
    assert (
        f"{gone} is not used: it cannot be read: there is no such file or folder; "
        in use(gone, tmp_path / "one")[1]
    )
    empty = tmp_path / "empty"
    empty.mkdir()
    assert (
        f"{empty} is not used: it cannot be read: the folder has no tocsin-kernels.json; "
        in use(empty, tmp_path / "two")[1]
    )
