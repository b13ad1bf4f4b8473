"""Queries from text."""

from __future__ import annotations

from tocsin.language.parsing.cursor import Cursor
from tocsin.language.parsing.queries import query_of
from tocsin.language.printer import to_text
from tocsin.model.conditions import Condition
from tocsin.model.errors import LanguageError
from tocsin.model.queries import Filter, Query, Sequence, View
from tocsin.model.terms import Star


def parse(text: str) -> Query:
    """Return the query of `text`, or raise `LanguageError` with the position of the fault.

    >>> parse("symbol = 'IBM' and price > 100").condition.conditions[1]
    Predicate(subject=Attribute(path='price', alias=None), operator=<Operator.GT: '>'>,
              operands=(Literal(value=100, kind=<Kind.NUMBER: 'number'>),))
    """
    return read(text)[0]


def parse_condition(text: str) -> Condition:
    """Return the condition of `text`; raise `LanguageError` for any other query."""
    query = parse(text)
    if isinstance(query, Filter) and query.stream is None and not query.select:
        return query.condition
    raise LanguageError(
        "only a condition is allowed here, without `from` and `select`",
        text=text,
        offset=len(text) - len(text.lstrip()),
    )


def parse_template(text: str) -> tuple[Query, tuple[str, ...]]:
    """Return the query of `text` and the names of its parameters, in order of appearance."""
    query, cursor = read(text, template=True)
    return query, tuple(cursor.parameters or ())


def canonical(query: Query, *, template: bool = False) -> Query:
    """Return `query` printed and parsed again.

    So a query from any source follows every rule of the language; a `LanguageError` shows the printed text.
    """
    try:
        text = to_text(query)
    except RecursionError:
        raise LanguageError("the query is nested too deeply", text="", offset=0) from None
    result, _ = read(text, template=template)
    if result != query and not _is_folded(query):
        raise LanguageError(
            "the query has parts that the language cannot express", text=text, offset=0, length=len(text)
        )
    return result


def _is_folded(query: Query) -> bool:
    """Return whether the text of `query` parses to a simpler query: a filter, a table without its alias, `*` alone."""
    if len(query.select) == 1 and isinstance(query.select[0].term, Star):
        return True
    if isinstance(query, Sequence):
        return len(query.steps) == 1
    return isinstance(query, View) and len(query.tables) == 1 and query.tables[0].alias is not None


def read(text: str, *, template: bool = False) -> tuple[Query, Cursor]:
    """Return the query of `text`, and the cursor that has read it, with the parameters and warnings."""
    cursor = Cursor(text, template=template)
    try:
        return query_of(cursor), cursor
    except RecursionError:
        raise cursor.fail("nested too deeply for the stack that is left") from None
