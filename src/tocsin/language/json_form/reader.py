"""Queries from their JSON form; every error has the path to its fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from tocsin.language.json_form.writer import ANY_OF
from tocsin.language.parsing.parser import canonical
from tocsin.language.parsing.terms import UNITS
from tocsin.language.parsing.tokens import BARE_NAME
from tocsin.language.patterns import like
from tocsin.language.printer import default_name
from tocsin.model import queries, terms
from tocsin.model.conditions import (
    FALSE,
    TRUE,
    And,
    Condition,
    Not,
    Operator,
    Or,
    Predicate,
    clause_predicate,
)
from tocsin.model.errors import FormError, KindError, LanguageError
from tocsin.model.timestamps import parse_timestamp
from tocsin.model.values import Kind, json_type

_OPERATORS: Final = {operator.value: operator for operator in Operator}
_ARITHMETIC: Final = {operator.value: operator for operator in terms.ArithmeticOperator}
_AGGREGATES: Final = {function.value: function for function in terms.AggregateFunction}

_PREDICATE_ARITIES: Final[Mapping[str, tuple[int, int | None]]] = dict.fromkeys(
    (*_OPERATORS, ANY_OF), (1, None)
)
_CONDITION_ARITIES: Final[Mapping[str, tuple[int, int | None]]] = dict.fromkeys(_OPERATORS, (2, 2)) | {
    "between": (3, 3), "not between": (3, 3), "in": (1, None), "not in": (1, None),
    "is missing": (1, 1), "is present": (1, 1), "and": (2, None), "or": (2, None), "not": (1, 1),
}  # fmt: skip
_TERM_ARITIES: Final[Mapping[str, tuple[int, int | None]]] = (
    dict.fromkeys(_ARITHMETIC, (2, 2)) | dict.fromkeys(_AGGREGATES, (1, 1)) | {
        "count": (0, 1), "negative": (1, 1), "duration": (0, 0), "attribute": (1, 2), "timestamp": (1, 1),
        "span": (2, 2), "all": (0, 0), "parameter": (1, 1), "parameters": (1, 1),
    }
)  # fmt: skip
"""The fewest and the most arguments of each operator."""


def from_json(form: object, *, template: bool = False) -> queries.Query:
    """Return the query of a decoded JSON form, or raise `FormError` with the path to the fault.

    A bare condition is a filter over every stream. Parameters are allowed in a `template` only.

    >>> from_json({"filter": {"where": {">": [{"attribute": ["price"]}, {"attribute": []}]}}})
    Traceback (most recent call last):
    tocsin.model.errors.FormError: `attribute` takes 1 to 2 arguments, got 0 - at `$.filter.where.>[1].attribute`
    """
    # The reader checks the form; the rules of the language are checked once, by the parser.
    try:
        return canonical(_read_query(form), template=template)
    except LanguageError as fault:
        raise FormError(f"the language does not allow this form: {fault}") from None
    except RecursionError:
        raise FormError("nested too deeply") from None


def predicate_from_json(form: object) -> Predicate:
    """Return the predicate that `predicate_to_json` wrote, unchanged.

    Unlike `from_json` it neither rewrites nor checks the predicate, so it is many times faster.
    """
    word, raw, path = _node(form, "$", "a predicate", _PREDICATE_ARITIES)
    if word == ANY_OF:
        return clause_predicate(tuple(map(predicate_from_json, raw)))
    subject, *operands = _read_terms(raw, path)
    return Predicate(subject, _OPERATORS[word], tuple(operands))


def _read_query(form: object) -> queries.Query:
    """Read any query; a form without the name of a kind is the condition of a filter."""
    readers: dict[str, Callable[[object, str], queries.Query]] = {
        "filter": _read_filter,
        "sequence": _read_sequence,
        "view": _read_view,
    }
    kind = next(iter(form)) if isinstance(form, Mapping) and len(form) == 1 else None
    if isinstance(form, Mapping) and kind in readers:
        return readers[kind](form[kind], f"$.{kind}")
    return queries.Filter(_read_condition(form, "$"))


def _read_filter(form: object, path: str) -> queries.Filter:
    fields = _fields(form, path, {"where", "from", "select"})
    return queries.Filter(
        _clause(fields, "where", path), _optional_name(fields, "from", path), _read_select(fields, path)
    )


def _read_sequence(form: object, path: str) -> queries.Sequence:
    """Read a sequence."""
    fields = _fields(form, path, {"steps", "within", "select", "publish"})
    steps = _list(fields.get("steps"), f"{path}.steps")
    if not steps:
        raise FormError("a sequence needs at least one step", f"{path}.steps")
    within = _read_term(fields["within"], f"{path}.within") if "within" in fields else None
    if not isinstance(within, (terms.Span, terms.Parameter, type(None))):
        raise FormError('`within` takes {"span": [10, "minutes"]} or a parameter', f"{path}.within")
    return queries.Sequence(
        tuple(_read_step(step, f"{path}.steps[{i}]", first=i == 0) for i, step in enumerate(steps)),
        within,
        _read_select(fields, path),
        _optional_name(fields, "publish", path),
    )


def _read_step(form: object, path: str, *, first: bool) -> queries.Step:
    """Read one step; only the first step of a sequence is a `from`."""
    if not isinstance(form, Mapping):
        raise FormError(f"expected an object, got {json_type(form)}", path)
    word = next((w for w in queries.STEPS if w in form), None)
    if word is None or (word == "from") is not first:
        raise FormError("the first step is a `from`, every other a `next` or a `fold`", path)
    clauses = queries.CLAUSES[word]
    fields = _fields(form, path, {word, "as", *clauses})
    raw = fields[word]
    source: queries.Source = (
        _read_sequence(raw, f"{path}.{word}") if isinstance(raw, Mapping) else _name(raw, f"{path}.{word}")
    )
    alias = _optional_name(fields, "as", path)
    contents: dict[str, object] = {
        queries.field_of(one): _clause(fields, one, path) for one in clauses if one != "compute"
    }
    if "compute" in fields:
        contents["compute"] = _read_compute(fields, path)
    return queries.STEPS[word](source, alias, **contents)  # type: ignore[arg-type]


def _read_compute(fields: Mapping[str, object], path: str) -> tuple[queries.Computation, ...]:
    pairs = _pairs(fields, "compute", path, name_first=True)
    return tuple(queries.Computation(name, term) for name, term in pairs)


def _read_select(fields: Mapping[str, object], path: str) -> tuple[queries.SelectItem, ...]:
    pairs = _pairs(fields, "select", path, name_first=False)
    return tuple(queries.SelectItem(term, name) for name, term in pairs)


def _pairs(
    fields: Mapping[str, object], key: str, path: str, *, name_first: bool
) -> list[tuple[str, terms.Term]]:
    """Read a list of names and terms; a selected term needs no name."""
    pairs: list[tuple[str, terms.Term]] = []
    for i, item in enumerate(_list(fields.get(key, []), f"{path}.{key}")):
        where = f"{path}.{key}[{i}]"
        if not name_first and not isinstance(item, list):
            term = _read_term(item, where)
            pairs.append((default_name(term), term))
            continue
        parts = _list(item, where)
        if len(parts) != 2:
            raise FormError(f"expected {'[name, term]' if name_first else '[term, name]'}", where)
        at = 0 if name_first else 1
        pairs.append((_name(parts[at], f"{where}[{at}]"), _read_term(parts[1 - at], f"{where}[{1 - at}]")))
    return pairs


def _read_view(form: object, path: str) -> queries.View:
    """Read a view over one table or two joined tables."""
    fields = _fields(form, path, {"tables", "select", "distinct", "on", "where"})
    tables: list[queries.Table] = []
    for i, item in enumerate(_list(fields.get("tables"), f"{path}.tables")):
        where = f"{path}.tables[{i}]"
        parts = [_name(part, where) for part in (item if isinstance(item, list) else [item])]
        if len(parts) not in (1, 2):
            raise FormError("a table is its name, or [name, alias]", where)
        tables.append(queries.Table(*parts))
    if len(tables) not in (1, 2):
        raise FormError(f"a view reads one table or joins two, got {len(tables)}", f"{path}.tables")
    distinct = fields.get("distinct", False)
    if not isinstance(distinct, bool):
        raise FormError(f"expected true or false, got {json_type(distinct)}", f"{path}.distinct")
    return queries.View(
        _read_select(fields, path),
        tuple(tables),
        _clause(fields, "on", path),
        _clause(fields, "where", path),
        distinct,
    )


def _clause(fields: Mapping[str, object], key: str, path: str) -> Condition:
    return _read_condition(fields[key], f"{path}.{key}") if key in fields else TRUE


def _read_condition(form: object, path: str) -> Condition:
    """Read a condition."""
    if isinstance(form, bool):
        return TRUE if form else FALSE
    word, raw, path = _node(form, path, "a condition", _CONDITION_ARITIES)
    if word in _OPERATORS:
        return _predicate(_OPERATORS[word], _read_terms(raw, path), path)
    members = tuple(_read_condition(member, f"{path}[{i}]") for i, member in enumerate(raw))
    return Not(members[0]) if word == "not" else And(members) if word == "and" else Or(members)


def _predicate(operator: Operator, arguments: list[terms.Term], path: str) -> Predicate:
    """Return a predicate; the pattern of a `like` is rewritten as the parser rewrites it."""
    pattern = arguments[1] if len(arguments) > 1 else None
    if operator in (Operator.LIKE, Operator.NOT_LIKE) and isinstance(pattern, terms.Literal):
        if pattern.kind is not Kind.STRING:
            raise FormError("`like` needs its pattern as a string", f"{path}[1]")
        try:
            return like(arguments[0], str(pattern.value), negated=operator is Operator.NOT_LIKE)
        except ValueError as fault:
            raise FormError(f"the pattern cannot be read: {fault}", f"{path}[1]") from None
    return Predicate(arguments[0], operator, tuple(arguments[1:]))


def _read_term(form: object, path: str) -> terms.Term:
    """Read a term."""
    if isinstance(form, (bool, int, float, str)):
        try:
            return terms.constant(form)
        except KindError as fault:
            raise FormError(str(fault), path) from None
    word, raw, path = _node(form, path, "a term", _TERM_ARITIES)
    if word in _LEAVES:
        return _LEAVES[word](raw, path)
    if word in _ARITHMETIC:
        return terms.Arithmetic(_ARITHMETIC[word], *_read_terms(raw, path))
    if word in _AGGREGATES:
        return terms.Aggregate(_AGGREGATES[word], *_read_terms(raw, path))
    return terms.Negative(*_read_terms(raw, path)) if word == "negative" else terms.Elapsed()


def _read_terms(raw: list[object], path: str) -> list[terms.Term]:
    return [_read_term(term, f"{path}[{i}]") for i, term in enumerate(raw)]


def _read_attribute(raw: list[object], path: str) -> terms.Attribute:
    return terms.Attribute(*(_name(part, f"{path}[{i}]") for i, part in enumerate(raw)))


def _read_timestamp(raw: list[object], path: str) -> terms.Literal:
    time = parse_timestamp(raw[0]) if isinstance(raw[0], str) else None
    if time is None:
        raise FormError(
            f"`{raw[0]}` is not a timestamp of ISO 8601 such as 2026-01-01T00:00:00Z", f"{path}[0]"
        )
    return terms.Literal(time, Kind.TIMESTAMP)


def _read_span(raw: list[object], path: str) -> terms.Span:
    amount, unit = raw
    is_number = isinstance(amount, (int, float)) and not isinstance(amount, bool)
    if not is_number or not isinstance(unit, str) or unit not in UNITS:
        raise FormError(f"`span` takes a number and one of {', '.join(terms.SpanUnit)}", path)
    return terms.Span(amount, UNITS[unit])  # type: ignore[arg-type]


def _read_parameter(raw: list[object], path: str, *, many: bool = False) -> terms.Parameter:
    name = _name(raw[0], f"{path}[0]")
    if not BARE_NAME.fullmatch(name) or "." in name:
        raise FormError(f"a parameter's name is one word, not `{name}`", f"{path}[0]")
    return terms.Parameter(name, many)


def _read_star(_: list[object], __: str) -> terms.Star:
    return terms.Star()


_LEAVES: Final[dict[str, Callable[[list[object], str], terms.Term]]] = {
    "attribute": _read_attribute,
    "timestamp": _read_timestamp,
    "span": _read_span,
    "all": _read_star,
    "parameter": _read_parameter,
    "parameters": partial(_read_parameter, many=True),
}


def _node(
    form: object, path: str, what: str, arities: Mapping[str, tuple[int, int | None]]
) -> tuple[str, list[object], str]:
    """Return a node's operator, its arguments and the path to them; raise if their number is wrong."""
    if not isinstance(form, Mapping):
        raise FormError(f"expected {what}, got {json_type(form)}", path)
    if len(form) != 1:
        raise FormError(f"{what} is an object with one key, its operator; this has {len(form)}", path)
    word, raw = next(iter(form.items()))
    path = f"{path}.{word}"
    if word not in arities:
        raise FormError(f"there is no operator `{word}` among {what.removeprefix('a ')}s", path)
    if not isinstance(raw, list):
        raise FormError(f"expected a list, got {json_type(raw)}", path)
    least, most = arities[word]
    if len(raw) < least or (most is not None and len(raw) > most):
        count = str(least) if least == most else f"{least} or more" if most is None else f"{least} to {most}"
        raise FormError(f"`{word}` takes {count} argument{'' if count == '1' else 's'}, got {len(raw)}", path)
    return word, raw, path


def _fields(form: object, path: str, known: set[str]) -> Mapping[str, object]:
    if not isinstance(form, Mapping):
        raise FormError(f"expected an object, got {json_type(form)}", path)
    unknown = [str(key) for key in form if key not in known]
    if unknown:
        raise FormError(f"unknown key `{unknown[0]}`; known are {', '.join(sorted(known))}", path)
    return form


def _list(form: object, path: str) -> list[object]:
    if not isinstance(form, list):
        raise FormError(f"expected a list, got {json_type(form)}", path)
    return form


def _name(form: object, path: str) -> str:
    if not isinstance(form, str) or not form:
        raise FormError(f"expected a name, got {json_type(form)}", path)
    return form


def _optional_name(fields: Mapping[str, object], key: str, path: str) -> str | None:
    return _name(fields[key], f"{path}.{key}") if key in fields else None
