"""The domains of numeric fields, over which open ranges are expanded into values."""

from __future__ import annotations

import numpy as np

from tocsin.matching._kernels.number_keys import is_whole, key_of_number, whole_of
from tocsin.matching.conjunction_store.state import Expressions
from tocsin.matching.encoding.codes import FIELD_BITS, FIELD_MASK, FIELDS, Field, Op
from tocsin.matching.k_index import state as arrays
from tocsin.matching.k_index._kernels.entries import emit
from tocsin.matching.k_index._kernels.key_lists import headers_of
from tocsin.matching.k_index._kernels.packing import kind_of_slot, nth_of_slot, size_word_of, slot_of
from tocsin.matching.k_index._kernels.postings import block_at, block_count
from tocsin.matching.k_index.state import Directory, Draft, DraftTop, Fields, KeyRow, RangeList
from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import helper, kernel


@kernel
def survey(fields: Fields, widest: int, batch: Expressions, grown: Int64s) -> int:
    """Read the constants of expressions; write the fields whose domain grows, and return how many.

    A domain goes from the least to the greatest constant that a number has been compared with. If that is too
    wide, or some constant is no whole number, ranges that come from now on are not expanded.
    """
    count = np.int64(0)
    for q in range(batch.tags.shape[0]):
        op, field = batch.tags[q] >> FIELD_BITS, batch.tags[q] & FIELD_MASK
        if op in (Op.IN, Op.NOT_IN):
            for m in range(batch.starts[batch.which[q]], batch.starts[batch.which[q] + 1]):
                count = _survey_constant(fields, widest, batch.fields[m], batch.keys[m], grown, count)
        elif op < Op.IN:
            count = _survey_constant(fields, widest, field, batch.lows[q], grown, count)
            if op in (Op.BETWEEN, Op.NOT_BETWEEN):
                count = _survey_constant(fields, widest, field, batch.highs[q], grown, count)
    return count


@helper
def _survey_constant(fields: Fields, widest: int, field: int, key: int, grown: Int64s, count: int) -> int:
    """Extend the wanted range of a field to a constant, add a newly extended field to `grown`, return the length."""
    if field % FIELDS != Field.NUMBER or fields.flags[field] != 0:
        return count
    if not is_whole(key):
        # A number beyond 2**53 or an infinity cannot be a value that a range is expanded to.
        fields.flags[field] |= arrays.FRACTIONAL
        return count
    number = whole_of(key)
    low, high = fields.wanted_low[field], fields.wanted_high[field]
    if low <= number <= high:
        return count
    new_low, new_high = number, number
    if low <= high:
        new_low, new_high = min(low, number), max(high, number)
    if new_high - new_low >= widest:
        fields.flags[field] |= arrays.WIDE
        return count
    if low == fields.low[field] and high == fields.high[field]:
        grown[count] = field
        count += 1
    fields.wanted_low[field], fields.wanted_high[field] = new_low, new_high
    return count


@kernel
def draft_growth(directory: Directory, draft: Draft, changed: Int64s, start: int, share: int) -> int:
    """Draft the entries that growing domains add, from `start` on; return the number of fields done, as many as fit.

    Each grows by `share` values at most at either end, towards the wanted range, which is set once they are placed.
    """
    for i in range(start, changed.shape[0]):
        if directory.fields.range_list[changed[i]] >= 0 and not _draft_field(
            directory, draft, changed[i], share
        ):
            return i
    return changed.shape[0]


@helper
def _draft_field(directory: Directory, draft: Draft, field: int, share: int) -> bool:
    """Draft the entries of expanded open ranges under the values that a domain gains; return whether they fit."""
    before = draft.tops[DraftTop.DRAFTED]
    range_list = np.int64(directory.fields.range_list[field])
    runs = directory.runs
    while range_list >= 0:
        slot, run = (
            directory.range_lists[range_list, RangeList.SLOT],
            directory.range_lists[range_list, RangeList.RUN],
        )
        if kind_of_slot(slot) != Op.BETWEEN:
            for at in range(runs.leaves[run]):
                leaf = np.int64(runs.words[runs.shelf[run] + at])
                for i in range(runs.count[leaf]):
                    entry = np.int64(runs.values[leaf, i])
                    if directory.key_rows[entry, KeyRow.FLAGS] & arrays.EXPANDED:
                        _draft_key(directory, draft, field, slot, entry, share)
        range_list = directory.range_lists[range_list, RangeList.NEXT]
    if draft.tops[DraftTop.DRAFTED] > draft.rows.shape[0]:
        draft.tops[DraftTop.NEEDED] = draft.tops[DraftTop.DRAFTED] - before
        draft.tops[DraftTop.DRAFTED] = before
        return False
    return True


@helper
def _draft_key(directory: Directory, draft: Draft, field: int, slot: int, entry: int, share: int) -> None:
    """Draft all entries of a range's key under the values that its field's domain gains."""
    fields, posted, rows = directory.fields, directory.posted, directory.posted.headers.rows
    kind = kind_of_slot(slot)
    # The range's constant lies within the domain, so that below it only `<` and `<=` gain, and above it the others.
    low, high = max(fields.wanted_low[field], fields.low[field] - share), fields.low[field] - 1
    if kind not in (Op.LT, Op.LE):
        low, high = fields.high[field] + 1, min(fields.wanted_high[field], fields.high[field] + share)
    value = slot_of(field, arrays.VALUE, nth_of_slot(slot))
    first, last = headers_of(directory, entry)
    for header in range(first, last):
        weight = posted.limits[header] if posted.limits.shape[0] > 0 else 1.0
        size_word = size_word_of(rows[header, 1])
        for n in range(block_count(posted, rows[header, 0])):
            begin, count = block_at(posted, rows[header, 0], n)
            for at in range(begin, begin + count):
                for number in range(low, high + 1):
                    key = (key_of_number(number), np.int64(0), np.int64(0))
                    emit(draft, value, key, size_word, np.int64(posted.entries.words[at]), weight)
