"""Conjunctions and CNFs as one Python function, which finds those that an event satisfies.

The function looks up each attribute and its kind once for all of them, so that a predicate costs a comparison. Its constants
are bound by name: no text of a subscription becomes code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from tocsin.language.semantics import truth
from tocsin.matching.batches import Clauses
from tocsin.model.conditions import Conjunction, Operator, Predicate
from tocsin.model.terms import Alternatives, Attribute, Literal
from tocsin.model.values import Kind, Value

Search: TypeAlias = Callable[[Mapping[str, Value]], list[int]]
"""Returns the ids of the subscriptions that an event's attributes satisfy, in the order of their expressions."""

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
        tests = []
        for id_, conjunctions, clauses in expressions:
            parts = [" and ".join(map(self._predicate, one)) or "True" for one in conjunctions]
            parts += [" and ".join(map(self._clause, cnf)) or "True" for cnf in clauses]
            tests.append(f" if {' or '.join(parts) or 'False'}: found.append({int(id_)})")
        lines = ["def search(row):", " get = row.get", " found = []"]
        for path, i in self._attributes.items():
            lines.append(f" v{i} = get(c{self._constant(path)}); t{i} = type(v{i})")
        lines += [f" {name} = {_TYPES[kind].format(i)}" for (i, kind), name in self._kinds.items()]
        exec("\n".join([*lines, *tests, " return found"]), self._names)  # noqa: S102 - nothing of it is a user's text
        found: Search = self._names["search"]
        return found

    def _clause(self, clause: Conjunction) -> str:
        return f"({' or '.join(map(self._predicate, clause)) or 'False'})"

    def _predicate(self, predicate: Predicate) -> str:
        """Return an expression that is true iff the predicate is; whatever is not plain is left to `truth`."""
        subject, operator, operands = predicate.subject, predicate.operator, predicate.operands
        if type(subject) is Alternatives:
            return self._clause(subject.predicates)
        plain = None
        if type(subject) is Attribute:
            i = self._attributes.setdefault(subject.path, len(self._attributes))
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
        name = self._kinds.setdefault((i, kind), f"k{i}_{kind.name}")
        return f"{name} and {test}"

    def _constant(self, value: Any) -> int:
        key = type(value), value  # to Python, True is 1
        number = self._constants.get(key)
        if number is None:
            number = self._constants[key] = len(self._constants)
            self._names[f"c{number}"] = value
        return number
