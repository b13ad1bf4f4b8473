"""The plans of the adaptive matcher, read from its state: nothing here changes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.language.printer import name_text
from tocsin.matching.adaptive._kernels.expectations import ATTRIBUTES, PRIOR
from tocsin.matching.adaptive.state import (
    BOUNDS,
    BOUNDS_BIT,
    CELL,
    CODE_BITS,
    EVERY_EVENT,
    HIGHEST,
    HOT_BIT,
    INSIDE,
    LARGE_BIT,
    NO_CODE,
    OP_BITS,
    ORDER,
    PRESENCE,
    SIZE_BITS,
    SIZE_MASK,
    SLOT_MASK,
    WIDEST,
    Access,
    Code,
    GridRow,
    Large,
    Link,
    ListRow,
    Slot,
    State,
    Stored,
    Top,
    Total,
)
from tocsin.matching.conjunction_store.state import blank_expressions, numbers_in_use
from tocsin.matching.encoding.codes import FIELDS, Field, Keys, Op
from tocsin.matching.encoding.vocabulary import Vocabulary, ordered_constant
from tocsin.matching.plans import ConjunctionPlan, KindCosts, PathKind, PathPart, PlannedCheck
from tocsin.model.conditions import Predicate
from tocsin.model.values import Value
from tocsin.structures import hash_index
from tocsin.structures.array_types import Bools, Float64s, Int64s

KINDS: Final = tuple(PathKind)
_LOW_HALF: Final = 0xFFFFFFFF
_HEAD: Final = 1  # the words of a conjunction, as `_kernels.clusters` describes them
_REST: Final = 3
_SHOWN: Final = 16  # tables, and grids
_EXAMINED: Final = 1 << 15  # access paths in tables, for figures
_FEW: Final = 0.05  # of the events: a value that holds for no more is selective
_KNOWN: Final = 8  # values that subscriptions ask for, of such an attribute at least
_MOST: Final = 0.5  # of the events have an attribute that is named as selective


class Paths(NamedTuple):
    """The access paths in use, as columns."""

    entries: Int64s
    codes: Int64s  # [paths, WIDEST] of its parts; -1 for none, and where the path is no combination of codes
    slots: Int64s  # [paths, WIDEST] of these codes; of presence the first; else -1
    kinds: Int64s  # places in `KINDS`
    members: NDArray[Any]  # conjunctions

    @property
    def are_tables(self) -> Bools:
        """Return which have several parts."""
        return self.codes[:, 1] >= 0


def paths_of(state: State, some: Int64s | None = None) -> Paths:
    """Return the access paths that have conjunctions, or `some` of these, by their entries."""
    members = _members(state)
    entries = np.flatnonzero(members) if some is None else some
    codes = _codes_of(state, entries)
    is_unknown = (codes >= len(state.predicates.entries.keys)).any(axis=1)
    codes[is_unknown] = -1
    first = state.access.keys[entries, Access.FIRST]
    is_presence = (first >= 0) & (first & _LOW_HALF == PRESENCE)
    tags = state.predicates.entries.keys[np.maximum(codes, 0), Code.TAG]
    slots = np.where(codes >= 0, tags & SLOT_MASK, -1)
    slots[is_presence, 0] = first[is_presence] >> CODE_BITS
    ops = np.where(codes >= 0, tags >> OP_BITS, -1)
    is_single = codes[:, 1] < 0
    kinds = np.select(
        [
            is_unknown,
            first == EVERY_EVENT,
            is_presence,
            is_single & (ops[:, 0] == Op.EQ),
            is_single & (ops[:, 0] == Op.IN),
            is_single & (ops[:, 0] == CELL),
            ~is_single & ((ops == Op.EQ) | (ops < 0)).all(axis=1),
            ~is_single & ((ops == Op.EQ) | (ops == CELL) | (ops < 0)).all(axis=1),
        ],
        [
            KINDS.index(kind)
            for kind in (
                PathKind.OTHER,
                PathKind.EVERY_EVENT,
                PathKind.PRESENCE,
                PathKind.EQUALITY,
                PathKind.LIST,
                PathKind.RANGE,
                PathKind.EQUALITIES,
                PathKind.EQUALITIES_AND_RANGES,
            )
        ],
        KINDS.index(PathKind.OTHER),
    )
    return Paths(entries, codes, slots, kinds, members[entries])


def _members(state: State) -> Int64s:
    """Return how many conjunctions each access path has, by its entry."""
    placed = state.store.rows[numbers_in_use(state.store), Stored.PATH]
    return np.bincount(placed[placed >= 0], minlength=1)


def _codes_of(state: State, entries: Int64s) -> Int64s:
    """Return the codes in the keys of access paths, -1 where there is none: see `code_at`."""
    codes = np.full((len(entries), WIDEST), -1, dtype=np.int64)
    for column, place in ((Access.FIRST, 0), (Access.SECOND, 2)):
        half = state.access.keys[entries, column]
        high, low = half >> CODE_BITS, half & _LOW_HALF
        has_codes = (half >= 0) & (low != PRESENCE)
        codes[:, place] = np.where(has_codes, high, -1)
        codes[:, place + 1] = np.where(has_codes & (low != NO_CODE), low, -1)
    return codes


# the shares of events, as `_kernels.expectations` has them, for all paths at once


def shares(state: State, paths: Paths) -> Float64s:
    """Return the share of events that are expected to reach each access path.

    Values are taken to be independent, unless so many events have reached the path that this must be too low.
    """
    chances = chances_of_parts(state, paths)
    found = chances.prod(axis=1)
    if paths.are_tables.any():
        found[paths.are_tables] *= _correlations(state, paths)
    is_presence = paths.kinds == KINDS.index(PathKind.PRESENCE)
    found[is_presence] = _presence(state, paths.slots[is_presence, 0])
    hits = _floats(state.access.keys[paths.entries, Access.WORK])
    weight = state.totals[Total.WEIGHT]
    events = state.totals[Total.EVENTS] + PRIOR * weight
    found = np.maximum(found, (hits - 2.0 * np.sqrt(hits * weight)) / events)
    found = np.minimum(found, chances.min(axis=1, initial=1.0))
    is_other = paths.kinds == KINDS.index(PathKind.OTHER)
    found[is_other] = np.minimum(hits[is_other] / events, 1.0)
    found[paths.kinds == KINDS.index(PathKind.EVERY_EVENT)] = 1.0
    return np.asarray(found)


def shares_in_sections(state: State, paths: Paths) -> Float64s:
    """Return the share of its conjunctions that an event is checked against when it reaches each access path.

    It is less than 1 where a large cluster is in sections.
    """
    place, work = (state.access.keys[paths.entries, column] for column in (Access.PLACE, Access.WORK))
    found = np.ones(len(paths.entries))
    is_large = place & LARGE_BIT > 0
    rows = state.large.rows[work[is_large] & _LOW_HALF]
    checks = (
        rows[:, Large.CHECKS] / np.maximum(rows[:, Large.VISITS], 1) / np.maximum(rows[:, Large.COUNT], 1)
    )
    found[is_large] = np.where(rows[:, Large.SECTIONS] > 0, np.minimum(checks, 1.0), 1.0)
    return found


def chances_of_parts(state: State, paths: Paths) -> Float64s:
    """Return the probability of each part of access paths; 1 where there is none."""
    chances = np.ones(paths.codes.shape)
    used = paths.codes >= 0
    codes = paths.codes[used]
    ops = state.predicates.entries.keys[codes, Code.TAG] >> OP_BITS
    found = np.ones(len(codes))
    is_value = (ops == Op.EQ) | (ops == CELL)
    found[is_value] = _measured(state, codes[is_value])
    is_cell = ops == CELL
    if is_cell.any():
        found[is_cell] = np.maximum(found[is_cell], _of_cells(state, codes[is_cell]))
    is_list = ops == Op.IN
    found[is_list] = _of_lists(state, codes[is_list])
    chances[used] = found
    return chances


def _presence(state: State, slots: Int64s) -> Float64s:
    """Return the probability that an event has a value in each slot."""
    prior = PRIOR * state.totals[Total.WEIGHT]
    guess = min(ATTRIBUTES / max(float(state.tops[Top.SLOTS]), 1.0), 1.0)
    seen = state.slots.seen[slots] + prior * guess
    return np.asarray(np.minimum(seen / (state.totals[Total.EVENTS] + prior), 1.0))


def _measured(state: State, codes: Int64s) -> Float64s:
    """Return the probability of equalities and cells, which are counted."""
    keys = state.predicates.entries.keys[codes]
    slots = keys[:, Code.TAG] & SLOT_MASK
    others = np.maximum(state.slots.rows[slots, Slot.EQUALITIES], 1)
    fields = state.slots.rows[slots, Slot.FIELD]
    there = _presence(state, np.where(fields < 0, -1 - fields, slots))
    prior = PRIOR * state.totals[Total.WEIGHT]
    found = (_floats(keys[:, Code.USE]) + prior * there / others) / (state.totals[Total.EVENTS] + prior)
    return np.asarray(np.minimum(found, there))


def _of_cells(state: State, codes: Int64s) -> Float64s:
    """Return the probability of cells by the counts between the bounds of their grids, which may be older than a cell's own."""
    keys = state.predicates.entries.keys[codes]
    slots, found = keys[:, Code.TAG] & SLOT_MASK, np.zeros(len(codes))
    for grid in range(int(state.tops[Top.GRIDS])):
        row = state.grids.rows[grid]
        base, begin, count = row[[GridRow.SLOT, GridRow.FIRST, GridRow.COUNT]].tolist()
        counts = state.grids.bounds.rows[begin : begin + count + 1, 1].copy().view(np.float64) + 1.0
        sums = np.concatenate([[0.0], np.cumsum(counts)])
        there = float(_presence(state, np.array([base]))[0])
        for level, slot in enumerate(state.grids.levels[grid].tolist()):
            chosen = slots == slot - 1
            if slot > 0 and chosen.any():
                first, last = _places_of(keys[chosen, Code.LOW], level)
                inside = sums[np.minimum(last, count) + 1] - sums[np.minimum(first, count + 1)]
                found[chosen] = there * inside / sums[-1]
    return found


