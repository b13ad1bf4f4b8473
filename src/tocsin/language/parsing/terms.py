"""Terms: names, constants, parameters and arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from sys import intern
from typing import Final, TypeAlias

from tocsin.language.parsing.cursor import Cursor, closest
from tocsin.language.parsing.tokens import END, NAME, NUMBER, PARAMETER, QUOTED, RESERVED, STRING
from tocsin.model import terms
from tocsin.model.conditions import And, Condition, Constant, Not, Or, Predicate
from tocsin.model.timestamps import parse_rfc3339
from tocsin.model.values import Kind

Parsed: TypeAlias = terms.Term | Condition
"""The content of parentheses, whose type is known only once it has been read."""

COMPARISON_SIGNS: Final = frozenset(("=", "!=", "<>", "<", "<=", ">", ">="))

MAX_OPERATIONS: Final = 256

UNITS: Final = {unit.value: unit for unit in terms.SpanUnit} | {
    unit.value[:-1]: unit for unit in terms.SpanUnit
}
_SHORT_UNITS: Final = {
    "us": "microseconds", "ms": "milliseconds", "s": "seconds", "sec": "seconds", "secs": "seconds",
    "m": "minutes", "min": "minutes", "mins": "minutes", "h": "hours", "hr": "hours", "hrs": "hours",
    "d": "days", "w": "weeks", "month": "days or weeks, for months differ in length",
    "months": "days or weeks, for months differ in length", "year": "days or weeks, for years differ in length",
    "years": "days or weeks, for years differ in length",
}  # fmt: skip
_ARITHMETIC: Final = frozenset(("+", "-", "*", "/"))
_BEFORE_A_CONDITION: Final = ("and", "or", "not", "where", "on", "while")
_FUNCTIONS: Final = tuple(function.value for function in terms.AggregateFunction)
_CONDITIONS: Final = frozenset((Predicate, And, Or, Not, Constant))


def is_condition(parsed: Parsed) -> bool:
    """Return whether `parsed` is a condition, rather than a term."""
    return type(parsed) in _CONDITIONS


@dataclass(slots=True)
class NameScope:
    """The names that are known at the current position."""

    aliases: list[str] = field(default_factory=list)
    sequence: bool = False
    joined: bool = False  # every name needs the alias of its table
    single: str | None = None  # the alias or name of the only source, which may precede any attribute
    unnamed: list[str] = field(default_factory=list)  # streams of a sequence whose events have no alias
    last: bool = False  # `last.x` is allowed
    elapsed: bool = False  # `duration` is allowed
    aggregates: str | None = "an aggregate needs a table: select min(price) from table stock"


class TermReader(Cursor):
    """Reads terms. `parameters` collects the names of parameters, and is None if the text is not a template."""

    def __init__(self, text: str, *, template: bool = False) -> None:
        super().__init__(text)
        self.scope = NameScope()
        self.parameters: dict[str, None] | None = {} if template else None
        self.operations = 0  # arithmetic operations in the present term so far
        self.warnings: list[str] = []
        self.timed = False  # whether a length of time has been read

    def disjunction(self) -> Parsed:
        """Read a whole expression; a subclass reads conditions."""
        return self.sum()

    def term(self, what: str) -> terms.Term:
        """Read a term; `what` names it in an error."""
        at = self.at
        if (self.kinds[at] is NUMBER or self.kinds[at] is STRING) and self.words[at + 1] not in _ARITHMETIC:
            return self._atom()  # type: ignore[return-value]
        return self.as_term(self.sum(), at, what)

    def as_term(self, parsed: Parsed, at: int, what: str) -> terms.Term:
        """Return `parsed`, or raise at token `at` if it is a condition."""
        if type(parsed) in _CONDITIONS:
            raise self.fail(f"{what} must be a value, but this is a condition", at=at)
        return parsed  # type: ignore[return-value]

    def sum(self) -> Parsed:
        """Read terms joined by + and -."""
        at = self.at
        left = self._product()
        while (sign := self.words[self.at]) == "+" or sign == "-":
            self.at += 1
            second = self.at
            left = self._arithmetic(sign, left, at, self._product(), second)
        return left

    def _product(self) -> Parsed:
        at = self.at
        left = self._atom()
        while (sign := self.words[self.at]) == "*" or sign == "/":
            self.at += 1
            second = self.at
            left = self._arithmetic(sign, left, at, self._atom(), second)
        return left

    def count_operation(self, at: int) -> None:
        """Count one more operation, and raise if the term has too many: each makes it deeper."""
        self.operations += 1
        if self.operations > MAX_OPERATIONS:
            raise self.fail(f"more than {MAX_OPERATIONS} operations in one term", at=at)

    def _arithmetic(self, sign: str, left: Parsed, at: int, right: Parsed, second: int) -> terms.Arithmetic:
        self.count_operation(second - 1)
        for parsed, place in ((left, at), (right, second)):
            term = self.as_term(parsed, place, f"a side of `{sign}`")
            if isinstance(term, terms.Span) or (
                isinstance(term, terms.Literal) and term.kind is not Kind.NUMBER
            ):
                raise self.fail(f"`{sign}` needs numbers on both sides", at=place)
        return terms.Arithmetic(terms.ArithmeticOperator(sign), left, right)  # type: ignore[arg-type]

    def _atom(self) -> Parsed:
        at = self.at
        kind = self.kinds[at]
        if kind == NAME:
            return self._word(at)
        if kind == NUMBER:
            return self._number(at, 1)
        if kind == STRING:
            self.at += 1
            return terms.Literal(self.string(at), Kind.STRING)
        if kind == QUOTED:
            return self.attribute()
        if kind == PARAMETER:
            return self._parameter(at)
        word = self.words[at]
        if word == "(":
            return self._parenthesis(at)
        if word == "-":
            return self._minus(at)
        raise self._nothing_here(at)

    def _nothing_here(self, at: int) -> Exception:
        """Return the error for a token that begins neither a value nor a condition."""
        before = self.words[at - 1] if at else ""
        if before in _BEFORE_A_CONDITION:
            return self.unexpected(f"a condition is missing after `{before}`", (), ("a condition",))
        doubled = before in COMPARISON_SIGNS and self.words[at] in COMPARISON_SIGNS
        return self.unexpected(
            "a value is missing",
            (),
            ("a value", "a name"),
            f"`{before}{self.words[at]}` is not a comparison; use one of = != < <= > >=" if doubled else None,
        )

    def _word(self, at: int) -> terms.Term:
        word = self.words[at]
        if word in RESERVED:
            return self._reserved(at, word)
        if self.words[at + 1] == "(":
            return self._aggregate(at)
        if word == "timestamp" and self.kinds[at + 1] == STRING:
            return self._timestamp(at + 1)
        if word == "duration" and self.scope.sequence:
            if not self.scope.elapsed:
                raise self.fail(
                    "`duration` is allowed in `on`, `while` and `where` only",
                    at=at,
                    suggestion='an attribute of that name is written in double quotes: "duration"',
                )
            self.at += 1
            self.timed = True
            return terms.Elapsed()
        return self.attribute()

    def _reserved(self, at: int, word: str) -> terms.Literal:
        if word in ("true", "false"):
            self.at += 1
            return terms.Literal(word == "true", Kind.BOOLEAN)
        if word == "null":
            raise self.fail(
                "null is the absence of a value and equals nothing",
                at=at,
                suggestion="did you mean `is missing` or `is present`?",
            )
        if self.words[at + 1] in COMPARISON_SIGNS:
            raise self.keyword_as_name(at)
        raise self._nothing_here(at)

    def _number(self, at: int, sign: int) -> terms.Literal | terms.Span:
        digits = self.texts[at]
        try:
            value = sign * (int(digits) if digits.isdigit() else float(digits))
        except ValueError:  # Python bounds how many digits it turns into an integer
            raise self.fail(f"a number of {len(digits):,} digits is too long", at=at) from None
        if isinstance(value, float) and math.isinf(value):
            raise self.fail("the number is too large: the limit is about 1.8e308", at=at)
        self.at += 1
        if self.kinds[self.at] == NAME and self.words[self.at] not in RESERVED:
            unit = self._unit(self.at)
            if unit is not None:
                self.at += 1
                return self._span(value, unit, at)
        return terms.literal(value) if type(value) is float else terms.Literal(value, Kind.NUMBER)

    def _unit(self, at: int) -> terms.SpanUnit | None:
        word = self.words[at]
        unit = UNITS.get(word)
        if unit is None:
            meant = _SHORT_UNITS.get(word) or closest(word, tuple(UNITS), 0.75)
            if meant:
                raise self.fail(
                    f"`{self.texts[at]}` is not a unit of time",
                    at=at,
                    expected=tuple(f"`{u.value}`" for u in terms.SpanUnit),
                    suggestion=f"write {meant}" if " " in meant else f"did you mean `{meant}`?",
                )
        return unit

    def _span(self, amount: int | float, unit: terms.SpanUnit, at: int) -> terms.Span:
        if amount < 0 or (unit is terms.SpanUnit.TICKS and amount != int(amount)):
            raise self.fail("a length of time is not negative, and a whole number of ticks", at=at)
        self.timed = True
        return terms.Span(amount, unit)

    def string(self, at: int) -> str:
        """Return the string constant at token `at`."""
        inner = self.texts[at][1:-1]
        return inner.replace("''", "'") if "'" in inner else inner

    def _timestamp(self, at: int) -> terms.Literal:
        written = self.string(at)
        time = parse_rfc3339(written)
        if time is None:
            zoned = parse_rfc3339(written + "Z")
            raise self.fail(
                f"`{written}` is not an RFC 3339 timestamp",
                at=at,
                expected=("a text such as '2026-01-01T00:00:00Z'",),
                suggestion=f"it lacks a time zone: '{written}Z' is UTC" if zoned else None,
            )
        self.at = at + 1
        return terms.Literal(time, Kind.TIMESTAMP)

    def _parameter(self, at: int, *, many: bool = False) -> terms.Parameter:
        name = self.texts[at][1:]
        if self.parameters is None:
            raise self.fail(
                f"the parameter `:{name}` needs a template, whose rows give its values",
                at=at,
                suggestion="use `Template` or `subscribe_many`, or write the value itself",
            )
        self.parameters[name] = None
        self.at += 1
        return terms.Parameter(name, many)

    def _parenthesis(self, at: int) -> Parsed:
        self.enter(at)
        self.at += 1
        inner = self.disjunction()
        if self.words[self.at] != ")":
            raise self._unclosed(at)
        self.at += 1
        self.depth -= 1
        return inner

    def _unclosed(self, at: int) -> Exception:
        if self.kinds[self.at] == END:
            return self.fail("the parenthesis that opens here is never closed", at=at, expected=("`)`",))
        return self.unexpected("a parenthesis is not closed", ("and", "or", ")"))

    def _minus(self, at: int) -> terms.Negative | terms.Literal | terms.Span:
        self.at += 1
        if self.kinds[self.at] == NUMBER:
            return self._number(self.at, -1)
        self.enter(at)
        self.count_operation(at)
        inner = self.as_term(self._atom(), at + 1, "the operand of a minus sign")
        self.depth -= 1
        if isinstance(inner, terms.Span) or (
            isinstance(inner, terms.Literal) and inner.kind is not Kind.NUMBER
        ):
            raise self.fail("only a number can have a minus sign", at=at)
        return terms.Negative(inner)

    def _aggregate(self, at: int) -> terms.Aggregate:
        word = self.words[at]
        if word not in _FUNCTIONS:
            near = closest(word, _FUNCTIONS)
            raise self.fail(
                f"there is not a function `{self.texts[at]}`",
                at=at,
                expected=tuple(f"`{f}`" for f in _FUNCTIONS),
                suggestion=f"did you mean `{near}`?" if near else None,
            )
        if self.scope.aggregates is not None:
            raise self.fail(f"`{word}` is not allowed here: {self.scope.aggregates}", at=at)
        self.at += 2
        function = terms.AggregateFunction(word)
        if self.words[self.at] == "*":
            if function is not terms.AggregateFunction.COUNT:
                raise self.fail(f"`{word}` needs the attribute it is taken over; only `count` takes `*`")
            self.at += 1
            argument = None
        else:
            kept, self.scope.aggregates = self.scope.aggregates, "aggregates do not nest"
            argument = self.term(f"the argument of `{word}`")
            self.scope.aggregates = kept
        self.expect(")", f"the argument of `{word}` is not closed")
        return terms.Aggregate(function, argument)

    def attribute(self) -> terms.Attribute:
        """Read an attribute's name, and resolve its alias."""
        at = self.at
        parts = [self.unquoted(at)] if self.kinds[at] == QUOTED else self.texts[at].split(".")
        self.at += 1
        while self.words[self.at] == "." and self.kinds[self.at + 1] in (NAME, QUOTED):
            segment = self.at + 1
            parts += (
                [self.unquoted(segment)] if self.kinds[segment] == QUOTED else self.texts[segment].split(".")
            )
            self.at += 2
        return self._resolve(parts, at)

    def _resolve(self, parts: list[str], at: int) -> terms.Attribute:
        scope = self.scope
        head = parts[0]
        if len(parts) > 1:
            rest = ".".join(parts[1:])
            if head == scope.single:
                return terms.Attribute(rest)
            if head in scope.aliases:
                return terms.Attribute(rest, head)
            if scope.sequence and head.lower() == "last":
                if not scope.last:
                    raise self.fail(
                        f"`last.{rest}` is allowed in the `on`, `while` and `compute` of a fold only", at=at
                    )
                return terms.Attribute(rest, "last")
            if scope.joined or (scope.sequence and scope.aliases):
                raise self._unknown_alias(head, at)
            if head in scope.unnamed:
                raise self.fail(
                    f"the events of `{head}` have no alias here",
                    at=at,
                    suggestion=f"give them one, such as `{head} a`, and write `a.{rest}`",
                )
            if scope.single is not None and head.lower() == scope.single.lower():
                self.warnings.append(
                    f"`{head}.{rest}` is an attribute of that name; the alias is written `{scope.single}`"
                )
        elif scope.joined:
            raise self.fail(
                f"`{head}` needs the alias of its table",
                at=at,
                expected=tuple(f"`{alias}.{head}`" for alias in scope.aliases),
            )
        # A million subscriptions name few attributes, so they share interned strings.
        return terms.Attribute(intern(".".join(parts)))

    def _unknown_alias(self, head: str, at: int) -> Exception:
        scope = self.scope
        near = closest(head, scope.aliases, 0.5)
        known = ", ".join(f"`{a}`" for a in scope.aliases)
        nested = "" if scope.joined else "; a nested attribute is written with its alias before it"
        return self.fail(
            f"there is no alias `{head}` here; known so far: {known}{nested}",
            at=at,
            suggestion=f"did you mean `{near}`?" if near else None,
        )
