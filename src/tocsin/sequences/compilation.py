"""Compiling a sequence: its expression of the algebra, and the automaton that finds it."""

from __future__ import annotations

from msgspec import Struct

from tocsin.model.queries import Sequence
from tocsin.sequences.algebra import Expression, reads_of
from tocsin.sequences.automaton import Automaton
from tocsin.sequences.compiling import compile_expression
from tocsin.sequences.ticks import Ticks
from tocsin.sequences.translation import expression_of


class CompiledSequence(Struct, frozen=True):
    """A sequence, or a template of sequences, as a `SequenceMatcher` takes it.

    `reads` are the streams it reads, including those of sequences in parentheses, and `publishes` the stream it
    feeds. With `full`, its matches have every event of their steps.
    """

    query: Sequence
    expression: Expression
    automaton: Automaton
    reads: frozenset[str]
    publishes: str | None = None
    full: bool = False


def compile_sequence(
    query: Sequence, ticks: Ticks, *, index_edges: bool = True, index_filters: bool = True, full: bool = False
) -> CompiledSequence:
    """Return a compiled sequence, or raise `SubscriptionError` naming the part that cannot be compiled.

    Without `index_edges` (or `index_filters`) the conditions of edges (or of guards) stay whole in their programs.

    >>> from tocsin.language import parse
    >>> compiled = compile_sequence(parse("from stock a next stock b on b.name = a.name"), Ticks())
    >>> compiled.automaton.nodes[0].guard.keys, compiled.reads
    ((('name', 0),), frozenset({'stock'}))
    """
    expression = expression_of(query, ticks)
    automaton = compile_expression(
        expression, index_edges=index_edges, index_filters=index_filters, full=full, publish=query.publish
    )
    return CompiledSequence(query, expression, automaton, reads_of(expression), query.publish, full)
