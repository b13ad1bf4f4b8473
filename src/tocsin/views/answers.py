"""When two answers are the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping

from tocsin.model.subscription import Answer, Told
from tocsin.model.values import kind_of


def same_answer(one: Answer, other: Answer) -> bool:
    """Tell whether two answers are equal, whatever the order of their values or rows; `true` is not 1.

    >>> same_answer((1, "a"), ("a", 1.0)), same_answer((1,), (True,))
    (True, False)
    """
    if isinstance(one, tuple) and isinstance(other, tuple):
        return Counter(map(_identity, one)) == Counter(map(_identity, other))
    return not isinstance(one, tuple) and not isinstance(other, tuple) and _identity(one) == _identity(other)


def differences(old: Answer, new: Answer) -> tuple[tuple[Told, ...], tuple[Told, ...]]:
    """Return what an answer of values or rows has lost and won; of other answers, nothing.

    >>> differences((1, 2, 2), (2, 3))
    ((1, 2), (3,))
    """
    if not isinstance(old, tuple) or not isinstance(new, tuple):
        return (), ()
    return _less(old, new), _less(new, old)


def _less(some: tuple[Told, ...], others: tuple[Told, ...]) -> tuple[Told, ...]:
    left = Counter(map(_identity, others))
    left.subtract(map(_identity, some))  # below 0 by as many as the others lack
    lacking = []
    for told in reversed(some):
        if left[_identity(told)] < 0:
            left[_identity(told)] += 1
            lacking.append(told)
    return tuple(reversed(lacking))


def _identity(told: Told | None) -> Hashable:
    if isinstance(told, Mapping):
        return frozenset((name, _identity(value)) for name, value in told.items())
    return None if told is None else (kind_of(told), told)
