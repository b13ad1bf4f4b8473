"""What an index refuses of sequences and views: the same as an engine, for the same reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from tocsin.language import Template, TemplateRows, to_normal
from tocsin.language.parsing.cursor import closest
from tocsin.language.sequence_shapes import ShapedSequence
from tocsin.model import Event, Query, View
from tocsin.model import Sequence as SequenceQuery
from tocsin.model.errors import NormalFormError, SubscriptionError, TemplateError
from tocsin.model.options import ALWAYS, SubscriptionOptions
from tocsin.model.ticks import StreamTicks, Tick
from tocsin.sequences.matcher import InspectableSequenceMatcher
from tocsin.sequences.runtime import CompiledSequences, SequenceRuntime
from tocsin.views.catalog import TableCatalog
from tocsin.views.compilation import compile_view
from tocsin.views.compiled import CompiledRowView, CompiledView


class _NoEvents:
    """The reorder buffer of an index, to which no event comes."""

    def latest(self, streams: Iterable[str], tick: int) -> int:  # noqa: ARG002 - the protocol
        return ALWAYS

    def is_late(self, event: Event) -> bool:  # noqa: ARG002 - the protocol
        return False

    def forget(self, stream: str) -> None:
        """Forget nothing."""


class _NoMatcher:
    """The matcher of an index, which runs no sequence."""

    def add(self, numbers: Any, compiled: Any, columns: Any) -> None:
        """Add nothing."""

    def remove(self, numbers: Any) -> None:
        """Remove nothing."""


class QueryChecks:
    """Compiles sequences and views, and knows which sequences read and publish which streams.

    It is the runtime of sequences without its matchers, so that ticks and cycles are judged by the engine's own rules. A number
    stands for subscriptions that came together: they read and publish the same streams.
    """

    def __init__(self, tables: TableCatalog, ticks: Mapping[str, int]) -> None:
        self.tables = tables
        new_matcher = cast("Callable[[], InspectableSequenceMatcher]", _NoMatcher)
        self._sequences = SequenceRuntime(StreamTicks(), _NoEvents(), new_matcher)
        for stream, tick in ticks.items():
            self._sequences.declare(stream, tick)

    def declare(self, stream: str, tick: Tick) -> None:
        """Set the length of a stream's ticks, before any sequence reads it."""
        self._sequences.declare(stream, tick)

    @property
    def ticks(self) -> dict[str, int]:
        """Return the microseconds of a tick of each stream that has others than one microsecond, declared or published."""
        return dict(self._sequences.ticks.lengths)

    @property
    def declared(self) -> dict[str, int]:
        """Return the microseconds of a tick of each stream for which they were declared."""
        return self._sequences.declared

    def compile_shape(
        self, sequence: ShapedSequence, id_: str, options: SubscriptionOptions
    ) -> CompiledSequences:
        """Return a compiled sequence of a known shape, or raise `SubscriptionError`."""
        return self._sequences.compile_shape(sequence.shape, id_, options)

    def compile_query(
        self,
        query: Query,
        id_: str,
        options: SubscriptionOptions,
        columns: Mapping[str, Any] | None = None,
    ) -> CompiledSequences | CompiledView:
        """Return a compiled sequence or view, or raise `SubscriptionError`; a template's parameters are in `columns`."""
        if isinstance(query, SequenceQuery):
            return self._sequences.compile(query, id_, options)
        assert isinstance(query, View)  # noqa: S101 - filters are compiled elsewhere
        return self._compile_view(query, id_, columns)

    def compile_rows(
        self, template: Template, rows: TemplateRows, ids: Sequence[str], options: SubscriptionOptions
    ) -> tuple[Any, list[TemplateError]]:
        """Return a compiled template of sequences or views, and the errors of rows that cannot be compiled."""
        if isinstance(template.query, SequenceQuery):
            return self._sequences.compile_rows(template, rows, ids, options)
        return self.compile_query(template.query, "template", options, rows.columns), []

    def _compile_view(self, view: View, id_: str, columns: Mapping[str, Any] | None) -> CompiledView:
        for table in view.tables:
            if table.name not in self.tables:
                near = closest(table.name, tuple(self.tables.keys))
                hint = f"did you mean `{near}`? If not, declare it" if near else "declare it"
                raise SubscriptionError(
                    f"the index has no table `{table.name}`; {hint} first: "
                    f'`index.table("{table.name}", key="…")`, `tables={{"{table.name}": "…"}}`, or '
                    f"`--table {table.name}=KEY`",
                    id_,
                )
        compiled = compile_view(view, id_, columns)
        if isinstance(compiled, CompiledRowView):
            try:
                to_normal(compiled.condition)
            except NormalFormError as fault:
                raise SubscriptionError(str(fault), id_) from fault
        return compiled

    # which sequences are there

    def add(self, number: int, compiled: CompiledSequences, id_: str) -> None:
        """Add sequences that came together; raise `SubscriptionError` if they do not go with those that are there."""
        alone = CompiledSequences(compiled.compiled, compiled.tick, None, compiled.in_units)
        self._sequences.add(np.array([number], dtype=np.int64), alone, {}, SubscriptionOptions(), id_)

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove sequences."""
        self._sequences.remove(numbers)

    def suspend(self, numbers: Iterable[int]) -> None:
        """Leave sequences out of the search for cycles: new ones are about to replace them."""
        self._sequences.suspend(numbers)

    def resume(self) -> None:
        """Undo `suspend` after a failed replacement."""
        self._sequences.resume()
