"""The correlation key of a sequence: attributes whose equality with the first event every step demands.

The events of a sequence with a key can be spread over shards by the key's value: an event with another value would be
passed over anyway. Only a step's guard, which decides which event is the next, makes a key. A condition on the event
that was taken (`where`, `while`) makes none, because an event with another value would be taken, and would end the match.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from tocsin.model.conditions import Operator
from tocsin.model.terms import Attribute, Literal, Parameter
from tocsin.model.values import Kind, Value
from tocsin.sequences.algebra import LAST, Expression
from tocsin.sequences.compiling import ir
from tocsin.sequences.compiling.chains import ChainStep, chain_of

Scheme = tuple[tuple[str, tuple[str, ...]], ...]
"""The key's attributes by stream: of each stream as many, in an order in which they are equal."""

_NO_ATTRIBUTES: Final[frozenset[str]] = frozenset()


class Correlation(Struct, frozen=True):
    """The key of a sequence, or the `reason` why it has none.

    `constants` are those that the key's attributes have to equal, parameters among them, in the order of the attributes:
    all matches of the sequence then have one value of the key. They are empty if the value is not known.
    """

    scheme: Scheme = ()
    constants: tuple[Value | Parameter, ...] = ()
    reason: str = ""

    @property
    def is_keyed(self) -> bool:
        """Tell whether there is a key."""
        return bool(self.scheme)


def find_correlation(
    expression: Expression,
    unusable: Collection[str] = (),
    equal: Mapping[str, Literal | Parameter] = MappingProxyType({}),
    *,
    rows_vary: bool = True,
) -> Correlation:
    """Return the key of a sequence.

    The attributes are all those that the guards demand to be equal, if their value varies from match to match; else those
    with a constant. If `rows_vary`, a parameter among the constants is preferred, because the rows of a template then differ in
    their value. `unusable` are the parameters that some row has a timestamp for, which also equals a text; `equal` has what
    equals a parameter in all rows.

    >>> from tocsin.language import parse
    >>> from tocsin.sequences.translation import expression_of
    >>> def key(text):
    ...     return find_correlation(expression_of(parse(text), {}))
    >>> key("from stock a next stock b on b.name = a.name").scheme
    (('stock', ('name',)),)
    >>> key("from stock a where a.name = 'X' next news n on n.about = 'X'").constants
    ('X',)
    >>> key("from stock a next stock b where b.name = a.name").reason
    'the next `b` is taken whatever its attributes are: its `on` demands no equality with an attribute of `a`'
    """
    steps = chain_of(expression).steps
    if len(steps) == 1:
        return Correlation(reason="it has one step, whose events need no others")
    for step in steps:
        if step.stream.of is not None:
            return Correlation(reason=f"`{step.alias}` is a sequence in parentheses")
    return _Analysis(steps, unusable, equal, rows_vary=rows_vary).correlation()


class _Class(Struct, frozen=True):
    """Attributes that are always equal: one of each stream, and the constant they equal, if there is one."""

    attributes: Mapping[str, str]  # by stream
    constant: Literal | Parameter | None


class _Equalities:
    """Values that equal each other, in classes (union-find)."""

    def __init__(self) -> None:
        self._parents: dict[Hashable, Hashable] = {}

    def find(self, value: Hashable) -> Hashable:
        root = value
        while (parent := self._parents.get(root, root)) != root:
            root = parent
        self._parents[value] = root
        return root

    def unite(self, one: Hashable, other: Hashable) -> None:
        self._parents[self.find(one)] = self.find(other)

    def values(self) -> list[Hashable]:
        return list(self._parents)


