"""Files that are written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tocsin.structures.whole_files import replacing


def test_a_file_is_replaced_when_all_is_written(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_a_failure_leaves_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail() -> None:
        with replacing(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "no folder" / "file"):
        pass


def test_a_link_stays_one(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"