def _places_of(cells: Int64s, level: int) -> tuple[Int64s, Int64s]:
    """Return between which bounds cells of a level begin and end, by how many bounds are below."""
    if level == 0:
        return cells, cells
    first = cells << (level - 1)
    return first, first + (1 << level) - 1


def _of_lists(state: State, codes: Int64s) -> Float64s:
    """Return the probability of lists that are access paths: that of all their members."""
    rows = state.lists[state.predicates.entries.keys[codes, Code.LOW]]
    counts, links = rows[:, ListRow.COUNT], rows[:, ListRow.LINKS]
    which = np.repeat(np.arange(len(codes)), counts)
    begins = np.cumsum(counts) - counts
    places = np.arange(len(which)) - begins[which] + links[which]
    members = _measured(state, state.links.rows[places, Link.POINT])
    slots = state.predicates.entries.keys[codes, Code.TAG] & SLOT_MASK
    return np.minimum(np.bincount(which, weights=members, minlength=len(codes)), _presence(state, slots))


def _correlations(state: State, paths: Paths) -> Float64s:
    """Return the correlation of the table of each access path that is in one."""
    found = {
        table: float(state.tables.correlation[table])
        for table in np.flatnonzero(state.tables.width[: state.tops[Top.TABLES]]).tolist()
    }
    if all(one == 1.0 for one in found.values()):
        return np.ones(int(paths.are_tables.sum()))
    return np.array([found.get(table, 1.0) for table in _tables_of(state, paths).tolist()])