class _Analysis:
    """Follows the steps, and keeps for each attribute of the first event which attributes each guard makes equal to it."""

    def __init__(
        self,
        steps: list[ChainStep],
        unusable: Collection[str],
        equal: Mapping[str, Literal | Parameter],
        *,
        rows_vary: bool,
    ) -> None:
        self._steps = steps
        self._unusable = unusable
        self._same = equal
        self._rows_vary = rows_vary
        self._equal = _Equalities()

    def correlation(self) -> Correlation:
        """Return the key, or why there is none."""
        first, *later = self._steps
        self._learn(first.where, first, None)
        candidates: dict[str, list[frozenset[str]]] | None = (
            None  # by attribute of the first event, for each step
        )
        for before, step in zip(self._steps, later, strict=False):
            self._learn(step.guard, step, before)
            known = self._first_attributes() if candidates is None else list(candidates)
            demanded = {path: found for path in known if (found := self._equal_to(path, step))}
            if not demanded:
                return Correlation(reason=self._no_equality(step))
            so_far = {} if candidates is None else candidates
            candidates = {path: [*so_far.get(path, ()), found] for path, found in demanded.items()}
            self._learn((*step.going, *step.where), step, None)
        return self._chosen(candidates or {})

    def _learn(self, formulas: Iterable[ir.Formula], step: ChainStep, before: ChainStep | None) -> None:
        """Take the equalities among the conjuncts of a condition.

        In the guard of an iteration, `last` stands for the event of the step `before`, and then for those of the
        iteration itself, which are equal to it by the same guard.
        """
        for formula in formulas:
            if isinstance(formula, ir.Atom) and formula.operator is Operator.EQ:
                one = self._node(formula.subject, step, before)
                other = self._node(formula.operands[0], step, before)
                if one is not None and other is not None:
                    self._equal.unite(one, other)

    def _node(self, value: ir.Value, step: ChainStep, before: ChainStep | None) -> Hashable | None:
        """Return what stands for a value; None if it is neither an attribute of an event nor a constant."""
        if isinstance(value, ir.EventColumn) and isinstance(value.column, str):
            return (step.alias, value.column)
        if isinstance(value, ir.Stored) and isinstance(value.key, Attribute) and value.key.alias is not None:
            if value.key.alias != LAST:
                return (value.key.alias, value.key.path)
            return None if before is None else (before.alias, value.key.path)
        if isinstance(value, ir.Const) and self._is_usable(value.constant):
            constant = value.constant
            return self._same.get(constant.name, constant) if isinstance(constant, Parameter) else constant
        return None

    def _is_usable(self, constant: Literal | Parameter) -> bool:
        """Tell whether what equals a constant is equal; a text and a timestamp may both equal a timestamp."""
        if isinstance(constant, Parameter):
            return not constant.many and constant.name not in self._unusable
        return constant.kind is not Kind.TIMESTAMP

    def _first_attributes(self) -> list[str]:
        alias = self._steps[0].alias
        return [value[1] for value in self._equal.values() if isinstance(value, tuple) and value[0] == alias]

    def _equal_to(self, path: str, step: ChainStep) -> frozenset[str]:
        """Return the attributes of a step's event that equal one of the first event."""
        root = self._equal.find((self._steps[0].alias, path))
        return frozenset(
            value[1]
            for value in self._equal.values()
            if isinstance(value, tuple) and value[0] == step.alias and self._equal.find(value) == root
        )

    def _chosen(self, candidates: Mapping[str, list[frozenset[str]]]) -> Correlation:
        """Return the key that the classes of equal attributes make."""
        classes: dict[Hashable, _Class] = {}
        for path, by_step in candidates.items():
            root = self._equal.find((self._steps[0].alias, path))
            attributes = self._one_of_each_stream(path, by_step)
            if attributes is not None and root not in classes:
                classes[root] = _Class(attributes, self._constant(root))
        if not classes:
            return Correlation(reason=self._ambiguous(next(iter(candidates))))
        varying = [one for one in classes.values() if one.constant is None]
        fixed = [one for one in classes.values() if one.constant is not None]
        are_told_apart = self._rows_vary and any(isinstance(one.constant, Parameter) for one in fixed)
        if varying and not are_told_apart:
            return Correlation(self._scheme(varying))
        constants = [
            one.constant.value if isinstance(one.constant, Literal) else one.constant
            for one in fixed
            if one.constant is not None
        ]
        return Correlation(self._scheme(fixed), tuple(constants))

    def _one_of_each_stream(self, path: str, by_step: list[frozenset[str]]) -> dict[str, str] | None:
        """Return an attribute of each stream that all steps demand; None if no attribute is demanded by all."""
        common: dict[str, frozenset[str]] = {self._steps[0].stream.name: frozenset((path,))}
        for step, found in zip(self._steps[1:], by_step, strict=True):
            common[step.stream.name] = common.get(step.stream.name, found) & found
        if not all(common.values()):
            return None
        return {stream: path if path in found else min(found) for stream, found in common.items()}

    def _constant(self, root: Hashable) -> Literal | Parameter | None:
        found = [
            value
            for value in self._equal.values()
            if isinstance(value, (Literal, Parameter)) and self._equal.find(value) == root
        ]
        return next((one for one in found if isinstance(one, Parameter)), found[0] if found else None)

    def _scheme(self, classes: list[_Class]) -> Scheme:
        streams = sorted(classes[0].attributes)
        return tuple((stream, tuple(one.attributes[stream] for one in classes)) for stream in streams)

    def _no_equality(self, step: ChainStep) -> str:
        """Return why there is no key, if the guard of a step demands nothing."""
        first = self._steps[0].alias
        if len(self._steps) > 2 and any(self._equal_to(path, step) for path in self._first_attributes()):
            return f"its steps demand equality with different attributes of `{first}`"
        return (
            f"the next `{step.alias}` is taken whatever its attributes are: its `on` demands no equality with an "
            f"attribute of `{first}`"
        )

    def _ambiguous(self, path: str) -> str:
        return f"its steps demand equality of `{self._steps[0].alias}.{path}` with different attributes of one stream"
