"""The hash table: schemas under their rarest attribute, and buckets of subscriptions."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.amkh._kernels.coordinates import frequency
from tocsin.matching.amkh.state import (
    SINGLE,
    SIZE_BITS,
    BucketColumn,
    HashPointColumn,
    HashSetting,
    Index,
    IndexTop,
    PlaceColumn,
    SchemaColumn,
    State,
)
from tocsin.matching.encoding.codes import Keys
from tocsin.structures import blocks, hash_index
from tocsin.structures.blocks import class_of, size_of
from tocsin.structures.jit import helper, wrapping_helper

_CLASS: Final = (1 << SIZE_BITS) - 1
_POINT: Final = 0xFFFFFFFF
_SCHEMA: Final = SINGLE - 1


@wrapping_helper
def _mixed(number: int) -> int:
    mixed = (np.uint64(number) + np.uint64(1)) * np.uint64(0xD6E8FEB86659FD93)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(32))


@helper
def bit_of(number: int) -> int:
    """Return the bit of a signature for an attribute."""
    return np.uint64(1) << (_mixed(number) >> np.uint64(58))


@helper
def schema_addend(index: Index, schema: int) -> int:
    """Return the addend of a schema to the coordinates of its subscriptions: the paper's is 0."""
    return _mixed(schema) if index.settings[HashSetting.SPLIT] else np.uint64(0)


@helper
def bucket_key(index: Index, coordinate: int) -> int:
    """Return the number of the bucket for a coordinate."""
    count = index.settings[HashSetting.BUCKET_COUNT]
    return np.int64(coordinate % np.uint64(count)) if count > 0 else np.int64(coordinate)


@wrapping_helper
def _hash_of(places: Keys, size: int) -> int:
    hashed = np.uint64(0)
    for i in range(size):
        hashed += _mixed(places[i])
    return np.int64(hashed >> np.uint64(1))


@helper
def use_schema(state: State, index: Index, places: Keys, size: int) -> int:
    """Count one more point of a schema, given by its attributes in ascending order; return its entry."""
    keys, rows = index.schemas.keys, index.schema_places.rows
    hashed, salt = _hash_of(places, size), np.int64(0)
    entry = hash_index.find(index.schemas, hashed, salt, 0)
    while entry >= 0:
        same = keys[entry, SchemaColumn.SIZE] == size
        for i in range(size):
            same = same and rows[keys[entry, SchemaColumn.PLACES] + i, 0] == places[i]
        if same:
            keys[entry, SchemaColumn.POINTS] += 1
            return entry
        salt += 1  # should the hash be the same by chance
        entry = hash_index.find(index.schemas, hashed, salt, 0)
    entry = hash_index.insert(index.schemas, hashed, salt, 0)
    row = keys[entry]
    row[SchemaColumn.POINTS], row[SchemaColumn.SIZE] = 1, size
    row[SchemaColumn.BUCKET], row[SchemaColumn.BUCKETS] = -1, 0
    row[SchemaColumn.SHARED] = (
        index.settings[HashSetting.SPLIT] == 0 or index.settings[HashSetting.BUCKET_COUNT] > 0
    )
    row[SchemaColumn.PLACES] = blocks.take(index.schema_places, class_of(size))
    signature, pivot, least = np.uint64(0), np.int64(0), np.inf
    for i in range(size):
        rows[row[SchemaColumn.PLACES] + i, 0] = places[i]
        signature |= bit_of(places[i])
        often = frequency(state, index.places[places[i], PlaceColumn.FIELD])
        if often < least:
            pivot, least = places[i], often
    row[SchemaColumn.PIVOT] = pivot
    _list(index, pivot, entry + SINGLE if size == 1 else entry, np.int64(signature))
    return entry


@helper
def _list(index: Index, pivot: int, schema: int, signature: int) -> None:
    """Put a schema into the list of its rarest attribute; one without attributes is in row 0's."""
    row = index.places[pivot]
    rows = index.schema_lists.rows
    if row[PlaceColumn.LIST] < 0:
        row[PlaceColumn.LIST_CLASS], row[PlaceColumn.LIST_COUNT] = 0, 0
        row[PlaceColumn.LIST] = blocks.take(index.schema_lists, np.int64(0))
    elif row[PlaceColumn.LIST_COUNT] == size_of(row[PlaceColumn.LIST_CLASS]):
        first = blocks.take(index.schema_lists, row[PlaceColumn.LIST_CLASS] + 1)
        for i in range(row[PlaceColumn.LIST_COUNT]):
            rows[first + i, 0] = rows[row[PlaceColumn.LIST] + i, 0]
            rows[first + i, 1] = rows[row[PlaceColumn.LIST] + i, 1]
        blocks.give(index.schema_lists, row[PlaceColumn.LIST], row[PlaceColumn.LIST_CLASS])
        row[PlaceColumn.LIST] = first
        row[PlaceColumn.LIST_CLASS] += 1
        index.tops[IndexTop.LARGEST_LIST] = max(
            index.tops[IndexTop.LARGEST_LIST], size_of(row[PlaceColumn.LIST_CLASS])
        )
    at = row[PlaceColumn.LIST] + row[PlaceColumn.LIST_COUNT]
    rows[at, 0], rows[at, 1] = signature, schema
    index.schemas.keys[schema & _SCHEMA, SchemaColumn.POSITION] = row[PlaceColumn.LIST_COUNT]
    row[PlaceColumn.LIST_COUNT] += 1


