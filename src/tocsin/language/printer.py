"""The model as canonical text: parsing the text gives the same model back."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tocsin.language.parsing.foreign import FOREIGN_SYNTAX
from tocsin.language.parsing.tokens import BARE_NAME, RESERVED
from tocsin.model import queries, terms
from tocsin.model.conditions import TRUE, And, Condition, Constant, Not, Operator, Or, Predicate, any_of
from tocsin.model.timestamps import format_rfc3339
from tocsin.model.values import Opaque, Value

_RANGES: Final = (Operator.BETWEEN, Operator.NOT_BETWEEN)
_LISTS: Final = (Operator.IN, Operator.NOT_IN)
_LOOSE: Final = (terms.ArithmeticOperator.ADD, terms.ArithmeticOperator.SUBTRACT)


def to_text(query: queries.Query) -> str:
    """Return the canonical text of `query`: `parse(to_text(query)) == query`.

    >>> from tocsin.language.parsing.parser import parse
    >>> to_text(parse("select price FROM stock s WHERE s.name LIKE 'I%' and NOT (s.price<=1e2)"))
    "select price from stock where name starts with 'I' and not price <= 100"
    """
    if isinstance(query, queries.Filter):
        return _filter(query)
    if isinstance(query, queries.View):
        return _view(query)
    return _sequence(query)


def source_text(source: queries.Source) -> str:
    """Return a step's source as it is written after `from`: a name, or a sequence in parentheses on one line."""
    return _source(source, None)


def condition_text(condition: Condition, *, sequence: bool = False) -> str:
    """Return the canonical text of a condition; in a `sequence`, an attribute called `duration` is quoted."""
    if isinstance(condition, Predicate):
        return _predicate(condition, sequence)
    if isinstance(condition, Constant):
        return "true" if condition.truth else "false"
    if isinstance(condition, Not):
        inner = condition_text(condition.condition, sequence=sequence)
        return f"not ({inner})" if isinstance(condition.condition, (And, Or)) else f"not {inner}"
    loose = (And, Or) if isinstance(condition, And) else Or
    parts = [
        f"({text})" if isinstance(member, loose) else text
        for member in condition.conditions
        for text in [condition_text(member, sequence=sequence)]
    ]
    return (" and " if isinstance(condition, And) else " or ").join(parts)


def term_text(term: terms.Term, *, sequence: bool = False) -> str:
    """Return the canonical text of a term."""
    if isinstance(term, terms.Literal):
        return value_text(term.value)
    if isinstance(term, terms.Attribute):
        return _attribute(term, sequence)
    if isinstance(term, terms.Parameter):
        return f":{term.name}"
    if isinstance(term, terms.Arithmetic):
        return _arithmetic(term, sequence)
    if isinstance(term, terms.Negative):
        inner = term_text(term.term, sequence=sequence)
        plain = isinstance(term.term, (terms.Attribute, terms.Parameter, terms.Aggregate, terms.Elapsed))
        return f"-{inner}" if plain else f"-({inner})"
    if isinstance(term, terms.Elapsed):
        return "duration"
    if isinstance(term, terms.Span):
        return f"{term.amount} {term.unit.removesuffix('s') if term.amount == 1 else term.unit}"
    if isinstance(term, terms.Alternatives):
        return f"({condition_text(any_of(list(term.predicates)), sequence=sequence)})"
    if isinstance(term, terms.Star):
        return "*"
    inner = "*" if term.argument is None else term_text(term.argument, sequence=sequence)
    return f"{term.function}({inner})"


