"""The input and output of matchers, in batches: normal forms and events, and matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.language.normal import Cnf, Dnf, dnf_unless_too_large, partly_distributed
from tocsin.language.normal.forms import MAX_CONJUNCTIONS
from tocsin.language.normal.partial import MAX_DISTRIBUTED
from tocsin.language.template import Column, TemplateRows
from tocsin.language.template.binding import bind_predicate
from tocsin.language.template.template import bindings_at
from tocsin.matching.word_truths import WordTruths
from tocsin.model.conditions import Conjunction, Predicate
from tocsin.model.event import Event
from tocsin.model.values import Value

Clauses: TypeAlias = tuple[Conjunction, ...]
"""Clauses that must all hold, each a tuple of predicates of which one suffices."""

IdArray: TypeAlias = NDArray[np.int64]
_NO_IDS: Final = np.empty(0, dtype=np.int64)
REFUSED: Final[Mapping[str, Value]] = {}


class ConjunctionGroup(Struct, frozen=True):
    """Conjunctions of one shape: the same predicates, with each row's own constants in columns.

    A predicate of `shape` that varies has a `Parameter` for its operand; `columns` holds one value a row for
    each. A single conjunction is a group of one row and no columns.
    """

    shape: Conjunction
    ids: IdArray  # int64[rows]: the subscription each row belongs to
    columns: Mapping[str, Column]  # name -> [rows]

    def __iter__(self) -> Iterator[tuple[int, Conjunction]]:
        for row, subscription in enumerate(self.ids.tolist()):
            values = bindings_at(self.columns, row)
            yield subscription, tuple(bind_predicate(p, values) for p in self.shape) if values else self.shape


class ClauseGroup(Struct, frozen=True):
    """CNFs of one shape: the same clauses, with each row's own constants in columns.

    No clause is empty, and some clause has several predicates: else it is a conjunction, or satisfied by nothing.
    """

    shape: Clauses
    ids: IdArray  # int64[rows]: the subscription each row belongs to
    columns: Mapping[str, Column]  # name -> [rows]

    def __iter__(self) -> Iterator[tuple[int, Clauses]]:
        for row, subscription in enumerate(self.ids.tolist()):
            values = bindings_at(self.columns, row)
            bound = tuple(tuple(bind_predicate(p, values) for p in clause) for clause in self.shape)
            yield subscription, bound if values else self.shape

    def expanded(self, max_conjunctions: int = MAX_CONJUNCTIONS) -> Iterator[ConjunctionGroup]:
        """Yield equivalent conjunctions; past the limit only some of the clauses are distributed."""
        normal = dnf_unless_too_large(Cnf(self.shape).condition(), max_conjunctions, len(self.shape))
        if isinstance(normal, Cnf):
            normal = partly_distributed(normal.clauses, min(max_conjunctions, MAX_DISTRIBUTED))
        for conjunction in normal.conjunctions:
            yield ConjunctionGroup(conjunction, self.ids, self.columns)


class ConjunctionBatch(Struct, frozen=True):
    """Conjunctions and CNFs to be added; several may carry one id, and any of them satisfies it.

    A matcher that stores no CNFs takes the batch `in_conjunctions`. `weights` are those of subscriptions whose weight is
    not 1, by id: a number, or one for each attribute. Only matchers that rank by themselves read them.
    """

    groups: tuple[ConjunctionGroup, ...]
    clauses: tuple[ClauseGroup, ...] = ()
    weights: Mapping[int, float | Mapping[str, float]] = {}

    @classmethod
    def of(cls, subscriptions: Iterable[tuple[int, Dnf | Cnf]]) -> ConjunctionBatch:
        """Return the batch of these subscriptions' normal forms."""
        groups: list[ConjunctionGroup] = []
        clauses: list[ClauseGroup] = []
        for id_, normal in subscriptions:
            ids = np.array([id_], dtype=np.int64)
            if isinstance(normal, Dnf):
                groups += [ConjunctionGroup(conjunction, ids, {}) for conjunction in normal.conjunctions]
            else:
                one = cls.of_shapes(ids, normal, {})
                groups += one.groups
                clauses += one.clauses
        return cls(tuple(groups), tuple(clauses))

    @classmethod
    def of_rows(cls, ids: IdArray, rows: TemplateRows) -> ConjunctionBatch:
        """Return the batch of a template's rows, whose subscriptions are `ids`; rows are not read one by one."""
        if len(ids) != len(rows):
            raise ValueError(f"{len(rows)} rows need as many ids, got {len(ids)}")
        return cls.of_shapes(ids, rows.form(), rows.columns)

    @classmethod
    def of_shapes(cls, ids: IdArray, normal: Dnf | Cnf, columns: Mapping[str, Column]) -> ConjunctionBatch:
        """Return the batch in which each subscription of `ids` is `normal` with its own row's constants."""
        if isinstance(normal, Dnf):
            return cls(tuple(ConjunctionGroup(shape, ids, columns) for shape in normal.conjunctions))
        if any(len(clause) > 1 for clause in normal.clauses) and all(normal.clauses):
            return cls((), (ClauseGroup(normal.clauses, ids, columns),))
        if all(normal.clauses):
            return cls((ConjunctionGroup(tuple(p for (p,) in normal.clauses), ids, columns),))
        return cls(())  # nothing satisfies an empty clause

    def in_conjunctions(self, max_conjunctions: int = MAX_CONJUNCTIONS) -> ConjunctionBatch:
        """Return the same in conjunctions alone; of a CNF that grows past the limit some clauses stay whole."""
        if not self.clauses:
            return self
        expanded = (one for group in self.clauses for one in group.expanded(max_conjunctions))
        return ConjunctionBatch((*self.groups, *expanded), (), self.weights)

    def __len__(self) -> int:
        return sum(len(ids) for ids in (*(g.ids for g in self.groups), *(g.ids for g in self.clauses)))

    def __iter__(self) -> Iterator[tuple[int, Conjunction]]:
        """Yield the conjunctions with their subscriptions' ids; CNFs are not among them."""
        for group in self.groups:
            yield from group