@helper
def release_schema(index: Index, schema: int) -> None:
    """Count one point less of a schema, and forget it with the last."""
    keys = index.schemas.keys
    keys[schema, SchemaColumn.POINTS] -= 1
    if keys[schema, SchemaColumn.POINTS] > 0:
        return
    row, rows = index.places[keys[schema, SchemaColumn.PIVOT]], index.schema_lists.rows
    row[PlaceColumn.LIST_COUNT] -= 1
    position, last = keys[schema, SchemaColumn.POSITION], row[PlaceColumn.LIST] + row[PlaceColumn.LIST_COUNT]
    rows[row[PlaceColumn.LIST] + position, 0] = rows[last, 0]
    rows[row[PlaceColumn.LIST] + position, 1] = rows[last, 1]
    keys[rows[last, 1] & _SCHEMA, SchemaColumn.POSITION] = position
    if row[PlaceColumn.LIST_COUNT] == 0:
        blocks.give(index.schema_lists, row[PlaceColumn.LIST], row[PlaceColumn.LIST_CLASS])
        row[PlaceColumn.LIST] = -1
    blocks.give(
        index.schema_places, keys[schema, SchemaColumn.PLACES], class_of(keys[schema, SchemaColumn.SIZE])
    )
    hash_index.remove(index.schemas, schema)


@helper
def put_member(index: Index, schema: int, key: int, signature: int, word: int) -> tuple[int, int]:
    """Add a member to a bucket, new or not; return the bucket and the member's position."""
    keys, rows = index.buckets.keys, index.members.rows
    entry = hash_index.find(index.buckets, key, 0, 0)
    if entry < 0:
        entry = hash_index.insert(index.buckets, key, 0, 0)
        keys[entry, BucketColumn.STAMP], keys[entry, BucketColumn.SCHEMA] = -1, -1
        keys[entry, BucketColumn.MEMBERS] = blocks.take(index.members, np.int64(0))
        keys[entry, BucketColumn.SIZE] = 0
        if index.schemas.keys[schema, SchemaColumn.SHARED] == 0:
            _link(index, schema, entry)
    bucket = keys[entry]
    if bucket[BucketColumn.SCHEMA] != schema:
        index.schemas.keys[schema, SchemaColumn.SHARED] = 1
        if bucket[BucketColumn.SCHEMA] >= 0:  # two coordinates are the same by chance
            index.schemas.keys[bucket[BucketColumn.SCHEMA], SchemaColumn.SHARED] = 1
            _unlink(index, entry)
    count, class_ = bucket[BucketColumn.SIZE] >> SIZE_BITS, bucket[BucketColumn.SIZE] & _CLASS
    if count == size_of(class_):
        first = blocks.take(index.members, class_ + 1)
        for i in range(count):
            rows[first + i, 0] = rows[bucket[BucketColumn.MEMBERS] + i, 0]
            rows[first + i, 1] = rows[bucket[BucketColumn.MEMBERS] + i, 1]
        blocks.give(index.members, bucket[BucketColumn.MEMBERS], class_)
        bucket[BucketColumn.MEMBERS] = first
        class_ += 1
        index.tops[IndexTop.LARGEST_BUCKET] = max(index.tops[IndexTop.LARGEST_BUCKET], size_of(class_))
    rows[bucket[BucketColumn.MEMBERS] + count, 0] = signature
    rows[bucket[BucketColumn.MEMBERS] + count, 1] = word
    bucket[BucketColumn.SIZE] = ((count + 1) << SIZE_BITS) | class_
    return entry, count


@helper
def _link(index: Index, schema: int, entry: int) -> None:
    """Add a bucket to the list of buckets that only its schema uses."""
    row, keys = index.schemas.keys[schema], index.buckets.keys
    keys[entry, BucketColumn.SCHEMA], keys[entry, BucketColumn.BEFORE] = schema, -1
    keys[entry, BucketColumn.NEXT] = row[SchemaColumn.BUCKET]
    if row[SchemaColumn.BUCKET] >= 0:
        keys[row[SchemaColumn.BUCKET], BucketColumn.BEFORE] = entry
    row[SchemaColumn.BUCKET] = entry
    row[SchemaColumn.BUCKETS] += 1


@helper
def _unlink(index: Index, entry: int) -> None:
    bucket, keys = index.buckets.keys[entry], index.buckets.keys
    row = index.schemas.keys[bucket[BucketColumn.SCHEMA]]
    before, following = bucket[BucketColumn.BEFORE], bucket[BucketColumn.NEXT]
    if before >= 0:
        keys[before, BucketColumn.NEXT] = following
    else:
        row[SchemaColumn.BUCKET] = following
    if following >= 0:
        keys[following, BucketColumn.BEFORE] = before
    row[SchemaColumn.BUCKETS] -= 1
    bucket[BucketColumn.SCHEMA] = -1


@helper
def drop_member(index: Index, point: int) -> None:
    """Take a point out of its bucket: the last takes its place. A bucket that is empty is given up."""
    keys, rows = index.buckets.keys, index.members.rows
    entry, position = (
        np.int64(index.points[point, HashPointColumn.BUCKET]),
        np.int64(index.points[point, HashPointColumn.POSITION]),
    )
    bucket = keys[entry]
    count, class_ = (bucket[BucketColumn.SIZE] >> SIZE_BITS) - 1, bucket[BucketColumn.SIZE] & _CLASS
    last, at = bucket[BucketColumn.MEMBERS] + count, bucket[BucketColumn.MEMBERS] + position
    rows[at, 0], rows[at, 1] = rows[last, 0], rows[last, 1]
    index.points[rows[at, 1] & _POINT, HashPointColumn.POSITION] = position
    bucket[BucketColumn.SIZE] = (count << SIZE_BITS) | class_
    if count > 0:
        return
    blocks.give(index.members, bucket[BucketColumn.MEMBERS], class_)
    if bucket[BucketColumn.SCHEMA] >= 0:
        _unlink(index, entry)
    hash_index.remove(index.buckets, entry)
