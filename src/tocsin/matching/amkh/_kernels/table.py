"""The hash table: schemas under their rarest attribute, and buckets of subscriptions."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.amkh import state as arrays
from tocsin.matching.amkh._kernels.coordinates import frequency
from tocsin.matching.amkh.state import Bucket, HashedAttribute, Index, IndexTop, Point, Schema, Setting, State
from tocsin.matching.encoding.codes import Keys
from tocsin.structures import blocks, hash_index, linked_lists
from tocsin.structures.blocks import class_of, copy_row, size_of
from tocsin.structures.hashing import hashed_again
from tocsin.structures.jit import helper, wrapping_helper

_CLASS: Final = (1 << arrays.SIZE_BITS) - 1
_BUCKET: Final = int(Schema.BUCKET)
_POINT: Final = 0xFFFFFFFF
_SCHEMA: Final = arrays.SINGLE - 1


@helper
def bit_of(number: int) -> int:
    """Return the bit of a signature for an attribute."""
    return np.uint64(1) << (hashed_again(number) >> np.uint64(58))


@helper
def schema_addend(index: Index, schema: int) -> int:
    """Return the addend of a schema to the coordinates of its subscriptions: the paper's is 0."""
    return hashed_again(schema) if index.settings[Setting.SPLIT] else np.uint64(0)


@helper
def bucket_key(index: Index, coordinate: int) -> int:
    """Return the number of the bucket for a coordinate."""
    count = index.settings[Setting.BUCKET_COUNT]
    return np.int64(coordinate % np.uint64(count)) if count > 0 else np.int64(coordinate)


@wrapping_helper
def _hash_of(places: Keys, size: int) -> int:
    hashed = np.uint64(0)
    for i in range(size):
        hashed += hashed_again(places[i])
    return np.int64(hashed >> np.uint64(1))


@helper
def use_schema(state: State, index: Index, places: Keys, size: int) -> int:
    """Count one more point of a schema, given by its attributes in ascending order; return its entry."""
    keys, rows = index.schemas.keys, index.schema_attributes.rows
    hashed, salt = _hash_of(places, size), np.int64(0)
    entry = hash_index.find(index.schemas, hashed, salt, 0)
    while entry >= 0:
        same = keys[entry, Schema.SIZE] == size
        for i in range(size):
            same = same and rows[keys[entry, Schema.PLACES] + i, 0] == places[i]
        if same:
            keys[entry, Schema.POINTS] += 1
            return entry
        salt += 1  # should the hash be the same by chance
        entry = hash_index.find(index.schemas, hashed, salt, 0)
    entry = hash_index.insert(index.schemas, hashed, salt, 0)
    row = keys[entry]
    row[Schema.POINTS], row[Schema.SIZE] = 1, size
    row[Schema.BUCKET], row[Schema.BUCKETS] = -1, 0
    row[Schema.SHARED] = index.settings[Setting.SPLIT] == 0 or index.settings[Setting.BUCKET_COUNT] > 0
    row[Schema.PLACES] = blocks.take(index.schema_attributes, class_of(size))
    signature, pivot, least = np.uint64(0), np.int64(0), np.inf
    for i in range(size):
        rows[row[Schema.PLACES] + i, 0] = places[i]
        signature |= bit_of(places[i])
        often = frequency(state, index.attributes[places[i], HashedAttribute.FIELD])
        if often < least:
            pivot, least = places[i], often
    row[Schema.PIVOT] = pivot
    _list(index, pivot, entry + arrays.SINGLE if size == 1 else entry, np.int64(signature))
    return entry


@helper
def _list(index: Index, pivot: int, schema: int, signature: int) -> None:
    """Put a schema into the list of its rarest attribute; one without attributes is in row 0's."""
    row = index.attributes[pivot]
    rows = index.schema_lists.rows
    if row[HashedAttribute.LIST] < 0:
        row[HashedAttribute.LIST_CLASS], row[HashedAttribute.LIST_COUNT] = 0, 0
        row[HashedAttribute.LIST] = blocks.take(index.schema_lists, np.int64(0))
    elif row[HashedAttribute.LIST_COUNT] == size_of(row[HashedAttribute.LIST_CLASS]):
        class_, count = row[HashedAttribute.LIST_CLASS] + 1, row[HashedAttribute.LIST_COUNT]
        row[HashedAttribute.LIST] = blocks.moved(
            index.schema_lists, row[HashedAttribute.LIST], class_ - 1, count, class_
        )
        row[HashedAttribute.LIST_CLASS] = class_
        index.tops[IndexTop.LARGEST_LIST] = max(index.tops[IndexTop.LARGEST_LIST], size_of(class_))
    at = row[HashedAttribute.LIST] + row[HashedAttribute.LIST_COUNT]
    rows[at, 0], rows[at, 1] = signature, schema
    index.schemas.keys[schema & _SCHEMA, Schema.POSITION] = row[HashedAttribute.LIST_COUNT]
    row[HashedAttribute.LIST_COUNT] += 1


