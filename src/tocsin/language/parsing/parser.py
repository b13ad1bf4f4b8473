"""Text to the model."""

from __future__ import annotations

from tocsin.language.parsing.queries import QueryReader
from tocsin.language.printer import to_text
from tocsin.model.conditions import Condition
from tocsin.model.errors import LanguageError
from tocsin.model.queries import Filter, Query, Sequence, View


def parse(text: str) -> Query:
    """Return the query that `text` says, or raise `LanguageError` at the place where it cannot be read.

    >>> parse("symbol = 'IBM' and price > 100").condition.conditions[1]
    Predicate(subject=Attribute(path='price', alias=None), operator=<Operator.GT: '>'>,
              operands=(Literal(value=100, kind=<Kind.NUMBER: 'number'>),))
    """
    return read(text).result


def parse_condition(text: str) -> Condition:
    """Return the condition that `text` says; a whole query is refused."""
    query = parse(text)
    if isinstance(query, Filter) and query.stream is None and not query.select:
        return query.condition
    raise LanguageError("a condition alone is needed here", text=text, offset=len(text) - len(text.lstrip()))


def parse_template(text: str) -> tuple[Query, tuple[str, ...]]:
    """Return the query that `text` says and the names of its parameters, in order of appearance."""
    reader = read(text, template=True)
    return reader.result, tuple(reader.parameters or ())


def canonical(query: Query, *, template: bool = False) -> Query:
    """Return `query` as its own text is read.

    So every rule of the language holds for it, whatever it was made from; a `LanguageError` shows that text.
    """
    try:
        text = to_text(query)
    except RecursionError:
        raise LanguageError("the query is nested too deeply", text="", offset=0) from None
    result = read(text, template=template).result
    if result != query and not _is_folded(query):
        raise LanguageError(
            "the query holds more than its text can say", text=text, offset=0, length=len(text)
        )
    return result


def _is_folded(query: Query) -> bool:
    """Tell whether the text of `query` is read as something simpler: a filter, or a table without its alias."""
    if isinstance(query, Sequence):
        return len(query.steps) == 1
    return isinstance(query, View) and len(query.tables) == 1 and query.tables[0].alias is not None


def read(text: str, *, template: bool = False) -> QueryReader:
    """Return the reader of `text` with its result, its parameters and its warnings."""
    reader = QueryReader(text, template=template)
    try:
        reader.result = reader.query()
    except RecursionError:
        raise reader.fail("nested too deeply for the stack that is left") from None
    return reader
