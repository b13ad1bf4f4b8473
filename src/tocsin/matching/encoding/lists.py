"""The members of the lists that predicates ask for with `in` and `not in`."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tocsin.matching.encoding.codes import FIELD_BITS, Keys, Op
from tocsin.matching.encoding.vocabulary import Vocabulary


class Lists(NamedTuple):
    """The members of list `which[q]` are those from `starts[which[q]]` to `starts[which[q] + 1]`."""

    which: Keys  # int64[predicates], -1 where a predicate has no list
    starts: Keys  # int64[lists + 1]
    fields: Keys  # int64[members]
    keys: Keys  # int64[members]


_NONE: Final = np.empty(0, dtype=np.int64)


def lists_of(vocabulary: Vocabulary, tags: Keys, lows: Keys) -> Lists:
    """Return the lists of encoded predicates; one that several predicates have comes once."""
    ops = tags >> FIELD_BITS
    asked = np.flatnonzero((ops == Op.IN) | (ops == Op.NOT_IN))
    which = np.full(len(tags), -1, dtype=np.int64)
    codes, which[asked] = np.unique(lows[asked], return_inverse=True)
    members = [vocabulary.members(code) for code in codes.tolist()]
    starts = np.zeros(len(codes) + 1, dtype=np.int64)
    np.cumsum([len(keys) for _, keys in members], out=starts[1:])
    fields = np.concatenate([_NONE, *(fields for fields, _ in members)])
    keys = np.concatenate([_NONE, *(keys for _, keys in members)])
    return Lists(which, starts, fields, keys)