@helper
def release_schema(index: Index, schema: int) -> None:
    """Count one point less of a schema, and forget it with the last."""
    keys = index.schemas.keys
    keys[schema, Schema.POINTS] -= 1
    if keys[schema, Schema.POINTS] > 0:
        return
    row, rows = index.attributes[keys[schema, Schema.PIVOT]], index.schema_lists.rows
    row[HashedAttribute.LIST_COUNT] -= 1
    position, last = (
        keys[schema, Schema.POSITION],
        row[HashedAttribute.LIST] + row[HashedAttribute.LIST_COUNT],
    )
    copy_row(rows, last, row[HashedAttribute.LIST] + position)
    keys[rows[last, 1] & _SCHEMA, Schema.POSITION] = position
    if row[HashedAttribute.LIST_COUNT] == 0:
        blocks.give(index.schema_lists, row[HashedAttribute.LIST], row[HashedAttribute.LIST_CLASS])
        row[HashedAttribute.LIST] = -1
    blocks.give(index.schema_attributes, keys[schema, Schema.PLACES], class_of(keys[schema, Schema.SIZE]))
    hash_index.remove(index.schemas, schema)


@helper
def put_member(index: Index, schema: int, key: int, signature: int, word: int) -> tuple[int, int]:
    """Add a member to a bucket, new or not; return the bucket and the member's position."""
    keys, rows = index.buckets.keys, index.members.rows
    entry = hash_index.find(index.buckets, key, 0, 0)
    if entry < 0:
        entry = hash_index.insert(index.buckets, key, 0, 0)
        keys[entry, Bucket.STAMP], keys[entry, Bucket.SCHEMA] = -1, -1
        keys[entry, Bucket.MEMBERS] = blocks.take(index.members, np.int64(0))
        keys[entry, Bucket.SIZE] = 0
        if index.schemas.keys[schema, Schema.SHARED] == 0:
            _link(index, schema, entry)
    bucket = keys[entry]
    if bucket[Bucket.SCHEMA] != schema:
        index.schemas.keys[schema, Schema.SHARED] = 1
        if bucket[Bucket.SCHEMA] >= 0:  # two coordinates are the same by chance
            index.schemas.keys[bucket[Bucket.SCHEMA], Schema.SHARED] = 1
            _unlink(index, entry)
    count, class_ = bucket[Bucket.SIZE] >> arrays.SIZE_BITS, bucket[Bucket.SIZE] & _CLASS
    if count == size_of(class_):
        bucket[Bucket.MEMBERS] = blocks.moved(
            index.members, bucket[Bucket.MEMBERS], class_, count, class_ + 1
        )
        class_ += 1
        index.tops[IndexTop.LARGEST_BUCKET] = max(index.tops[IndexTop.LARGEST_BUCKET], size_of(class_))
    rows[bucket[Bucket.MEMBERS] + count, 0] = signature
    rows[bucket[Bucket.MEMBERS] + count, 1] = word
    bucket[Bucket.SIZE] = ((count + 1) << arrays.SIZE_BITS) | class_
    return entry, count


@helper
def _link(index: Index, schema: int, entry: int) -> None:
    """Add a bucket to the list of buckets that only its schema uses."""
    row, keys = index.schemas.keys[schema], index.buckets.keys
    keys[entry, Bucket.SCHEMA] = schema
    linked_lists.push(keys[:, Bucket.NEXT], keys[:, Bucket.BEFORE], row, _BUCKET, entry)
    row[Schema.BUCKETS] += 1


@helper
def _unlink(index: Index, entry: int) -> None:
    bucket, keys = index.buckets.keys[entry], index.buckets.keys
    row = index.schemas.keys[bucket[Bucket.SCHEMA]]
    linked_lists.unlink(keys[:, Bucket.NEXT], keys[:, Bucket.BEFORE], row, _BUCKET, entry)
    row[Schema.BUCKETS] -= 1
    bucket[Bucket.SCHEMA] = -1


@helper
def drop_member(index: Index, point: int) -> None:
    """Take a point out of its bucket: the last takes its place. A bucket that is empty is given up."""
    keys, rows = index.buckets.keys, index.members.rows
    entry, position = (
        np.int64(index.points[point, Point.BUCKET]),
        np.int64(index.points[point, Point.POSITION]),
    )
    bucket = keys[entry]
    count, class_ = (bucket[Bucket.SIZE] >> arrays.SIZE_BITS) - 1, bucket[Bucket.SIZE] & _CLASS
    last, at = bucket[Bucket.MEMBERS] + count, bucket[Bucket.MEMBERS] + position
    copy_row(rows, last, at)
    index.points[rows[at, 1] & _POINT, Point.POSITION] = position
    bucket[Bucket.SIZE] = (count << arrays.SIZE_BITS) | class_
    if count > 0:
        return
    blocks.give(index.members, bucket[Bucket.MEMBERS], class_)
    if bucket[Bucket.SCHEMA] >= 0:
        _unlink(index, entry)
    hash_index.remove(index.buckets, entry)