class EventBatch:
    """Events to be matched; one event is a batch of one.

    A matcher keeps the encoded batch in `encoded`, so that several matchers share the work.
    """

    def __init__(
        self,
        rows: Sequence[Mapping[str, Value]],
        events: tuple[Event, ...] | None = None,
        faults: Mapping[int, str] | None = None,
    ) -> None:
        self.rows = rows
        self._events = events
        self._faults = faults or {}
        self.encoded: tuple[object, object] | None = None  # the vocabulary, and the encoded events

    @property
    def faults(self) -> Mapping[int, str]:
        """Return, by its place, the fault of each row that is not an event."""
        return self._faults

    @classmethod
    def of(cls, events: Iterable[Event]) -> EventBatch:
        """Return the batch of these events."""
        held = tuple(events)
        return cls([event.attributes for event in held], held)

    @classmethod
    def of_dicts(cls, rows: Iterable[Mapping[str, object]]) -> EventBatch:
        """Return the batch of plain dicts, nested ones flattened.

        A row that is not an event (it has a name that is no string, say) satisfies nothing, and `faults` has its fault by its place.
        """
        from tocsin.matching.encoding.dicts import DictEvents  # noqa: PLC0415 - it is a batch itself

        return DictEvents(rows)

    def attributes(self, place: int) -> Mapping[str, Value]:
        """Return the attributes of one event."""
        return self.rows[place]

    @property
    def has_columns(self) -> bool:
        """Tell whether predicates can be evaluated for all rows at once."""
        return False

    def holds(
        self,
        predicate: Predicate,  # noqa: ARG002 - of batches with columns
        words: WordTruths | None = None,  # noqa: ARG002
    ) -> NDArray[np.bool_] | None:
        """Return which rows satisfy a predicate, or None if each has to be read to know it.

        `words` has what is known of strings from earlier batches.
        """
        return None

    def is_refused(self, place: int) -> bool:
        """Tell whether a row is not an event: it satisfies nothing, not even `true`."""
        return place in self.faults

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Event]:
        if self._events is not None:
            return iter(self._events)
        return (Event(str(place), self.attributes(place)) for place in range(len(self)))


class Matches(Struct, frozen=True):
    """Per event, the ids of the subscriptions it satisfies, ascending and without repeats.

    Event i has `ids[offsets[i]:offsets[i + 1]]`.
    """

    offsets: IdArray  # int64[events + 1]
    ids: IdArray  # int64[matches]

    @classmethod
    def of(cls, per_event: Iterable[Iterable[int]]) -> Matches:
        """Return the matches given as one collection of ids per event, in any order."""
        rows = [np.unique(np.fromiter(ids, dtype=np.int64)) for ids in per_event]
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        return cls(offsets, np.concatenate(rows) if rows else _NO_IDS)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, event: int) -> IdArray:
        if not 0 <= event < len(self):
            raise IndexError(event)
        return self.ids[self.offsets[event] : self.offsets[event + 1]]

    @property
    def rows(self) -> IdArray:
        """Return, for each match, the row of its event."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def to_lists(self) -> list[list[int]]:
        """Return the ids per event as plain lists."""
        return [self[event].tolist() for event in range(len(self))]