def _tables_of(state: State, paths: Paths) -> Int64s:
    """Return the table of each access path that is in one, or -1."""
    slots = paths.slots[paths.are_tables]
    tables = np.full(len(slots), -1, dtype=np.int64)
    for table in np.flatnonzero(state.tables.width[: state.tops[Top.TABLES]]).tolist():
        width = int(state.tables.width[table])
        wanted = np.full(WIDEST, -1)
        wanted[:width] = state.tables.slots[table, :width]
        tables[(slots == wanted).all(axis=1)] = table
    return tables


def _floats(words: Int64s) -> Float64s:
    """Return the 32-bit floats in the upper halves of words."""
    return (words >> 32).astype(np.int32).view(np.float32).astype(np.float64)


# figures of all conjunctions


def costs(state: State) -> tuple[Int64s, Float64s, tuple[KindCosts, ...]]:
    """Return the subscriptions' ids, the checks per event that each is expected to cost, and those of each kind of path."""
    numbers = numbers_in_use(state.store)
    numbers = numbers[state.store.rows[numbers, Stored.PATH] >= 0]
    paths = paths_of(state)
    each = shares(state, paths) * shares_in_sections(state, paths)
    by_entry = np.zeros(len(state.access.keys))
    by_entry[paths.entries] = each
    owners = state.store.owner[numbers]
    found = np.bincount(owners, by_entry[state.store.rows[numbers, Stored.PATH]], minlength=1)
    stored = np.flatnonzero(np.bincount(owners, minlength=1))
    by_kind = [
        KindCosts(kind, int(paths.members[chosen].sum()), float((each * paths.members)[chosen].sum()))
        for place, kind in enumerate(KINDS)
        if (chosen := paths.kinds == place).any()
    ]
    by_kind.sort(key=lambda one: -one.checks)
    return state.store.ids.keys[stored, 0], np.asarray(found[stored]), tuple(by_kind)


