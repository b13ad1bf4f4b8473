"""The domains of numbers, over which open ranges are expanded, and what is done when one grows."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Field, Op
from tocsin.matching.k_index._kernels.directory import first_header, header_count, kind_of_place
from tocsin.matching.k_index._kernels.entries import emit, place_of
from tocsin.matching.k_index._kernels.postings import COUNT_SHIFT, OFFSET
from tocsin.matching.k_index._kernels.whole_numbers import is_whole, key_of_whole, whole_of
from tocsin.matching.k_index.state import (
    CLASS_SHIFT,
    DRAFTED,
    DUP_BITS,
    EXPANDED,
    FLAGS,
    FRACTIONAL,
    LANE_NEXT,
    LANE_PLACE,
    LANE_RUN,
    LEAF,
    NEEDED,
    VALUE,
    WIDE,
    Directory,
    Draft,
    Expressions,
    Fields,
)
from tocsin.structures.jit import helper, kernel

_MASK: Final = (1 << FIELD_BITS) - 1
_NUMBER: Final = int(Field.NUMBER)
_LT, _LE, _BETWEEN, _NOT_BETWEEN = int(Op.LT), int(Op.LE), int(Op.BETWEEN), int(Op.NOT_BETWEEN)
_IN, _NOT_IN = int(Op.IN), int(Op.NOT_IN)
_LIST: Final = (1 << CLASS_SHIFT) - 1
_DUP: Final = (1 << DUP_BITS) - 1


@kernel
def survey(fields: Fields, widest: int, forms: Expressions, grown: NDArray[np.int64]) -> int:
    """Look at the constants of forms; write the fields whose domain is to grow, and return how many.

    A domain goes from the least to the greatest constant that a number has been compared with. If that is too
    wide, or some constant is no whole number, ranges that come from now on are not expanded.
    """
    count = np.int64(0)
    for q in range(forms.tags.shape[0]):
        op, field = forms.tags[q] >> FIELD_BITS, forms.tags[q] & _MASK
        if op in (_IN, _NOT_IN):
            for m in range(forms.starts[forms.which[q]], forms.starts[forms.which[q] + 1]):
                count = _survey_constant(fields, widest, forms.fields[m], forms.keys[m], grown, count)
        elif op < _IN:
            count = _survey_constant(fields, widest, field, forms.lows[q], grown, count)
            if op in (_BETWEEN, _NOT_BETWEEN):
                count = _survey_constant(fields, widest, field, forms.highs[q], grown, count)
    return count


@helper
def _survey_constant(
    fields: Fields, widest: int, field: int, key: int, grown: NDArray[np.int64], count: int
) -> int:
    if field % FIELDS != _NUMBER or fields.flags[field] != 0:
        return count
    if not is_whole(key):
        # A number beyond 2**53 or an infinity is no value that a range would be expanded to.
        fields.flags[field] |= FRACTIONAL
        return count
    number = whole_of(key)
    low, high = fields.wanted_low[field], fields.wanted_high[field]
    if low <= number <= high:
        return count
    new_low, new_high = number, number
    if low <= high:
        new_low, new_high = min(low, number), max(high, number)
    if new_high - new_low >= widest:
        fields.flags[field] |= WIDE
        return count
    if low == fields.low[field] and high == fields.high[field]:
        grown[count] = field
        count += 1
    fields.wanted_low[field], fields.wanted_high[field] = new_low, new_high
    return count


@kernel
def draft_growth(
    directory: Directory, draft: Draft, changed: NDArray[np.int64], start: int, share: int
) -> int:
    """Draft what growing domains bring, from `start` on; return how many fields were done: fewer if there is no room.

    Each grows by `share` values at most at either end, towards what is wanted, and is to be set so once that is placed.
    """
    for i in range(start, changed.shape[0]):
        if directory.fields.lane[changed[i]] >= 0 and not _draft_field(directory, draft, changed[i], share):
            return i
    return changed.shape[0]


@helper
def _draft_field(directory: Directory, draft: Draft, field: int, share: int) -> bool:
    """Draft the entries of expanded open ranges under the values that a domain is to have more."""
    before = draft.tops[DRAFTED]
    lane = np.int64(directory.fields.lane[field])
    runs = directory.runs
    while lane >= 0:
        place, run = directory.lanes[lane, LANE_PLACE], directory.lanes[lane, LANE_RUN]
        if kind_of_place(place) != _BETWEEN:
            for at in range(runs.leaves[run]):
                leaf = np.int64(runs.words[runs.shelf[run] + at])
                for i in range(runs.count[leaf]):
                    entry = np.int64(runs.values[leaf, i])
                    if directory.key_rows[entry, FLAGS] & EXPANDED:
                        _draft_key(directory, draft, field, place, entry, share)
        lane = directory.lanes[lane, LANE_NEXT]
    if draft.tops[DRAFTED] > draft.rows.shape[0]:
        draft.tops[NEEDED] = draft.tops[DRAFTED] - before
        draft.tops[DRAFTED] = before
        return False
    return True


@helper
def _draft_key(directory: Directory, draft: Draft, field: int, place: int, entry: int, share: int) -> None:
    """Draft all entries of a range's key under the values that its field's domain is to have more."""
    fields, posted, rows = directory.fields, directory.posted, directory.posted.headers.rows
    kind = kind_of_place(place)
    # The range's constant lies within the domain, so that below it only `<` and `<=` gain, and above it the others.
    low, high = max(fields.wanted_low[field], fields.low[field] - share), fields.low[field] - 1
    if kind not in (_LT, _LE):
        low, high = fields.high[field] + 1, min(fields.wanted_high[field], fields.high[field] + share)
    value = place_of(field, VALUE, place & _DUP)
    first = first_header(directory, entry)
    for header in range(first, first + header_count(directory, entry)):
        weight = posted.limits[header] if posted.limits.shape[0] > 0 else 1.0
        size_word = rows[header, 1] & _LIST
        begin, count = rows[header, 0] & OFFSET, rows[header, 0] >> COUNT_SHIFT
        shelf, last = np.int64(0), np.int64(0)
        if count > LEAF:
            shelf = begin + 1
            last = begin + posted.shelves.rows[begin, 0]
        while True:
            if count > LEAF:
                begin = posted.shelves.rows[shelf, 1] & OFFSET
                more = posted.shelves.rows[shelf, 1] >> COUNT_SHIFT
            else:
                more = count
            for at in range(begin, begin + more):
                for number in range(low, high + 1):
                    key = (key_of_whole(number), np.int64(0), np.int64(0))
                    emit(draft, value, key, size_word, np.int64(posted.entries.words[at]), weight)
            shelf += 1
            if count <= LEAF or shelf > last:
                break
