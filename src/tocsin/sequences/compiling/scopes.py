"""The values of names at one step of a chain."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from tocsin.model.errors import SubscriptionError
from tocsin.model.terms import Attribute
from tocsin.sequences._kernels.instructions import Do
from tocsin.sequences.algebra import LAST, Computed
from tocsin.sequences.compiling.checks import truth_of
from tocsin.sequences.compiling.values import (
    ITSELF,
    NOTHING,
    Held,
    Key,
    Linked,
    Made,
    Mark,
    Marked,
    Read,
    Truth,
    Value,
    made,
    read_item,
)


class ValueScope(Struct, frozen=True):
    """The values of names for an event and an instance.

    `held` are the aliases of earlier steps, `named` the values that were computed before, and `computed` those that are
    computed with this event. A `folded` event is one of many of its step. `last` stands for the first of the aliases
    `lefts`, nearest first, that has the name; if `lefts` is None, the instance holds it.
    """

    alias: str
    held: frozenset[str] = frozenset()
    named: tuple[str, ...] = ()
    computed: Mapping[str, Value] = {}
    folded: bool = False
    lefts: tuple[str, ...] | None = None

    def value(self, attribute: Attribute) -> Value:
        """Return the value of a name; NOTHING if it was never computed."""
        path, alias = attribute.path, attribute.alias
        if alias is None:
            if path in self.computed:
                return self.computed[path]
            return Held(attribute) if path in self.named else NOTHING
        if alias == self.alias:
            return Read(path)
        if alias == LAST:
            return self._last(path)
        if alias in self.held:
            return Held(attribute)
        raise SubscriptionError(f"`{alias}.{path}` is of no step so far; there are {self._aliases()}")

    def of(self, key: Key) -> Value:
        """Return the value of a key in the instance that this event makes."""
        if isinstance(key, Attribute):
            return self.value(key)
        if isinstance(key, Truth):
            return truth_of(self.value(key.of), key.operator, key.operands)
        return self._marked(key)

    def computing(self, values: tuple[Computed, ...]) -> ValueScope:
        """Return the scope after values were computed, all from the data as it was before."""
        new = {computed.name: read_item(computed.term, self.value) for computed in values}
        return ValueScope(
            self.alias, self.held, self.named, {**self.computed, **new}, self.folded, self.lefts
        )

    def beginning(self, lefts: tuple[str, ...], values: tuple[Computed, ...]) -> ValueScope:
        """Return the scope in which an iteration begins, after this one; `values` may refer to `last`."""
        begun = ValueScope(self.alias, self.held, self.named, self.computed, self.folded, lefts)
        return begun.computing(values)

    def names(self) -> tuple[str, ...]:
        """Return the names of all computed values so far, in the order in which they were first computed."""
        return tuple(dict.fromkeys((*self.named, *self.computed)))

    def _last(self, path: str) -> Value:
        if self.lefts is None:
            return Held(Attribute(path, LAST))
        value: Value = NOTHING
        for left in reversed(self.lefts):
            value = made(Do.FIRST, self.value(Attribute(path, left)), value)
        return value

    def _marked(self, key: Marked) -> Value:
        if key.alias == self.alias:
            before: Value = Held(key) if self.folded else NOTHING
            if key.mark is Mark.CHAIN:
                return Linked(before)
            return Made(Do.FIRST, before, ITSELF) if self.folded and key.mark is Mark.FIRST else ITSELF
        return Held(key) if key.alias in self.held else NOTHING

    def _aliases(self) -> str:
        return ", ".join(f"`{alias}`" for alias in (*sorted(self.held), self.alias))