def path_figures(state: State, vocabulary: Vocabulary) -> dict[str, int | float]:
    """Return how many conjunctions have a path of each kind, by table and by grid, and the expected checks per event.

    Of very many combinations of equalities, some are examined and stand for the others.
    """
    paths = _some_paths(state)
    found: dict[str, int | float] = {
        "expected checks per event": float(
            (shares(state, paths) * shares_in_sections(state, paths) * paths.members).sum()
        )
    }
    by_kind = np.bincount(paths.kinds, paths.members, minlength=len(KINDS))
    found |= {
        f"reached by {kind}": round(by_kind[place]) for place, kind in enumerate(KINDS) if by_kind[place]
    }
    tables: Counter[str] = Counter()
    if paths.are_tables.any():
        of, members = _tables_of(state, paths), paths.members[paths.are_tables]
        for table, count in enumerate(np.bincount(of[of >= 0], members[of >= 0])):
            if count:
                slots = state.tables.slots[table, : state.tables.width[table]].tolist()
                tables[", ".join(_slot_name(state, vocabulary, slot) for slot in slots)] += round(count)
    found |= {f"table of {names}": count for names, count in tables.most_common(_SHOWN)}
    for grid in range(min(int(state.tops[Top.GRIDS]), _SHOWN)):
        cells = int(state.slots.rows[_levels(state, grid), Slot.EQUALITIES].sum())
        if cells:  # else the attribute may be in no subscription any more, and have no name
            name = _slot_name(state, vocabulary, int(state.grids.rows[grid, GridRow.SLOT]))
            found[f"cells of {name}"] = cells
    return found


