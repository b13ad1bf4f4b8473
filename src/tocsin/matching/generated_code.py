"""Conjunctions and CNFs as one Python function, which finds those that an event satisfies.

The function looks up each attribute and its kind once for all of them, so that a predicate costs a comparison. Conjunctions
that demand a value of the same attribute are reached through that value, if there are some. Constants are bound by name: no text
of a subscription becomes code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from tocsin.language.semantics import truth
from tocsin.matching.batches import Clauses
from tocsin.model.conditions import Conjunction, Operator, Predicate
from tocsin.model.terms import Alternatives, Attribute, Literal
from tocsin.model.values import Kind, Value

Search: TypeAlias = Callable[[Mapping[str, Value]], list[int]]
"""Returns the ids of the subscriptions that an event's attributes satisfy, in no order."""

_Expression: TypeAlias = tuple[int, list[Conjunction], list[Clauses]]
_Place: TypeAlias = tuple[int, Kind]
"""An attribute by its number, and the kind that its value must have."""
_Tests: TypeAlias = list[str]

_COMPARE: Final = {
    Operator.EQ: "==",
    Operator.NE: "!=",
    Operator.LT: "<",
    Operator.LE: "<=",
    Operator.GT: ">",
    Operator.GE: ">=",
}
_TYPES: Final = {
    Kind.NUMBER: "t{0} is int or t{0} is float",
    Kind.STRING: "t{0} is str",
    Kind.BOOLEAN: "t{0} is bool",
}
_TEXT: Final = {
    Operator.STARTS_WITH: "v{0}.startswith(c{1})",
    Operator.ENDS_WITH: "v{0}.endswith(c{1})",
    Operator.CONTAINS: "c{1} in v{0}",
    Operator.NOT_STARTS_WITH: "not v{0}.startswith(c{1})",
    Operator.NOT_ENDS_WITH: "not v{0}.endswith(c{1})",
    Operator.NOT_CONTAINS: "c{1} not in v{0}",
}
_FEWEST: Final = 8  # conjunctions that are reached through the value of an attribute


def generate(expressions: Iterable[tuple[int, Iterable[Conjunction], Iterable[Clauses]]]) -> Search:
    """Return the function that evaluates these expressions, given with the id that any of them satisfies."""
    return _Writer().write(expressions)


