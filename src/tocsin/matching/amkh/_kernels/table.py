"""The hash table: schemas under their rarest attribute, and buckets of subscriptions."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.amkh._kernels.drafting import frequency
from tocsin.matching.amkh.state import (
    BUCKET_BEFORE,
    BUCKET_COUNT,
    BUCKET_NEXT,
    FIELD,
    IN_BUCKET,
    LARGEST_BUCKET,
    LARGEST_LIST,
    LIST,
    LIST_CLASS,
    LIST_COUNT,
    MEMBERS,
    POSITION,
    SCHEMA,
    SCHEMA_BUCKET,
    SCHEMA_BUCKETS,
    SCHEMA_PIVOT,
    SCHEMA_PLACES,
    SCHEMA_POINTS,
    SCHEMA_POSITION,
    SCHEMA_SHARED,
    SCHEMA_SIZE,
    SINGLE,
    SIZE,
    SIZE_BITS,
    SPLIT,
    STAMP,
    Index,
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
    """Return what a schema adds to the coordinates of its subscriptions: nothing, in the paper's form."""
    return _mixed(schema) if index.settings[SPLIT] else np.uint64(0)


@helper
def bucket_key(index: Index, coordinate: int) -> int:
    """Return the number of the bucket for a coordinate."""
    count = index.settings[BUCKET_COUNT]
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
        same = keys[entry, SCHEMA_SIZE] == size
        for i in range(size):
            same = same and rows[keys[entry, SCHEMA_PLACES] + i, 0] == places[i]
        if same:
            keys[entry, SCHEMA_POINTS] += 1
            return entry
        salt += 1  # should the hash be the same by chance
        entry = hash_index.find(index.schemas, hashed, salt, 0)
    entry = hash_index.insert(index.schemas, hashed, salt, 0)
    row = keys[entry]
    row[SCHEMA_POINTS], row[SCHEMA_SIZE] = 1, size
    row[SCHEMA_BUCKET], row[SCHEMA_BUCKETS] = -1, 0
    row[SCHEMA_SHARED] = index.settings[SPLIT] == 0 or index.settings[BUCKET_COUNT] > 0
    row[SCHEMA_PLACES] = blocks.take(index.schema_places, class_of(size))
    signature, pivot, least = np.uint64(0), np.int64(0), np.inf
    for i in range(size):
        rows[row[SCHEMA_PLACES] + i, 0] = places[i]
        signature |= bit_of(places[i])
        often = frequency(state, index.places[places[i], FIELD])
        if often < least:
            pivot, least = places[i], often
    row[SCHEMA_PIVOT] = pivot
    _list(index, pivot, entry + SINGLE if size == 1 else entry, np.int64(signature))
    return entry


@helper
def _list(index: Index, pivot: int, schema: int, signature: int) -> None:
    """Put a schema into the list of its rarest attribute; one without attributes is in row 0's."""
    row = index.places[pivot]
    rows = index.schema_lists.rows
    if row[LIST] < 0:
        row[LIST_CLASS], row[LIST_COUNT] = 0, 0
        row[LIST] = blocks.take(index.schema_lists, np.int64(0))
    elif row[LIST_COUNT] == size_of(row[LIST_CLASS]):
        first = blocks.take(index.schema_lists, row[LIST_CLASS] + 1)
        for i in range(row[LIST_COUNT]):
            rows[first + i, 0] = rows[row[LIST] + i, 0]
            rows[first + i, 1] = rows[row[LIST] + i, 1]
        blocks.give(index.schema_lists, row[LIST], row[LIST_CLASS])
        row[LIST] = first
        row[LIST_CLASS] += 1
        index.tops[LARGEST_LIST] = max(index.tops[LARGEST_LIST], size_of(row[LIST_CLASS]))
    at = row[LIST] + row[LIST_COUNT]
    rows[at, 0], rows[at, 1] = signature, schema
    index.schemas.keys[schema & _SCHEMA, SCHEMA_POSITION] = row[LIST_COUNT]
    row[LIST_COUNT] += 1


@helper
def release_schema(index: Index, schema: int) -> None:
    """Count one point less of a schema, and forget it with the last."""
    keys = index.schemas.keys
    keys[schema, SCHEMA_POINTS] -= 1
    if keys[schema, SCHEMA_POINTS] > 0:
        return
    row, rows = index.places[keys[schema, SCHEMA_PIVOT]], index.schema_lists.rows
    row[LIST_COUNT] -= 1
    position, last = keys[schema, SCHEMA_POSITION], row[LIST] + row[LIST_COUNT]
    rows[row[LIST] + position, 0] = rows[last, 0]
    rows[row[LIST] + position, 1] = rows[last, 1]
    keys[rows[last, 1] & _SCHEMA, SCHEMA_POSITION] = position
    if row[LIST_COUNT] == 0:
        blocks.give(index.schema_lists, row[LIST], row[LIST_CLASS])
        row[LIST] = -1
    blocks.give(index.schema_places, keys[schema, SCHEMA_PLACES], class_of(keys[schema, SCHEMA_SIZE]))
    hash_index.remove(index.schemas, schema)


