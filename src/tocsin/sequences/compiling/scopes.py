"""The values of names at one step of a chain."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from tocsin.model.errors import SubscriptionError
from tocsin.model.terms import Attribute
from tocsin.sequences._kernels.instructions import Do
from tocsin.sequences.algebra import LAST, Computed
from tocsin.sequences.compiling import ir
from tocsin.sequences.compiling.checks import truth_of


class ValueScope(Struct, frozen=True):
    """The values of names for an event and an instance.

    `earlier_aliases` are the aliases of earlier steps, `named` the values that were computed before, and `computed` the
    values that are computed with this event. A `folded` event is one of many of its step. `last` stands for the first of
    the aliases `lefts`, nearest first, that has the name; if `lefts` is None, the instance stores it.
    """

    alias: str
    earlier_aliases: frozenset[str] = frozenset()
    named: tuple[str, ...] = ()
    computed: Mapping[str, ir.Value] = {}
    folded: bool = False
    lefts: tuple[str, ...] | None = None

    def value(self, attribute: Attribute) -> ir.Value:
        """Return the value of a name; NOTHING if it was never computed."""
        path, alias = attribute.path, attribute.alias
        if alias is None:
            if path in self.computed:
                return self.computed[path]
            return ir.Stored(attribute) if path in self.named else ir.NOTHING
        if alias == self.alias:
            return ir.EventColumn(path)
        if alias == LAST:
            return self._last(path)
        if alias in self.earlier_aliases:
            return ir.Stored(attribute)
        raise SubscriptionError(f"`{alias}.{path}` is of no step so far; there are {self._aliases()}")

    def of(self, key: ir.Key) -> ir.Value:
        """Return the value of a key in the instance that this event makes."""
        if isinstance(key, Attribute):
            return self.value(key)
        if isinstance(key, ir.Truth):
            return truth_of(self.value(key.of), key.operator, key.operands)
        return self._event_of_step(key)

    def computing(self, values: tuple[Computed, ...]) -> ValueScope:
        """Return the scope after values were computed, all from the data as it was before."""
        new = {computed.name: ir.read_item(computed.term, self.value) for computed in values}
        return replace(self, computed={**self.computed, **new})

    def beginning(self, lefts: tuple[str, ...], values: tuple[Computed, ...]) -> ValueScope:
        """Return the scope in which an iteration begins, after this one; `values` may refer to `last`."""
        return replace(self, lefts=lefts).computing(values)

    def names(self) -> tuple[str, ...]:
        """Return the names of all computed values so far, in the order in which they were first computed."""
        return tuple(dict.fromkeys((*self.named, *self.computed)))

    def _last(self, path: str) -> ir.Value:
        if self.lefts is None:
            return ir.Stored(Attribute(path, LAST))
        value: ir.Value = ir.NOTHING
        for left in reversed(self.lefts):
            value = ir.operation(Do.FIRST, self.value(Attribute(path, left)), value)
        return value

    def _event_of_step(self, key: ir.Marked) -> ir.Value:
        """Return the value of a marked event of a step: its first, its last or its chain of events."""
        if key.alias == self.alias:
            before: ir.Value = ir.Stored(key) if self.folded else ir.NOTHING
            if key.mark is ir.Mark.CHAIN:
                return ir.Linked(before)
            return (
                ir.Operation(Do.FIRST, before, ir.ITSELF)
                if self.folded and key.mark is ir.Mark.FIRST
                else ir.ITSELF
            )
        return ir.Stored(key) if key.alias in self.earlier_aliases else ir.NOTHING

    def _aliases(self) -> str:
        return ", ".join(f"`{alias}`" for alias in (*sorted(self.earlier_aliases), self.alias))
