"""Resolving the names in a sequence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tocsin.language.parsing.cursor import closest
from tocsin.language.printer import term_text
from tocsin.model.conditions import Condition
from tocsin.model.errors import SubscriptionError
from tocsin.model.queries import Computation
from tocsin.model.terms import Attribute, Literal, Span, Term
from tocsin.model.values import Kind
from tocsin.sequences.algebra import HIDDEN, LAST
from tocsin.sequences.substitution import in_condition, in_term
from tocsin.sequences.ticks import ticks_in


@dataclass(frozen=True)
class Carried:
    """The attributes that the events of a sequence in parentheses can have: these names, and any of these aliases."""

    names: tuple[str, ...]
    aliases: tuple[str, ...]

    def has(self, path: str) -> bool:
        """Tell whether an event can have this attribute."""
        return path in self.names or any(path.startswith(f"{alias}.") for alias in self.aliases)


@dataclass
class StepScope:
    """The names that are visible at the step being translated."""

    tick: int
    aliases: list[str] = field(default_factory=list)  # of the steps so far, this one's the last
    computed: dict[str, None] = field(default_factory=dict)  # the names computed to the left
    carried: dict[str, Carried] = field(default_factory=dict)  # by alias, where that is known

    def condition(self, condition: Condition, so_far: Mapping[str, Term] | None = None) -> Condition:
        """Return a condition whose names all have an alias; `so_far` as in `term`."""
        return in_condition(condition, lambda leaf: self._leaf(leaf, so_far))

    def term(self, term: Term, so_far: Mapping[str, Term] | None = None) -> Term:
        """Return a term whose names all have an alias.

        In a fold, `so_far` are the terms of its computed values before this iteration.
        """
        return in_term(term, lambda leaf: self._leaf(leaf, so_far))

    def beginning(self, term: Term, folded: Iterable[str]) -> Term:
        """Return a fold's term before the first iteration, with `last` for the alias of the fold.

        `folded` are the names that the fold computes; at this point they have their values from the left, if any.
        """
        so_far = {name: Attribute(name) for name in folded}

        def leaf(term: Term) -> Term:
            found = self._leaf(term, so_far)
            if isinstance(found, Attribute) and found.alias == self.aliases[-1]:
                return Attribute(found.path, LAST)
            return found

        return in_term(term, leaf)

    def compute(self, values: tuple[Computation, ...]) -> None:
        """Make computed values visible to later steps."""
        for value in values:
            if value.name.startswith(HIDDEN):
                raise SubscriptionError(
                    f"the computed value `{value.name}` needs another name: those that begin with `{HIDDEN}` are "
                    "Tocsin's own"
                )
            self.computed[value.name] = None

    def _leaf(self, term: Term, so_far: Mapping[str, Term] | None) -> Term:
        if isinstance(term, Attribute):
            return self._attribute(term, so_far)
        return Literal(ticks_in(term, self.tick), Kind.NUMBER) if isinstance(term, Span) else term

    def _attribute(self, name: Attribute, so_far: Mapping[str, Term] | None) -> Term:
        path, alias = name.path, name.alias
        if alias in (None, LAST):
            folded = so_far if so_far is not None else {}
            if path in self.computed or (alias == LAST and path in folded):
                return folded.get(path, Attribute(path))
        if alias == LAST:
            if not any(self._may_have(left, path) for left in self.aliases):
                raise self._unknown(name, self.aliases[-1])
            return name
        owner = self.aliases[-1] if alias is None else alias
        if not self._may_have(owner, path):
            raise self._unknown(name, owner)
        return Attribute(path, owner)

    def _may_have(self, alias: str, path: str) -> bool:
        return alias not in self.carried or self.carried[alias].has(path)

    def _unknown(self, name: Attribute, owner: str) -> SubscriptionError:
        carried = self.carried[owner]
        known = (*carried.names, *(f"{alias}.…" for alias in carried.aliases), *self.computed)
        near = closest(name.path, known)
        hint = f"; did you mean `{near}`?" if near else ""
        listed = ", ".join(f"`{path}`" for path in known) or "nothing"
        return SubscriptionError(
            f"there is no `{term_text(name, sequence=True)}`: the events of the sequence in parentheses have {listed}{hint}"
        )
