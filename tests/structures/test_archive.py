"""Archives, and the strings that are written to them as they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tocsin.model.errors import SavedError
from tocsin.structures.archive import ArchiveReader, write_archive
from tocsin.structures.batch_rows import BatchRows
from tocsin.structures.packed_strings import PackedStrings


def test_members_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "archive"
    numbers = np.arange(100_000, dtype=np.int32)[::3]
    size = write_archive(path, {"a": [1, "ü"]}, {"numbers": numbers, "bytes": b"\x00x" * 9})
    assert size == path.stat().st_size < numbers.nbytes
    with ArchiveReader(path) as archive:
        assert archive.about == {"a": [1, "ü"]}
        assert archive.bytes("bytes") == b"\x00x" * 9
        read = archive.array("numbers")
        assert (read.dtype, read.tolist()) == (numbers.dtype, numbers.tolist())
        with pytest.raises(SavedError, match="`bytes` is no array"):
            archive.array("bytes")
        with pytest.raises(SavedError, match="`other` cannot be read"):
            archive.bytes("other")


def test_a_link_stays_one_and_what_it_names_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_archive(link, {}, {})
    assert link.is_symlink()
    with ArchiveReader(target) as archive:
        assert archive.about == {}


def test_packed_strings_are_made_of_their_parts() -> None:
    packed = PackedStrings(["a", "größe", "", "\ud800"])
    assert list(PackedStrings.of_parts(packed.data, packed.offsets)) == list(packed)
    for offsets in ([0, 1], [1, 9], [0, 9, 3, len(packed.data)], []):
        with pytest.raises(ValueError, match="do not fit"):
            PackedStrings.of_parts(packed.data, np.array(offsets, dtype=np.int64))
    with pytest.raises(ValueError, match="do not fit"):
        PackedStrings.of_parts(b"ab", np.array([0.0, 2.0]))


def test_the_rows_of_a_batch_are_the_batch_itself_if_they_are_all_of_it() -> None:
    rows = BatchRows[PackedStrings]()
    batch = PackedStrings(["a", "b", "c"])
    rows.add(np.array([4, 2, 7]), batch)
    assert rows.rows_of(np.array([4, 2, 7])) is batch
    assert list(rows.rows_of(np.array([7, 4]))) == ["c", "a"]
    rows.add(np.array([0]), PackedStrings(["d"]))
    codes = rows.codes(np.array([4, 0, 7, 1, 99])).tolist()
    assert codes[0] == codes[2] != codes[1]
    assert codes[3:] == [-1, -1]