def value_text(value: Value) -> str:
    """Return a constant as the language writes it."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return f"timestamp '{format_rfc3339(value)}'"
    if isinstance(value, Opaque):  # no constant is: of an event
        return f"a {value.type} value"
    return repr(value)


def name_text(name: str, *, dots: bool = True) -> str:
    """Return a name, in double quotes where it needs them; without `dots`, a dotted name is quoted."""
    bare = BARE_NAME.fullmatch(name) and name.lower() not in RESERVED and (dots or "." not in name)
    return name if bare else '"' + name.replace('"', '""') + '"'


def hyphenated_name(term: terms.Term) -> str | None:
    """Return the quoted name that a subtraction of names may stand for: `"content-type"` for `content - type`; else None."""
    parts: list[str] = []
    while isinstance(term, terms.Arithmetic) and term.operator is terms.ArithmeticOperator.SUBTRACT:
        right = term.right
        if isinstance(right, terms.Attribute) and right.alias is None:
            parts.append(right.path)
        elif isinstance(right, terms.Literal) and isinstance(right.value, int):
            parts.append(str(right.value))
        else:
            return None
        term = term.left
    if not parts or not isinstance(term, terms.Attribute):
        return None
    name = name_text("-".join([term.path, *reversed(parts)]))
    return name if term.alias is None else f"{name_text(term.alias, dots=False)}.{name}"


def default_name(term: terms.Term) -> str:
    """Return the name of a selected item without a name of its own."""
    return term.path if isinstance(term, terms.Attribute) else term_text(term)


def _attribute(attribute: terms.Attribute, sequence: bool) -> str:
    if attribute.alias is not None:
        return f"{name_text(attribute.alias, dots=False)}.{_path_after_alias(attribute.path)}"
    if sequence and attribute.path.lower() == "duration":
        return f'"{attribute.path}"'
    return name_text(attribute.path, dots=not sequence)


def _path_after_alias(path: str) -> str:
    return path if BARE_NAME.fullmatch(path) else '"' + path.replace('"', '""') + '"'


def _arithmetic(term: terms.Arithmetic, sequence: bool) -> str:
    """Return the text of an operation, with the parentheses that its operands need."""
    left, right = term_text(term.left, sequence=sequence), term_text(term.right, sequence=sequence)
    tight = term.operator not in _LOOSE
    if tight and isinstance(term.left, terms.Arithmetic) and term.left.operator in _LOOSE:
        left = f"({left})"
    if isinstance(term.right, terms.Arithmetic) and (tight or term.right.operator in _LOOSE):
        right = f"({right})"
    return f"{left} {term.operator} {right}"


def _predicate(predicate: Predicate, sequence: bool) -> str:
    """Return the text of a predicate."""
    operator = predicate.operator
    if isinstance(predicate.subject, terms.Alternatives):
        return term_text(predicate.subject, sequence=sequence)
    subject = term_text(predicate.subject, sequence=sequence)
    operands = [term_text(operand, sequence=sequence) for operand in predicate.operands]
    if operator in _RANGES:
        return f"{subject} {operator} {operands[0]} and {operands[1]}"
    if operator in _LISTS:
        if (
            predicate.operands
            and isinstance(predicate.operands[0], terms.Parameter)
            and predicate.operands[0].many
        ):
            return f"{subject} {operator} {operands[0]}"
        return f"{subject} {operator} ({', '.join(operands)})"
    return f"{subject} {operator} {operands[0]}" if operands else f"{subject} {operator}"


def _filter(query: queries.Filter) -> str:
    if query.stream is None:
        return condition_text(query.condition)
    select = f"select {_items(query.select)} " if query.select else ""
    return f"{select}from {_source_name(query.stream)}{_clause('where', query.condition, sequence=False)}"


def _sequence(query: queries.Sequence, *, nested: bool = False) -> str:
    """Return the text of a sequence: one clause per line, or all in one line if it is nested."""
    parts = [_step(step) for step in query.steps]
    if query.within is not None:
        parts.append(f"within {term_text(query.within)}")
    if query.select:
        parts.append(f"select {_items(query.select, sequence=True)}")
    if query.publish is not None:
        parts.append(f"publish as {name_text(query.publish)}")
    return (" " if nested else "\n").join(parts)


def _step(step: queries.Step) -> str:
    text = f"{queries.keyword_of(step)} {_source(step.source, step.alias)}"
    for word, clause in queries.clauses_of(step):
        text += _compute(clause) if isinstance(clause, tuple) else _clause(word, clause)
    return text


def _clause(word: str, condition: Condition, *, sequence: bool = True) -> str:
    return "" if condition == TRUE else f" {word} {condition_text(condition, sequence=sequence)}"


def _compute(computations: tuple[queries.Computation, ...]) -> str:
    if not computations:
        return ""
    return " compute " + ", ".join(
        f"{name_text(c.name, dots=False)} = {term_text(c.term, sequence=True)}" for c in computations
    )


def _source(source: queries.Source, alias: str | None) -> str:
    text = _source_name(source) if isinstance(source, str) else f"({_sequence(source, nested=True)})"
    return text if alias is None else f"{text} {_alias(alias)}"


def _source_name(name: str) -> str:
    return f'"{name}"' if name.lower() == "table" else name_text(name)


def _items(items: tuple[queries.SelectItem, ...], *, sequence: bool = False) -> str:
    return ", ".join(
        text if item.name == default_name(item.term) else f"{text} as {name_text(item.name, dots=False)}"
        for item in items
        for text in [term_text(item.term, sequence=sequence)]
    )


def _view(query: queries.View) -> str:
    items = _items(query.select) or "*"
    tables = " join ".join(_table(table) for table in query.tables)
    on = f" on {condition_text(query.on)}" if len(query.tables) > 1 else ""
    distinct = "distinct " if query.distinct else ""
    where = _clause("where", query.where, sequence=False)
    return f"select {distinct}{items} from {tables}{on}{where}"  # noqa: S608 - Tocsin's language, not SQL


def _table(table: queries.Table) -> str:
    name = f"table {_source_name(table.name)}"
    if table.alias is None:
        return name
    return f"{name} {_alias(table.alias)}"


def _alias(alias: str) -> str:
    """Return an alias; without quotes, `left`, `union` and the like read as SQL's keywords."""
    return f'"{alias}"' if alias.lower() in FOREIGN_SYNTAX else name_text(alias, dots=False)