def _some_paths(state: State) -> Paths:
    """Return all access paths, but of those in tables only so many; their members are then increased in proportion."""
    members = _members(state)
    entries = np.flatnonzero(members)
    first, second = (state.access.keys[entries, column] for column in (Access.FIRST, Access.SECOND))
    low = first & _LOW_HALF
    in_tables = (second >= 0) | ((first >= 0) & (low != NO_CODE) & (low != PRESENCE))
    combined = entries[in_tables]
    if len(combined) <= _EXAMINED:
        return paths_of(state, entries)
    sample = combined[:: -(-len(combined) // _EXAMINED)]
    paths = paths_of(state, np.concatenate([entries[~in_tables], sample]))
    scale = members[combined].sum() / members[sample].sum()
    return paths._replace(members=np.where(paths.are_tables, paths.members * scale, paths.members))


def _levels(state: State, grid: int) -> Int64s:
    """Return the slots of a grid's levels."""
    levels = state.grids.levels[grid].astype(np.int64)
    return np.asarray(levels[levels > 0] - 1)


def selective_attributes(state: State, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return the attributes that most events have, and in which a value that subscriptions ask for holds for few; the fewest first."""
    keys = state.predicates.entries.keys[: hash_index.top_entry(state.predicates.entries)]
    used = state.predicates.uses[: len(keys)] > 0
    codes = np.flatnonzero(used & (keys[:, Code.TAG] >> OP_BITS == Op.EQ))
    if not len(codes):
        return ()
    slots = keys[codes, Code.TAG] & SLOT_MASK
    chances = _measured(state, codes)
    # Of the values that events have, not of those that subscriptions name: a frequent one counts for more.
    squares, sums = np.bincount(slots, chances**2), np.bincount(slots, chances)
    found = []
    for slot in np.flatnonzero(np.bincount(slots) >= _KNOWN).tolist():
        field = int(state.slots.rows[slot, Slot.FIELD])
        there = float(_presence(state, np.array([slot]))[0])
        if field >= 0 and field % FIELDS in (Field.NUMBER, Field.STRING) and there >= _MOST:
            chance = float(squares[slot] / sums[slot])
            if chance <= _FEW:
                found.append((chance, str(vocabulary.names.value(field // FIELDS))))
    return tuple(dict.fromkeys(name for _, name in sorted(found)))


# the plans of single conjunctions


def conjunction_plans(
    state: State, vocabulary: Vocabulary, numbers: Sequence[int]
) -> tuple[ConjunctionPlan, ...]:
    """Return how events reach each of these conjunctions, all of them placed, and what they are checked against then."""
    reader = _Reader(state, vocabulary)
    some = paths_of(state, state.store.rows[list(numbers), Stored.PATH].astype(np.int64))
    likely, parts = shares(state, some), chances_of_parts(state, some)
    sections = shares_in_sections(state, some)
    return tuple(
        reader.plan(
            number, Paths(*(column[i] for column in some)), (float(likely[i]), float(sections[i])), parts[i]
        )
        for i, number in enumerate(numbers)
    )


class _Reader:
    """Reads the plans of conjunctions; what has been decoded is remembered."""

    def __init__(self, state: State, vocabulary: Vocabulary) -> None:
        self._state = state
        self._vocabulary = vocabulary
        self._known: dict[int, tuple[Predicate, float]] = {}

    def plan(
        self, number: int, path: Paths, likely: tuple[float, float], chances: Float64s
    ) -> ConjunctionPlan:
        """Return a conjunction's plan; `path` is its access path, with its share and that of its sections, and its parts' probabilities."""
        share, in_sections = likely
        checked, others = self._words(number)
        self._decode([*checked, *others, *_predicates_in(self._state, path.codes)])
        keys, is_residual = self._state.predicates.entries.keys, Op.RESIDUAL
        checks = [PlannedCheck(*self._known[code]) for code in checked]
        checks += [
            PlannedCheck(*self._known[code], in_python=True)
            for code in others
            if keys[code, Code.TAG] >> OP_BITS == is_residual
        ]
        kind = KINDS[int(path.kinds)]
        parts: tuple[PathPart, ...] = ()
        if kind is PathKind.PRESENCE:
            parts = (PathPart(self._attribute(int(path.slots[0])), share),)
        elif kind is not PathKind.OTHER:
            parts = tuple(
                self._part(int(code), float(chance), [*checked, *others])
                for code, chance in zip(path.codes, chances, strict=True)
                if code >= 0
            )
        hot = bool(self._state.access.keys[path.entries, Access.PLACE] & HOT_BIT)
        return ConjunctionPlan(
            kind, share, int(path.members), parts, tuple(checks), hot=hot, in_sections=in_sections
        )

    def _words(self, number: int) -> tuple[list[int], list[int]]:
        """Return the codes of a conjunction that are checked, in their order, and the others."""
        rows, state = self._state.words.rows, self._state
        entry, offset = state.store.rows[number, [Stored.PATH, Stored.OFFSET]].tolist()
        at = (int(state.access.keys[entry, Access.PLACE]) >> 32) + offset
        head = int(rows[at + _HEAD])
        size, checks = head & SIZE_MASK, (head >> SIZE_BITS) & SIZE_MASK
        begin = at + _REST + BOUNDS * checks * ((head >> BOUNDS_BIT) & 1)
        words = [*rows[at : at + (checks > 0)].tolist(), *rows[begin : begin + size - (checks > 0)].tolist()]
        codes = [word if word >= 0 else -1 - word for word in words]
        return codes[:checks], codes[checks:]

    def _decode(self, codes: Sequence[int]) -> None:
        """Read the predicates with these codes, and their probabilities."""
        from tocsin.matching.adaptive._kernels.inspection import inspect  # noqa: PLC0415 - few look at plans

        wanted = np.array(sorted({*codes} - self._known.keys()), dtype=np.int64)
        into, chances = blank_expressions(1, len(wanted)), np.zeros(len(wanted))
        inspect(self._state, wanted, into, chances)
        rows = zip(wanted.tolist(), into.tags.tolist(), into.lows.tolist(), into.highs.tolist(), strict=True)
        for (code, *encoded), chance in zip(rows, chances.tolist(), strict=True):
            self._known[code] = self._vocabulary.decode(*encoded), chance

    def _attribute(self, slot: int) -> str:
        return _attribute_of(self._state, self._vocabulary, slot)

    def _part(self, code: int, chance: float, codes: Sequence[int]) -> PathPart:
        """Return a part of an access path; a cell stands for a predicate of the conjunction that lies in it."""
        keys = self._state.predicates.entries.keys
        slot = int(keys[code, Code.TAG]) & SLOT_MASK
        if keys[code, Code.TAG] >> OP_BITS != CELL:
            return PathPart(self._attribute(slot), chance, self._known[code][0])
        base = -1 - int(self._state.slots.rows[slot, Slot.FIELD])
        low, high = _bounds_of(self._state, slot, int(keys[code, Code.LOW]))
        within = [
            one
            for one in codes
            if keys[one, Code.TAG] & SLOT_MASK == base
            and (INSIDE >> int(keys[one, Code.TAG] >> OP_BITS)) & 1
            and (low is None or low <= keys[one, Code.LOW])
            and (high is None or keys[one, Code.HIGH] < high)
        ]
        ends = self._constant(base, low), self._constant(base, high)
        return PathPart(self._attribute(base), chance, self._known[within[0]][0] if within else None, ends)

    def _constant(self, slot: int, key: int | None) -> Value | None:
        """Return the value with a key of a slot."""
        if key is None:
            return None
        kind = int(self._state.slots.rows[slot, Slot.FIELD]) % FIELDS
        try:
            found = ordered_constant(Field.STRING if kind == ORDER else Field(kind), key)
        except (OverflowError, UnicodeDecodeError, ValueError):  # what is next to a constant may be no value
            return None
        # A bound may be next to a constant: the least number or string above it.
        return (
            float(f"{found:.15g}")
            if isinstance(found, float)
            else found.rstrip("\0")
            if isinstance(found, str)
            else found
        )


def _predicates_in(state: State, codes: Int64s) -> list[int]:
    """Return those codes of an access path that are predicates, and no cells."""
    tags = state.predicates.entries.keys[np.maximum(codes, 0), Code.TAG]
    found: list[int] = codes[(codes >= 0) & (tags >> OP_BITS != CELL)].tolist()
    return found


def _bounds_of(state: State, slot: int, cell: int) -> tuple[int | None, int | None]:
    """Return the keys from which and below which values are in a cell of a level; None where there is no bound."""
    levels: NDArray[np.int32] = state.grids.levels[: state.tops[Top.GRIDS]]
    grid, level = np.argwhere(levels == slot + 1)[0].tolist()
    (first,), (last,) = (ends.tolist() for ends in _places_of(np.array([cell]), level))
    begin, count = state.grids.rows[grid, [GridRow.FIRST, GridRow.COUNT]].tolist()
    bounds: Keys = state.grids.bounds.rows[begin : begin + count, 0]
    low = None if first == 0 else int(bounds[first - 1])
    high = None if last >= count or bounds[last] == HIGHEST else int(bounds[last])
    return low, high


def _attribute_of(state: State, vocabulary: Vocabulary, slot: int) -> str:
    """Return the attribute of a slot, or of the slot whose cells it has."""
    field = int(state.slots.rows[slot, Slot.FIELD])
    if field < 0:
        field = int(state.slots.rows[-1 - field, Slot.FIELD])
    return str(vocabulary.names.value(field // FIELDS))


def _slot_name(state: State, vocabulary: Vocabulary, slot: int) -> str:
    """Return the name of a slot in figures: an attribute, with its level if it has cells."""
    name = name_text(_attribute_of(state, vocabulary, slot))
    return f"{name} (cells)" if state.slots.rows[slot, Slot.FIELD] < 0 else name