@helper
def put_member(index: Index, schema: int, key: int, signature: int, word: int) -> tuple[int, int]:
    """Add a member to a bucket, new or not; return the bucket and the member's position."""
    keys, rows = index.buckets.keys, index.members.rows
    entry = hash_index.find(index.buckets, key, 0, 0)
    if entry < 0:
        entry = hash_index.insert(index.buckets, key, 0, 0)
        keys[entry, STAMP], keys[entry, SCHEMA] = -1, -1
        keys[entry, MEMBERS] = blocks.take(index.members, np.int64(0))
        keys[entry, SIZE] = 0
        if index.schemas.keys[schema, SCHEMA_SHARED] == 0:
            _link(index, schema, entry)
    bucket = keys[entry]
    if bucket[SCHEMA] != schema:
        index.schemas.keys[schema, SCHEMA_SHARED] = 1
        if bucket[SCHEMA] >= 0:  # two coordinates are the same by chance
            index.schemas.keys[bucket[SCHEMA], SCHEMA_SHARED] = 1
            _unlink(index, entry)
    count, class_ = bucket[SIZE] >> SIZE_BITS, bucket[SIZE] & _CLASS
    if count == size_of(class_):
        first = blocks.take(index.members, class_ + 1)
        for i in range(count):
            rows[first + i, 0] = rows[bucket[MEMBERS] + i, 0]
            rows[first + i, 1] = rows[bucket[MEMBERS] + i, 1]
        blocks.give(index.members, bucket[MEMBERS], class_)
        bucket[MEMBERS] = first
        class_ += 1
        index.tops[LARGEST_BUCKET] = max(index.tops[LARGEST_BUCKET], size_of(class_))
    rows[bucket[MEMBERS] + count, 0] = signature
    rows[bucket[MEMBERS] + count, 1] = word
    bucket[SIZE] = ((count + 1) << SIZE_BITS) | class_
    return entry, count


@helper
def _link(index: Index, schema: int, entry: int) -> None:
    """Put a bucket on the list of those that are its schema's alone."""
    row, keys = index.schemas.keys[schema], index.buckets.keys
    keys[entry, SCHEMA], keys[entry, BUCKET_BEFORE] = schema, -1
    keys[entry, BUCKET_NEXT] = row[SCHEMA_BUCKET]
    if row[SCHEMA_BUCKET] >= 0:
        keys[row[SCHEMA_BUCKET], BUCKET_BEFORE] = entry
    row[SCHEMA_BUCKET] = entry
    row[SCHEMA_BUCKETS] += 1


@helper
def _unlink(index: Index, entry: int) -> None:
    bucket, keys = index.buckets.keys[entry], index.buckets.keys
    row = index.schemas.keys[bucket[SCHEMA]]
    before, following = bucket[BUCKET_BEFORE], bucket[BUCKET_NEXT]
    if before >= 0:
        keys[before, BUCKET_NEXT] = following
    else:
        row[SCHEMA_BUCKET] = following
    if following >= 0:
        keys[following, BUCKET_BEFORE] = before
    row[SCHEMA_BUCKETS] -= 1
    bucket[SCHEMA] = -1


@helper
def drop_member(index: Index, point: int) -> None:
    """Take a point out of its bucket: the last takes its place. A bucket that is empty is given up."""
    keys, rows = index.buckets.keys, index.members.rows
    entry, position = np.int64(index.points[point, IN_BUCKET]), np.int64(index.points[point, POSITION])
    bucket = keys[entry]
    count, class_ = (bucket[SIZE] >> SIZE_BITS) - 1, bucket[SIZE] & _CLASS
    last, at = bucket[MEMBERS] + count, bucket[MEMBERS] + position
    rows[at, 0], rows[at, 1] = rows[last, 0], rows[last, 1]
    index.points[rows[at, 1] & _POINT, POSITION] = position
    bucket[SIZE] = (count << SIZE_BITS) | class_
    if count > 0:
        return
    blocks.give(index.members, bucket[MEMBERS], class_)
    if bucket[SCHEMA] >= 0:
        _unlink(index, entry)
    hash_index.remove(index.buckets, entry)
