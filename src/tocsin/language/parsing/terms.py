"""Terms: constants, parameters, functions and arithmetic."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final, TypeAlias

from tocsin.language.parsing import conditions
from tocsin.language.parsing.cursor import Cursor, closest
from tocsin.language.parsing.foreign import FOREIGN_CALLS, SUBQUERY
from tocsin.language.parsing.names import attribute
from tocsin.language.parsing.tokens import END, NAME, NUMBER, PARAMETER, QUOTED, RESERVED, STRING
from tocsin.model import terms
from tocsin.model.conditions import And, Condition, Constant, Not, Or, Predicate
from tocsin.model.timestamps import parse_timestamp
from tocsin.model.values import Kind

Parsed: TypeAlias = terms.Term | Condition
"""The content of parentheses, whose type is known only once it has been read."""

MAX_OPERATIONS: Final = 256

UNITS: Final = {name: unit for unit in terms.SpanUnit for name in (unit.value, unit.value[:-1])}
_SHORT_UNITS: Final = {
    "us": "microseconds", "ms": "milliseconds", "s": "seconds", "sec": "seconds", "secs": "seconds",
    "m": "minutes", "min": "minutes", "mins": "minutes", "h": "hours", "hr": "hours", "hrs": "hours",
    "d": "days", "w": "weeks", "wk": "weeks", "wks": "weeks", "month": "days or weeks, for months differ in length",
    "months": "days or weeks, for months differ in length", "year": "days or weeks, for years differ in length",
    "years": "days or weeks, for years differ in length", "yr": "days or weeks, for years differ in length",
    "yrs": "days or weeks, for years differ in length",
}  # fmt: skip
_ARITHMETIC: Final = frozenset(("+", "-", "*", "/"))
_BEFORE_A_CONDITION: Final = ("and", "or", "not", "where", "on", "while")
_PAIRS: Final = {
    ("*", "*"): "there are no powers: multiply, as in price * price",
    ("/", "/"): "a comment begins with `--`; the operations on numbers are + - * /",
    ("/", "*"): "a comment begins with `--`, and ends with the line",
    ("-", ">"): "did you mean `next`? A sequence is: from stock a next stock b",
    ("~", "*"): "for any case write (?i) in the expression: name ~ '(?i)^x'",
    ("!~", "*"): "for any case write (?i) in the expression: name !~ '(?i)^x'",
}
"""Two signs that are one sign elsewhere."""

_DATE: Final = tuple(map(re.compile, ("[0-9]{4}", "-", "0[1-9]|1[0-2]", "-", "0[1-9]|[12][0-9]|3[01]")))
"""The tokens of a day that is written without quotes."""

_FUNCTIONS: Final = tuple(function.value for function in terms.AggregateFunction)
_CONDITIONS: Final = frozenset((Predicate, And, Or, Not, Constant))


def is_condition(parsed: Parsed) -> bool:
    """Return whether `parsed` is a condition, rather than a term."""
    return type(parsed) in _CONDITIONS


def term(cursor: Cursor, what: str) -> terms.Term:
    """Read a term; `what` names it in an error."""
    at = cursor.at
    if (cursor.kinds[at] is NUMBER or cursor.kinds[at] is STRING) and cursor.words[at + 1] not in _ARITHMETIC:
        return _atom(cursor)  # type: ignore[return-value]
    return as_term(cursor, additive(cursor), at, what)


def as_term(cursor: Cursor, parsed: Parsed, at: int, what: str) -> terms.Term:
    """Return `parsed`, or raise at token `at` if it is a condition."""
    if type(parsed) in _CONDITIONS:
        raise cursor.fail(f"{what} must be a value, but this is a condition", at=at)
    return parsed  # type: ignore[return-value]


def additive(cursor: Cursor) -> Parsed:
    """Read terms joined by + and -."""
    at = cursor.at
    left = _multiplicative(cursor)
    while cursor.words[cursor.at] in ("+", "-"):
        left = _arithmetic(cursor, left, at, _multiplicative)
    if cursor.at - at == len(_DATE) and _is_date(cursor, at):
        date = "".join(cursor.texts[at : cursor.at])
        cursor.warnings.append(f"`{date}` is a subtraction; a time is written: timestamp '{date}'")
    return left


def _is_date(cursor: Cursor, at: int) -> bool:
    """Tell whether two subtractions from token `at` on look like a day, such as 2026-01-31."""
    return all(one.fullmatch(cursor.texts[at + i]) for i, one in enumerate(_DATE))


def _multiplicative(cursor: Cursor) -> Parsed:
    at = cursor.at
    left = _atom(cursor)
    while cursor.words[cursor.at] in ("*", "/"):
        left = _arithmetic(cursor, left, at, _atom)
    return left


def _arithmetic(
    cursor: Cursor, left: Parsed, at: int, operand: Callable[[Cursor], Parsed]
) -> terms.Arithmetic:
    """Read a sign and the operand after it; the left one began at token `at`."""
    sign = cursor.words[cursor.at]
    cursor.at += 1
    second = cursor.at
    right = operand(cursor)
    _count_operation(cursor, second - 1)
    for parsed, token in ((left, at), (right, second)):
        term = as_term(cursor, parsed, token, f"a side of `{sign}`")
        if _is_no_number(term):
            raise cursor.fail(f"`{sign}` needs numbers on both sides", at=token)
    return terms.Arithmetic(terms.ArithmeticOperator(sign), left, right)  # type: ignore[arg-type]


def _is_no_number(term: terms.Term) -> bool:
    """Return whether a term can never be a number."""
    return isinstance(term, terms.Span) or (isinstance(term, terms.Literal) and term.kind is not Kind.NUMBER)


def _count_operation(cursor: Cursor, at: int) -> None:
    """Count one more operation, and raise if the term has too many: each makes it deeper."""
    cursor.operations += 1
    if cursor.operations > MAX_OPERATIONS:
        raise cursor.fail(f"more than {MAX_OPERATIONS} operations in one term", at=at)


def _atom(cursor: Cursor) -> Parsed:
    """Parse a name, a constant, a parameter, a parenthesis or a minus sign with its operand."""
    at = cursor.at
    kind = cursor.kinds[at]
    if kind == NAME:
        return _word(cursor, at)
    if kind == NUMBER:
        return _number(cursor, at, 1)
    if kind == STRING:
        cursor.at += 1
        return terms.Literal(string(cursor, at), Kind.STRING)
    if kind == QUOTED:
        return attribute(cursor)
    if kind == PARAMETER:
        return parameter(cursor, at)
    word = cursor.words[at]
    if word == "(":
        return _parenthesis(cursor, at)
    if word == "-":
        return _minus(cursor, at)
    raise _nothing_here(cursor, at)


def _nothing_here(cursor: Cursor, at: int) -> Exception:
    """Return the error for a token that begins neither a value nor a condition."""
    before = cursor.words[at - 1] if at else ""
    if before in _BEFORE_A_CONDITION:
        return cursor.unexpected(f"a condition is missing after `{before}`", (), ("a condition",))
    word = cursor.words[at]
    if word == "select":
        return cursor.fail("a query cannot stand within a query here", at=at, suggestion=SUBQUERY)
    doubled = before in conditions.COMPARISONS and word in conditions.COMPARISONS
    hint = (
        f"`{before}{word}` is not a comparison; use one of = != < <= > >="
        if doubled
        else _PAIRS.get((before, word))
    )
    if word == "~":
        hint = "did you mean `not`? `~` tests a regular expression, as in name ~ '^x'"
    return cursor.unexpected("a value is missing", (), ("a value", "a name"), hint)


def _word(cursor: Cursor, at: int) -> terms.Term:
    """Parse a term that begins with a name: a keyword, a function, a timestamp, `duration` or an attribute."""
    word = cursor.words[at]
    if word in RESERVED:
        return _keyword(cursor, at, word)
    if cursor.words[at + 1] == "(":
        return _aggregate(cursor, at)
    if word == "timestamp":
        if cursor.kinds[at + 1] == STRING:
            return _timestamp(cursor, at + 1)
        _refuse_unquoted_time(cursor, at + 1)
    if word == "duration" and cursor.scope.sequence:
        if not cursor.scope.elapsed:
            raise cursor.fail(
                "`duration` is allowed in `on`, `while` and `where` only",
                at=at,
                suggestion='an attribute of that name is written in double quotes: "duration"',
            )
        cursor.at += 1
        cursor.timed = True
        return terms.Elapsed()
    return attribute(cursor)


def _keyword(cursor: Cursor, at: int, word: str) -> terms.Literal:
    """Parse `true` or `false`; raise for every other keyword."""
    if word in ("true", "false"):
        cursor.at += 1
        return terms.Literal(word == "true", Kind.BOOLEAN)
    if word == "null":
        raise cursor.fail(
            "null is the absence of a value and equals nothing",
            at=at,
            suggestion="did you mean `is missing` or `is present`?",
        )
    if cursor.words[at + 1] in conditions.COMPARISONS:
        raise cursor.keyword_as_name(at)
    raise _nothing_here(cursor, at)


def _number(cursor: Cursor, at: int, sign: int) -> terms.Literal | terms.Span:
    """Parse a number, or a time span if a unit of time follows."""
    digits = cursor.texts[at]
    try:
        value = sign * (int(digits) if digits.isdigit() else float(digits))
    except ValueError:  # Python bounds how many digits it turns into an integer
        raise cursor.fail(f"a number of {len(digits):,} digits is too long", at=at) from None
    if isinstance(value, float) and math.isinf(value):
        raise cursor.fail("the number is too large: the limit is about 1.8e308", at=at)
    cursor.at += 1
    if cursor.kinds[cursor.at] == NAME and cursor.words[cursor.at] not in RESERVED:
        unit = _unit(cursor, cursor.at)
        if unit is not None:
            cursor.at += 1
            refuse_second_unit(cursor, cursor.at)
            return _span(cursor, value, unit, at)
    return terms.literal(value) if type(value) is float else terms.Literal(value, Kind.NUMBER)


def _unit(cursor: Cursor, at: int) -> terms.SpanUnit | None:
    """Return the unit of time at token `at`, or None; raise if the word is a misspelt unit."""
    word = cursor.words[at]
    unit = UNITS.get(word)
    if unit is None:
        meant = _SHORT_UNITS.get(word) or closest(word, tuple(UNITS), 0.75)
        if meant:
            raise unknown_unit_error(cursor, at, meant)
    return unit


def unknown_unit_error(cursor: Cursor, at: int, meant: str | None = None) -> Exception:
    """Return the error for the word at token `at`, which stands in the place of a unit of time."""
    meant = meant or closest(cursor.words[at], tuple(UNITS), 0.5)
    hint = f"write {meant}" if " " in (meant or "") else f"did you mean `{meant}`?"
    return cursor.fail(
        f"`{cursor.texts[at]}` is not a unit of time",
        at=at,
        expected=tuple(f"`{u.value}`" for u in terms.SpanUnit),
        suggestion=hint if meant else None,
    )


def refuse_second_unit(cursor: Cursor, at: int) -> None:
    """Raise if another length of time begins at token `at`, directly after one."""
    if cursor.kinds[at] == NUMBER and cursor.words[at + 1] in (*UNITS, *_SHORT_UNITS):
        raise cursor.fail(
            "a length of time is one number and one unit",
            at=at,
            suggestion="an hour and a half is `90 minutes` or `1.5 hours`",
        )


def _span(cursor: Cursor, amount: int | float, unit: terms.SpanUnit, at: int) -> terms.Span:
    if amount < 0 or (unit is terms.SpanUnit.TICKS and amount != int(amount)):
        raise cursor.fail("a length of time is not negative, and a whole number of ticks", at=at)
    cursor.timed = True
    return terms.Span(amount, unit)


def string(cursor: Cursor, at: int) -> str:
    """Return the string constant at token `at`."""
    inner = cursor.texts[at][1:-1]
    return inner.replace("''", "'") if "'" in inner else inner


def _timestamp(cursor: Cursor, at: int) -> terms.Literal:
    """Parse the string of a timestamp."""
    written = string(cursor, at)
    time = parse_timestamp(written)
    if time is None:
        raise cursor.fail(
            f"`{written}` is not a timestamp of ISO 8601",
            at=at,
            expected=("a text such as '2026-01-01T00:00:00Z' or '2026-01-01'",),
        )
    cursor.at = at + 1
    return terms.Literal(time, Kind.TIMESTAMP)


def _refuse_unquoted_time(cursor: Cursor, at: int) -> None:
    """Raise if the token after `timestamp` can only be a time that is not in single quotes."""
    kind, token = cursor.kinds[at], cursor.texts[at]
    if kind == PARAMETER and cursor.parameters is not None:
        raise cursor.fail(
            "a parameter stands in the place of a whole time", at=at - 1, suggestion=f"write: time > {token}"
        )
    if kind == NUMBER or (kind == QUOTED and token[1:2].isdigit()):
        raise cursor.fail(
            "a time stands in single quotes",
            at=at,
            suggestion="write: timestamp '2026-01-01T00:00:00Z', or timestamp '2026-01-01'",
        )


def parameter(cursor: Cursor, at: int, *, many: bool = False) -> terms.Parameter:
    """Read the parameter at token `at`; `many` if it stands for a list."""
    name = cursor.texts[at][1:]
    if cursor.parameters is None:
        raise cursor.fail(
            f"the parameter `:{name}` needs a template, whose rows give its values",
            at=at,
            suggestion="use `Template` or `subscribe_many`, or write the value itself",
        )
    cursor.parameters[name] = None
    cursor.at += 1
    return terms.Parameter(name, many)


def _parenthesis(cursor: Cursor, at: int) -> Parsed:
    """Parse a condition or a term in parentheses."""
    cursor.enter(at)
    cursor.at += 1
    inner = conditions.disjunction(cursor)
    if cursor.words[cursor.at] != ")":
        raise unclosed_error(cursor, at)
    cursor.at += 1
    cursor.depth -= 1
    return inner


def unclosed_error(cursor: Cursor, at: int) -> Exception:
    """Return the error for the parenthesis at token `at`, which is not closed at the next token."""
    if cursor.kinds[cursor.at] == END:
        return cursor.fail("the parenthesis that opens here is never closed", at=at, expected=("`)`",))
    hint = None
    if cursor.words[cursor.at] == ",":
        ends = cursor.words[at - 1] == "between"
        hint = (
            "the ends of a range are joined with `and`: between 1 and 5"
            if ends
            else "a list stands after `in`: a in (1, 2)"
        )
    return cursor.unexpected("a parenthesis is not closed", ("and", "or", ")"), (), hint)


def _minus(cursor: Cursor, at: int) -> terms.Negative | terms.Literal | terms.Span:
    """Parse a minus sign and its operand; a negative number becomes a constant."""
    cursor.at += 1
    if cursor.kinds[cursor.at] == NUMBER:
        return _number(cursor, cursor.at, -1)
    cursor.enter(at)
    _count_operation(cursor, at)
    inner = as_term(cursor, _atom(cursor), at + 1, "the operand of a minus sign")
    cursor.depth -= 1
    if _is_no_number(inner):
        raise cursor.fail("only a number can have a minus sign", at=at)
    return terms.Negative(inner)


def _aggregate(cursor: Cursor, at: int) -> terms.Aggregate:
    """Parse a call of an aggregate function."""
    word = cursor.words[at]
    if word not in _FUNCTIONS:
        raise _unknown_function(cursor, word, at)
    if cursor.scope.aggregates is not None:
        raise cursor.fail(f"`{word}` is not allowed here: {cursor.scope.aggregates}", at=at)
    cursor.at += 2
    function = terms.AggregateFunction(word)
    if cursor.words[cursor.at] == "*":
        if function is not terms.AggregateFunction.COUNT:
            raise cursor.fail(f"`{word}` needs the attribute it is taken over; only `count` takes `*`")
        cursor.at += 1
        argument = None
    elif cursor.words[cursor.at] == "distinct":
        raise cursor.fail(
            f"`{word}` takes every value, also those that are equal",
            suggestion="the different values are a view, and as many as its answer has: select distinct sector from table stock",
        )
    elif cursor.words[cursor.at] == ")":
        raise cursor.fail(
            f"`{word}` needs the attribute it is taken over",
            suggestion="the number of rows or events is count(*)" if word == "count" else None,
        )
    else:
        kept, cursor.scope.aggregates = cursor.scope.aggregates, "aggregates do not nest"
        argument = term(cursor, f"the argument of `{word}`")
        cursor.scope.aggregates = kept
    if cursor.words[cursor.at] == ",":
        raise cursor.fail(
            f"`{word}` takes one value of many rows or events, not several of one",
            suggestion="compare the values of one event: low < high",
        )
    cursor.expect(")", f"the argument of `{word}` is not closed")
    return terms.Aggregate(function, argument)


def _unknown_function(cursor: Cursor, word: str, at: int) -> Exception:
    """Return the error for a call of anything but an aggregate."""
    allowed = cursor.scope.aggregates is None
    near = closest(word, _FUNCTIONS) if allowed else None
    known = FOREIGN_CALLS.get(word.rsplit(".", 1)[-1])
    listed = ", ".join(f"`{f}`" for f in _FUNCTIONS)
    return cursor.fail(
        f"there is no function `{cursor.texts[at]}`"
        + ("" if allowed else f"; the functions are the aggregates {listed}, in views and folds"),
        at=at,
        expected=tuple(f"`{f}`" for f in _FUNCTIONS) if allowed else (),
        suggestion=f"did you mean `{near}`?" if near else known,
    )
