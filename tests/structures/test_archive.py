"""Archives, and the strings that are written to them as they are."""

from __future__ import annotations

import json
import pickle
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from tocsin.model.errors import SavedError
from tocsin.structures.archive import ArchiveReader, Parts, pack, unpack, write_archive
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


def some_parts() -> Parts:
    arrays = {
        "numbers": np.arange(1000, dtype=np.int32)[::3],
        "grid": np.arange(6.0).reshape(2, 3).T,
        "one": np.array(7, dtype=np.uint16),
        "none": np.empty((0, 3), dtype=np.bool_),
        "times": np.array(["2026-01-01", "NaT"], dtype="M8[us]"),
        "pairs": np.array([(1, 2.5)], dtype=[("a", "<i8"), ("b", "<f4")]),
        "swapped": np.array([1, 2], dtype=">i4"),
    }
    return Parts({"a": [1, "ü", None, 2**70]}, {**arrays, "text": "größe".encode(), "empty": b""})


def assert_equal(one: Parts, other: Parts) -> None:
    assert one.about == other.about
    assert list(one.members) == list(other.members)
    for name, member in one.members.items():
        found = other.members[name]
        if isinstance(member, bytes):
            assert found == member
        else:
            assert isinstance(found, np.ndarray)
            assert (found.dtype, found.shape) == (member.dtype, member.shape)
            assert found.tobytes() == member.tobytes()
            assert found.flags.writeable
            assert found.flags.c_contiguous
            assert found.ctypes.data % found.dtype.alignment == 0


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_parts_are_unpacked_as_they_were_packed(kind: type) -> None:
    parts = some_parts()
    packed = pack(parts)
    assert_equal(parts, unpack(kind(packed)))
    assert pack(unpack(packed)) == packed
    assert_equal(unpack(pack(Parts({}, {}))), Parts({}, {}))
    with pytest.raises(TypeError, match="`odd` is an array of Python objects"):
        pack(Parts({}, {"odd": np.array([None])}))


def test_joined_parts_are_taken_by_name() -> None:
    first, second = some_parts(), Parts({"x": 1}, {"numbers": np.arange(3), "in/ner": b"y"})
    joined = unpack(
        pack(Parts.join({"format": 2}, {"first": first, "second": second, "empty": Parts({}, {})}))
    )
    assert joined.about["format"] == 2
    assert_equal(first, joined.part("first"))
    assert_equal(second, joined.part("second"))
    assert_equal(joined.part("empty"), Parts({}, {}))
    nested = Parts.join({}, {"outer": joined})
    assert_equal(second, nested.part("outer").part("second"))
    assert second.array("numbers").tolist() == [0, 1, 2]
    assert second.bytes("in/ner") == b"y"
    for take in (second.array, second.bytes, second.part):
        with pytest.raises(SavedError, match=r"it has no .* `other`"):
            take("other")
    with pytest.raises(SavedError, match="no array `in/ner`"):
        second.array("in/ner")
    with pytest.raises(SavedError, match="no bytes `numbers`"):
        second.bytes("numbers")


def test_any_damage_to_packed_parts_is_found() -> None:
    packed = pack(some_parts())
    for at in range(len(packed)):
        damaged = bytearray(packed)
        damaged[at] ^= 1 << at % 8
        with pytest.raises(SavedError):
            unpack(damaged)
    for cut in range(len(packed)):
        with pytest.raises(SavedError):
            unpack(packed[:cut])
    with pytest.raises(SavedError, match="bytes follow its end"):
        unpack(packed + b"x")


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"x" * 100, pickle.dumps([1])])
def test_bytes_of_something_else_are_refused(data: bytes) -> None:
    with pytest.raises(SavedError, match="no state that Tocsin saved"):
        unpack(data)


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"about": {}},
        {"about": {}, "members": [["a", "<i8", [2], 0, 8]]},
        {"about": {}, "members": [["a", "|O", [1], 0, 8]]},
        {"about": {}, "members": [["a", None, None, 0, 9_999]]},
    ],
)
def test_packed_documents_that_do_not_fit_are_refused(document: object) -> None:
    head = json.dumps(document).encode()
    body = head + bytes(-(28 + len(head)) % 64) + bytes(64)
    rest = struct.pack("<QQ", 28 + len(body), len(head)) + body
    with pytest.raises(SavedError, match="no state that Tocsin saved"):
        unpack(b"TOCSIN\x00\x01" + struct.pack("<I", zlib.crc32(rest)) + rest)
    with pytest.raises(SavedError, match="another version of Tocsin"):
        unpack(b"TOCSIN\x00\x02" + struct.pack("<I", zlib.crc32(rest)) + rest)


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
