"""Getting a sequence ready to be run: what it means, and the automaton that finds it."""

from __future__ import annotations

from tocsin.model.queries import Sequence
from tocsin.sequences.compiling import compile_expression
from tocsin.sequences.contents import reads_of
from tocsin.sequences.runner import Prepared
from tocsin.sequences.ticks import Ticks
from tocsin.sequences.translation import expression_of


def prepare(
    query: Sequence,
    ticks: Ticks,
    *,
    index_edges: bool = True,
    index_filters: bool = True,
    full: bool = False,
) -> Prepared:
    """Return a sequence ready to be run, or raise `SubscriptionError` saying what in it cannot be.

    Without `index_edges` or `index_filters`, the conditions of edges, or of guards, are wholly in their programs. With
    `full`, its witnesses have every event of their steps.

    >>> from tocsin.language import parse
    >>> prepared = prepare(parse("from stock a next stock b on b.name = a.name"), Ticks())
    >>> prepared.automaton.nodes[0].guard.keys, prepared.reads
    ((('name', 0),), frozenset({'stock'}))
    """
    expression = expression_of(query, ticks)
    automaton = compile_expression(
        expression,
        index_edges=index_edges,
        index_filters=index_filters,
        full=full,
        publish=query.publish,
    )
    return Prepared(query, expression, automaton, reads_of(expression), query.publish, full)
