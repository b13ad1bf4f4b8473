"""The truth of a condition for an event, part by part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from tocsin.language.printer import condition_text
from tocsin.language.semantics import condition_truth, value_of
from tocsin.model.conditions import And, Condition, Constant, Not, Predicate
from tocsin.model.values import Value

if TYPE_CHECKING:
    from tocsin.display.trees import Branch


class Reason(Struct, frozen=True):
    """A part of a condition and its truth for one event; None means unknown.

    `value` is the value of a predicate's subject, None if it is absent. `parts` are the operands of `connective`.
    """

    text: str
    truth: bool | None
    value: Value | None = None
    connective: str | None = None
    parts: tuple[Reason, ...] = ()

    def predicates(self) -> tuple[Reason, ...]:
        """Return all predicates, in the order they are written."""
        if self.connective is None:
            return (self,)
        return tuple(predicate for part in self.parts for predicate in part.predicates())

    def failed(self) -> tuple[Reason, ...]:
        """Return the predicates that must change for the condition to become true; none if it is true."""
        return _failed_predicates(self, wanted=True)


class EventExplanation(Struct, frozen=True):
    """Whether a subscription matches an event, and the truth of each part of its condition.

    `outside` names the reasons why the condition is not evaluated at all: another stream, or outside the validity.
    """

    subscription: str
    matched: bool
    reason: Reason
    outside: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[Reason, ...]:
        """Return the predicates that failed; none if the condition is true."""
        return self.reason.failed()

    def trees(self) -> list[Branch]:
        """Return the explanation as trees, as the command line prints it."""
        from tocsin.language.explanation_tree import filter_trees  # noqa: PLC0415 - to look at it is rare

        return filter_trees(self)

    def __str__(self) -> str:
        from tocsin.display.trees import text_of  # noqa: PLC0415

        return text_of(self.trees())

    def __repr__(self) -> str:
        from tocsin.display.text import summary  # noqa: PLC0415

        return summary(self, [f"`{self.subscription}`", *self._facts()])

    def _facts(self) -> list[str]:
        """Return what the representation says beside the id."""
        return [self.trees()[-1].text()]

    def _repr_html_(self) -> str:
        from tocsin.display.html import box, head  # noqa: PLC0415
        from tocsin.display.trees import html_of  # noqa: PLC0415

        return box(head(self.subscription), f'<div class="mono">{html_of(self.trees())}</div>')


def explain_condition(condition: Condition, attributes: Mapping[str, Value]) -> Reason:
    """Return each part of `condition` with its truth.

    >>> from tocsin.language.parsing.parser import parse_condition
    >>> why = explain_condition(parse_condition("symbol = 'IBM' and not price < 100"), {"symbol": "IBM", "price": 99})
    >>> why.truth, [(reason.text, reason.value) for reason in why.failed()]
    (False, [('price < 100', 99)])
    """
    text = condition_text(condition)
    truth = condition_truth(condition, attributes)
    if isinstance(condition, Predicate):
        return Reason(text, truth, value_of(condition.subject, attributes))
    if isinstance(condition, Constant):
        return Reason(text, truth)
    if isinstance(condition, Not):
        inner = explain_condition(condition.condition, attributes)
        return Reason(text, truth, connective="not", parts=(inner,))
    parts = tuple(explain_condition(member, attributes) for member in condition.conditions)
    return Reason(text, truth, connective="and" if isinstance(condition, And) else "or", parts=parts)


def _failed_predicates(reason: Reason, *, wanted: bool) -> tuple[Reason, ...]:
    """Return the predicates that keep `reason` from having the truth value `wanted`."""
    if reason.truth is wanted:
        return ()
    if reason.connective is None:
        return (reason,)
    if reason.connective == "not":
        return _failed_predicates(reason.parts[0], wanted=not wanted)
    return tuple(blamed for part in reason.parts for blamed in _failed_predicates(part, wanted=wanted))
