"""The protocol of the three runtimes: filters, sequences and views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from tocsin.language import Cnf, Dnf, Template, TemplateRows
from tocsin.language.template.columns import Column
from tocsin.matching import IdArray
from tocsin.model.errors import TemplateError
from tocsin.model.options import SubscriptionOptions

Compiled = TypeVar("Compiled")


class QueryRuntime(Protocol[Compiled]):
    """Runs one kind of query for all its subscriptions at once. The caller makes one call at a time.

    Each runtime also has a `process`, which takes and returns what its kind of query needs, as columns: events to
    `FilterMatches`, ordered events to `SequenceMatches`, rows of tables to `AnswerChanges`. `Pipeline` calls them in turn.
    """

    def compile(
        self, query: Any, id_: str, options: SubscriptionOptions, normal: Dnf | Cnf | None = None, /
    ) -> Compiled:
        """Return the query as this runtime executes it, or raise `SubscriptionError`.

        `normal` is a normal form of its condition, if one is known.
        """

    def compile_rows(
        self, template: Template, rows: TemplateRows, ids: Sequence[str], options: SubscriptionOptions
    ) -> tuple[Compiled, list[TemplateError]]:
        """Return a template as this runtime executes it, and the errors of rows that cannot be compiled."""

    def add(
        self,
        numbers: IdArray,
        compiled: Compiled,
        columns: Mapping[str, Column],
        options: SubscriptionOptions,
        id_: str,
        /,
    ) -> object:
        """Add one subscription for each number; those of a template have a row of `columns` each."""

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove subscriptions; numbers of other kinds are passed over."""

    def advance(self, time: int) -> object:
        """Return what time completes without an event."""
