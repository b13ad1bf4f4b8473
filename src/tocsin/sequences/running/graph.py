"""The merged graph of all automata: adding shares existing places, removing frees places that nothing shares."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import numpy as np
from msgspec import Struct

from tocsin.language.normal import Cnf, Dnf
from tocsin.language.template.columns import Column
from tocsin.matching import IdArray
from tocsin.matching.statistics import Statistics
from tocsin.model.conditions import TRUE, Condition, all_of
from tocsin.model.terms import Literal, Parameter
from tocsin.model.values import Kind
from tocsin.sequences._kernels import graph as kernels
from tocsin.sequences.automaton import Automaton, Edge, Node, Output
from tocsin.sequences.modes import Optimisations
from tocsin.sequences.programs import Program
from tocsin.sequences.running import digests
from tocsin.sequences.running.columns import Columns
from tocsin.sequences.running.forms import Form, FormTable, constant_rows, has_any, programs_of
from tocsin.sequences.running.predicates import PredicateIndex
from tocsin.sequences.running.state import FOREVER, NONE, Death, PlaceColumn, Places, new_state
from tocsin.sequences.running.values import ValueCodec
from tocsin.structures import blocks, hash_index
from tocsin.structures.array_types import Bools, Int64s
from tocsin.structures.growth import grown
from tocsin.structures.hash_index import HashIndex
from tocsin.structures.interning import InterningTable

_UNBOUNDED: Final = Literal(FOREVER, Kind.NUMBER)
_FEW: Final = 16  # successors of a place whose edges are tested directly instead of being in the FR-index
_EDGE: Final = 1
_REBIND: Final = 2


class _Static(Struct, frozen=True):
    """A static part in the normal form that a matcher takes, and in the one by which places are identified."""

    normal: Dnf | Cnf
    canonical: Dnf | Cnf


class _Level(Struct, frozen=True):
    """One place of an automaton, for all rows of a template: its form, and the normal forms of its static parts."""

    stream: str  # of the event that enters it
    edge: Edge
    target: Node | Output
    form: Form
    direct: Form | None  # of places whose edge is in no index, although it has a static part
    enters: _Static | None
    guards: _Static | None = None
    rebinds: _Static | None = None

    @property
    def longest(self) -> Literal | Parameter:
        """Return how many ticks an instance may last at the place."""
        longest = self.target.longest if isinstance(self.target, Node) else None
        if longest is None:
            return _UNBOUNDED
        return longest if isinstance(longest, Parameter) else Literal(longest, Kind.NUMBER)


class GraphWriter:
    """Adds automata to the state and removes them."""

    def __init__(
        self, codec: ValueCodec, mode: Optimisations, matcher: str | None, statistics: Statistics | None
    ) -> None:
        self.state = new_state()
        self._codec = codec
        self._mode = mode
        self.edges = PredicateIndex(matcher, statistics)
        self.filters = PredicateIndex(matcher, statistics)
        self.columns = Columns(codec)
        self.forms = FormTable(self.columns)
        self.streams: InterningTable[str] = InterningTable()
        self._serial = 0
        self.deaths = np.zeros(len(Death), dtype=np.int64)  # at places that were removed

    def add(self, automaton: Automaton, rows: int, columns: Mapping[str, Column]) -> IdArray:
        """Add an automaton for each row of a template; return the end of each, which needs a holder."""
        made: list[IdArray] = []
        levels: list[_Level] = []
        sources = np.full(rows, -1 - self._stream(automaton.stream), dtype=np.int64)
        try:
            self._find_levels(automaton, columns, levels)
            for level in levels:
                sources = self._enter(level, sources, columns, made)
        except BaseException:
            self._undo(made)
            raise
        finally:
            forms = [form for level in levels for form in (level.form, level.direct) if form is not None]
            self.forms.drop_unused(self.state, [form.number for form in forms])
        return sources

    def _find_levels(self, automaton: Automaton, columns: Mapping[str, Column], found: list[_Level]) -> None:
        """Append the places of an automaton to `found`; an automaton that cannot be added is refused here."""
        streams = [automaton.stream, *(node.stream for node in automaton.nodes)]
        targets: list[Node | Output] = [*automaton.nodes, automaton.output]
        known: Condition = TRUE  # the guard of the node before, which an event has satisfied
        for stream, edge, target in zip(streams, automaton.edges, targets, strict=True):
            enters = self._static(self.edges, stream, edge.test.static, known)
            guards = rebinds = None
            if isinstance(target, Node):
                known = target.guard.test.static
                guards = self._static(self.filters, target.stream, known, TRUE)
                if target.rebind is not None:
                    rebinds = self._static(self.edges, target.stream, target.rebind.test.static, known)
            keyed = self._mode.instances
            self.state, form = self.forms.of(self.state, edge, target, keyed=keyed)
            direct = None
            if found and enters is not None and _is_plain(edge.test.whole, columns):
                self.state, direct = self.forms.of(self.state, edge, target, keyed=keyed, direct=True)
            found.append(_Level(stream, edge, target, form, direct, enters, guards, rebinds))

    def _static(
        self, predicates: PredicateIndex, stream: str, static: Condition, known: Condition
    ) -> _Static | None:
        """Return the normal forms of a static part with the known condition, which makes it more selective."""
        if static == TRUE:
            return None
        whole = all_of([known, static])
        normal = predicates.normal(stream, whole)
        return _Static(normal, predicates.canonical(stream, whole, normal))

    def _enter(
        self, level: _Level, sources: IdArray, columns: Mapping[str, Column], made: list[IdArray]
    ) -> IdArray:
        """Return the place of a level for each row; new places are filled, and appended to `made`."""
        programs = programs_of(level.edge, level.target, direct=False)
        statics = (level.enters, level.guards, level.rebinds)
        digest = digests.combine(
            [
                level.form.digest,
                *(
                    digests.digest_of(0) if one is None else digests.digest_of_normal(one.canonical, columns)
                    for one in statics
                ),
                *(digests.digest_of_value(one, columns) for program in programs for one in program.constants),
                digests.digest_of_value(level.longest, columns),
            ]
        )
        if not self._mode.merging:
            self._serial += len(sources)
            own = np.arange(self._serial - len(sources), self._serial, dtype=np.uint64)
            digest = own, own
        graph = self.state.graph
        index = hash_index.with_room(graph.entries, len(sources))
        places = grown(self.state.places, Places._fields, hash_index.top_entry(index) + len(sources))
        self.state = self.state._replace(graph=graph._replace(entries=index), places=places)
        entries, fresh = _find_or_enter(index, sources, digest)
        rows = np.flatnonzero(fresh)
        new = entries[rows]
        if len(new):
            made.append(new)
            direct = np.empty(len(new), dtype=np.bool_)
            kernels.enter_places(self.state.places, new, sources[rows], _FEW, direct)
            direct &= level.direct is not None
            for form, chosen in ((level.direct, direct), (level.form, ~direct)):
                if form is not None and chosen.any():
                    self._fill(level, form, new[chosen], rows[chosen], columns)
        return entries

    def _fill(
        self, level: _Level, form: Form, new: IdArray, rows: IdArray, template_columns: Mapping[str, Column]
    ) -> None:
        """Fill new places with their constants, filters and edges."""
        places, direct = self.state.places, form is level.direct
        columns = {name: column[rows] for name, column in template_columns.items()}
        values = constant_rows(
            programs_of(level.edge, level.target, direct=direct), template_columns, rows, self._codec
        )
        if values.shape[1]:
            self._codec.pin(values)
            constants = blocks.with_room(self.state.program.constants, 2 * values.shape[0] * values.shape[1])
            self.state = self.state._replace(program=self.state.program._replace(constants=constants))
            kernels.write_constants(self.state.program, places, new, values)
        longest = level.longest
        ticks = np.array([longest.value]) if isinstance(longest, Literal) else columns[longest.name]
        places.longest[new] = _whole(ticks)
        if places.rows[new[0], PlaceColumn.SOURCE] < 0:
            self.streams.retain(np.full(len(new), self.streams.code(level.stream), dtype=np.int64))
        if isinstance(level.target, Node):
            code = self._stream(level.target.stream)
            self.streams.retain(np.full(len(new), code, dtype=np.int64))
            places.rows[new, PlaceColumn.FILTER] = self.state.graph.stream_filter[code]
            places.rows[new, PlaceColumn.KEYED] = self.state.forms.key_count[form.number] > 0
        self.forms.retain(form.number, len(new))
        places.rows[new, PlaceColumn.FORM] = form.number  # from now on `_free` can undo everything
        if level.enters is None or direct:
            kernels.link_always(places, self.state.graph.stream_always, new)
        if level.guards is not None and isinstance(level.target, Node):
            self._add_filters(level.guards.normal, level.target.stream, new, columns)
        if level.rebinds is not None:
            places.rows[new, PlaceColumn.STATICS] |= _REBIND
            self.edges.add(2 * new + 1, level.rebinds.normal, columns)
        if level.enters is not None and not direct:
            places.rows[new, PlaceColumn.STATICS] |= _EDGE
            self.edges.add(2 * new, level.enters.normal, columns)

    def _add_filters(
        self, guards: Dnf | Cnf, stream: str, new: IdArray, columns: Mapping[str, Column]
    ) -> None:
        """Set the filters of nodes; nodes with equal guards share one."""
        code = self._stream(stream)
        digest = digests.digest_of_normal(guards, columns)
        self._room_for_filters(len(new))
        graph = self.state.graph
        entries, fresh = _find_or_enter(graph.filters, np.full(len(new), code, dtype=np.int64), digest)
        rows = np.flatnonzero(fresh)
        graph.active[entries[rows]] = NONE
        graph.filter_uses[entries[rows]] = 0
        np.add.at(graph.filter_uses, entries, 1)
        self.state.places.rows[new, PlaceColumn.FILTER] = entries
        if len(rows):
            taken = {name: column[rows] for name, column in columns.items()}
            self.filters.add(entries[rows], guards, taken)

    def _stream(self, name: str) -> int:
        """Return the code of a stream; a new stream gets a filter for the nodes that take every event of it."""
        known = name in self.streams.codes
        code = self.streams.code(name)
        if not known:
            self._room_for_filters(1)
            graph = grown(self.state.graph, ("stream_filter", "stream_always"), code + 1)
            entry = hash_index.insert(graph.filters, code, 0, 0)
            graph.active[entry], graph.filter_uses[entry] = NONE, 1
            graph.stream_filter[code], graph.stream_always[code] = entry, NONE
            self.state = self.state._replace(graph=graph)
        return code

    def _room_for_filters(self, more: int) -> None:
        graph = self.state.graph
        filters = hash_index.with_room(graph.filters, more)
        graph = graph._replace(filters=filters)
        graph = grown(graph, ("active", "filter_uses"), hash_index.top_entry(filters) + more)
        self.state = self.state._replace(graph=graph)

    def remove(self, holders: IdArray, feeding: IdArray) -> None:
        """Remove holders, and the places that nothing else uses."""
        freed = np.empty(hash_index.live_entries(self.state.graph.entries), dtype=np.int64)
        count = kernels.leave_holders(self.state, holders, feeding, freed)
        self._free(freed[:count])

    def _undo(self, made: list[IdArray]) -> None:
        """Remove places that got no holder."""
        for new in reversed(made):
            places = self.state.places
            for place in new.tolist():
                source = int(places.rows[place, PlaceColumn.SOURCE])
                if source >= 0:
                    places.rows[source, PlaceColumn.USES] -= 1
                if not places.rows[place, PlaceColumn.STATICS] & _EDGE:
                    kernels.unlink_always(places, self.state.graph.stream_always, place)
                hash_index.remove(self.state.graph.entries, place)
            self._free(new[places.rows[new, PlaceColumn.FORM] >= 0])

    def _free(self, freed: IdArray) -> None:
        """Release the constants, filters, edges, streams and forms of places that were removed."""
        places = self.state.places
        forms = places.rows[freed, PlaceColumn.FORM].astype(np.int64)
        is_node = self.state.forms.is_end[forms] == 0
        kernels.clear_places(self.state, freed[is_node])
        self.deaths += places.deaths[freed].sum(axis=0)
        self.edges.remove(2 * freed[places.rows[freed, PlaceColumn.STATICS] & _EDGE > 0])
        self.edges.remove(2 * freed[places.rows[freed, PlaceColumn.STATICS] & _REBIND > 0] + 1)
        self._free_filters(places.rows[freed[is_node], PlaceColumn.FILTER].astype(np.int64))
        started = -1 - places.rows[freed, PlaceColumn.SOURCE][
            places.rows[freed, PlaceColumn.SOURCE] < 0
        ].astype(np.int64)
        for number in np.unique(forms).tolist():
            form = self.forms[number]
            own = freed[forms == number]
            if form.constants:
                firsts = places.rows[own, PlaceColumn.CONSTANTS].astype(np.int64)
                rows = (firsts[:, None] + np.arange(form.constants)).reshape(-1)
                self._codec.unpin(self.state.program.constants.rows[rows])
                kernels.drop_constants(self.state.program, places, own, form.constants)
            if form.stream is not None:
                code = self.streams.codes[form.stream]
                self._release_streams(np.full(len(own), code, dtype=np.int64))
            self.forms.release(self.state, number, len(own))
        self._release_streams(started)

    def _free_filters(self, filters: IdArray) -> None:
        """Count one use of these filters less, and remove those that nothing uses any more."""
        graph = self.state.graph
        of_stream = (graph.filters.keys[filters, 1:] == 0).all(axis=1)  # they have no digest
        np.subtract.at(graph.filter_uses, filters[~of_stream], 1)
        ended = np.unique(filters[~of_stream][graph.filter_uses[filters[~of_stream]] == 0])
        self.filters.remove(ended)
        for entry in ended.tolist():
            hash_index.remove(graph.filters, entry)

    def _release_streams(self, codes: IdArray) -> None:
        known = {self.streams.value(code): code for code in np.unique(codes).tolist()}
        for name in self.streams.release(codes):
            hash_index.remove(self.state.graph.filters, int(self.state.graph.stream_filter[known[name]]))


def _find_or_enter(index: HashIndex, first: IdArray, digest: digests.Digest) -> tuple[IdArray, Bools]:
    """Return the entry of each key, and whether it is new."""
    rows = len(first)
    entries, fresh = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.bool_)
    kernels.find_or_enter(index, first, *digests.digest_rows(digest, rows), entries, fresh)
    return entries, fresh


def _whole(column: Column) -> Int64s:
    """Return ticks as integers of 64 bits, rounded down."""
    if column.dtype.kind in "iu":
        return np.minimum(column, FOREVER).astype(np.int64)
    ticks = [max(-FOREVER, min(FOREVER, int(value // 1))) for value in column.tolist()]
    return np.array(ticks, dtype=np.int64)


def _is_plain(program: Program | None, columns: Mapping[str, Column]) -> bool:
    """Tell whether a program can test a static part; only a matcher compares a row's timestamp with text."""
    if program is None:
        return False
    names = {constant.name for constant in program.constants if isinstance(constant, Parameter)}
    return not any(has_any(columns[name], (datetime, tuple)) for name in names)