class _Writer:
    """Writes the source of one function, and gathers the names it refers to."""

    def __init__(self) -> None:
        self._names: dict[str, Any] = {"truth": truth}
        self._attributes: dict[str, int] = {}
        self._kinds: dict[tuple[int, Kind], str] = {}  # the name of an attribute's test of kind
        self._constants: dict[tuple[type, Any], int] = {}

    def write(self, expressions: Iterable[tuple[int, Iterable[Conjunction], Iterable[Clauses]]]) -> Search:
        all_of_them = [(int(id_), list(one), list(clauses)) for id_, one, clauses in expressions]
        places = self._places(all_of_them)
        tests: _Tests = []
        reached: dict[_Place, dict[Value, _Tests]] = {}
        for expression in all_of_them:
            demanded = next(iter(self._demands(expression, places)), None)
            if demanded is None:
                tests.append(self._test(expression))
            else:
                place, predicate = demanded
                id_, (conjunction,), _ = expression
                rest = tuple(one for one in conjunction if one is not predicate)
                literal = predicate.operands[0]
                assert isinstance(literal, Literal)  # noqa: S101 - `_demands` has seen it
                reached.setdefault(place, {}).setdefault(literal.value, []).append(
                    self._test((id_, [rest], []))
                )
        lines = ["def search(row):", " get = row.get", " found = []"]
        for path, i in self._attributes.items():
            lines.append(f" v{i} = get(c{self._constant(path)}); t{i} = type(v{i})")
        lines += [f" {name} = {_TYPES[kind].format(i)}" for (i, kind), name in self._kinds.items()]
        lines += [f" {test}" for test in tests]
        for (i, kind), by_value in reached.items():
            self._names[f"d{i}_{kind.name}"] = {value: branch for branch, value in enumerate(by_value)}
            lines.append(f" b = d{i}_{kind.name}.get(v{i}) if {self._kinds[i, kind]} else None")
            lines += [" if b is not None:", *_branches(list(by_value.values()), 0, 2)]
        exec("\n".join([*lines, " return found"]), self._names)  # noqa: S102 - nothing of it is a user's text
        found: Search = self._names["search"]
        return found

    def _places(self, expressions: list[_Expression]) -> list[_Place]:
        """Return the places through whose values conjunctions are reached, those with the most values first."""
        uses: Counter[_Place] = Counter()
        values: dict[_Place, set[Value]] = {}
        for expression in expressions:
            for place, predicate in self._demands(expression):
                uses[place] += 1
                values.setdefault(place, set()).add(predicate.operands[0].value)  # type: ignore[union-attr]
        many = [place for place, count in uses.items() if count >= _FEWEST]
        return sorted(many, key=lambda place: -len(values[place]))

    def _demands(
        self, expression: _Expression, places: list[_Place] | None = None
    ) -> Iterator[tuple[_Place, Predicate]]:
        """Yield the equalities of a single conjunction, in the order of `places`; without these, all of them."""
        _, conjunctions, clauses = expression
        if len(conjunctions) != 1 or clauses:
            return
        found: dict[_Place, Predicate] = {}
        for predicate in conjunctions[0]:
            subject, operands = predicate.subject, predicate.operands
            if predicate.operator is Operator.EQ and type(subject) is Attribute:
                literal = operands[0]
                if type(literal) is Literal and literal.kind in _TYPES:
                    place = self._attribute(subject.path), literal.kind
                    self._kind(*place)
                    found[place] = predicate
        for place in found if places is None else places:
            if place in found:
                yield place, found[place]

    def _test(self, expression: _Expression) -> str:
        """Return the statement that evaluates an expression."""
        id_, conjunctions, clauses = expression
        parts = [" and ".join(map(self._predicate, one)) or "True" for one in conjunctions]
        parts += [" and ".join(map(self._clause, cnf)) or "True" for cnf in clauses]
        return f"if {' or '.join(parts) or 'False'}: found.append({id_})"

    def _clause(self, clause: Conjunction) -> str:
        return f"({' or '.join(map(self._predicate, clause)) or 'False'})"

    def _predicate(self, predicate: Predicate) -> str:
        """Return an expression that is true iff the predicate is; whatever is not plain is left to `truth`."""
        subject, operator, operands = predicate.subject, predicate.operator, predicate.operands
        if type(subject) is Alternatives:
            return self._clause(subject.predicates)
        plain = None
        if type(subject) is Attribute:
            i = self._attribute(subject.path)
            if operator is Operator.MISSING:
                return f"v{i} is None"
            if operator is Operator.PRESENT:
                return f"v{i} is not None"
            constants = [operand for operand in operands if type(operand) is Literal]
            kinds = {constant.kind for constant in constants}
            if len(constants) == len(operands) and len(kinds) == 1 and kinds <= _TYPES.keys():
                plain = self._plain(i, kinds.pop(), operator, [constant.value for constant in constants])
        return plain or f"truth(c{self._constant(predicate)}, row) is True"

    def _plain(self, i: int, kind: Kind, operator: Operator, values: list[Value]) -> str | None:
        """Return the test of an attribute against constants of one kind; None if it has no short form."""
        if operator in _COMPARE:
            test = f"v{i} {_COMPARE[operator]} c{self._constant(values[0])}"
        elif operator in (Operator.BETWEEN, Operator.NOT_BETWEEN):
            test = f"c{self._constant(values[0])} <= v{i} <= c{self._constant(values[1])}"
            test = test if operator is Operator.BETWEEN else f"not {test}"
        elif operator in (Operator.IN, Operator.NOT_IN):
            word = "in" if operator is Operator.IN else "not in"
            test = f"v{i} {word} c{self._constant(frozenset(values))}"
        elif operator in _TEXT and kind is Kind.STRING:
            test = _TEXT[operator].format(i, self._constant(values[0]))
        else:
            return None
        return f"{self._kind(i, kind)} and {test}"

    def _attribute(self, path: str) -> int:
        return self._attributes.setdefault(path, len(self._attributes))

    def _kind(self, i: int, kind: Kind) -> str:
        return self._kinds.setdefault((i, kind), f"k{i}_{kind.name}")

    def _constant(self, value: Any) -> int:
        key = type(value), value  # to Python, True is 1
        number = self._constants.get(key)
        if number is None:
            number = self._constants[key] = len(self._constants)
            self._names[f"c{number}"] = value
        return number


def _branches(branches: list[_Tests], first: int, depth: int) -> _Tests:
    """Return the lines that lead to the tests of branch `b`, the first of which has the number `first`, by halves."""
    pad = " " * depth
    if len(branches) == 1:
        return [pad + test for test in branches[0]]
    half = len(branches) // 2
    lower = _branches(branches[:half], first, depth + 1)
    upper = _branches(branches[half:], first + half, depth + 1)
    return [f"{pad}if b < {first + half}:", *lower, f"{pad}else:", *upper]
