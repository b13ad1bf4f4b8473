"""Joint counts of the values of several attributes, and the choice of attributes to count together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

from msgspec import Struct

from tocsin.matching.batches import ConjunctionBatch
from tocsin.matching.statistics.distribution import most_frequent
from tocsin.matching.statistics.texts import combination_of
from tocsin.model.conditions import Conjunction, Operator
from tocsin.model.terms import Attribute, Literal

Group = tuple[str, ...]
"""Attributes that are counted together, in the order of their names."""

WIDEST: Final = 4  # attributes of a group, as in a matcher's hash table
MAX_GROUPS: Final = 64


class Joint(Struct, frozen=True):
    """The combinations of values in a group of attributes.

    `frequent` holds the most frequent ones with exact counts, the most frequent first; a combination has a constant for
    each attribute, in the group's order. `rest` events have other combinations.
    """

    rest: int = 0
    distinct: int = 0  # combinations
    frequent: Mapping[tuple[Literal, ...], int] = {}

    @property
    def count(self) -> int:
        """Return the number of events with all of the attributes."""
        return self.rest + sum(self.frequent.values())

    def equal_to(self, combination: tuple[Literal, ...]) -> float:
        """Return the number of events with this combination: exact if it is frequent, else the average of the rest."""
        found = self.frequent.get(combination)
        if found is not None:
            return found
        return self.rest / max(self.distinct - len(self.frequent), 1)


class CandidateGroups(Struct, frozen=True):
    """The groups in most subscriptions, the most frequent first, and the number of groups left out."""

    groups: tuple[Group, ...]
    left_out: int = 0


def joint(
    counts: Sequence[tuple[str, int]], *, top: int, distinct: int | None = None, more: int = 0
) -> Joint:
    """Return the joint counts of combinations, given as texts, each once.

    Where only the most frequent are given, `more` events have others and `distinct` is the number of all combinations.
    """
    frequent, left = most_frequent(counts, top)
    return Joint(
        sum(number for _, number in left) + more,
        len(counts) if distinct is None else distinct,
        {combination_of(text): number for text, number in frequent.items()},
    )


def candidate_groups(
    subscriptions: ConjunctionBatch | Iterable[Conjunction], *, most: int = MAX_GROUPS, width: int = WIDEST
) -> CandidateGroups:
    """Return the groups of two to `width` attributes with equalities in most conjunctions; among equals, the narrower.

    >>> from tocsin.language import parse_condition, to_dnf
    >>> texts = ["city = 'Oslo' and kind = 'jazz'", "city = 'Bergen' and kind = 'folk' and price < 10"]
    >>> candidate_groups(c for text in texts for c in to_dnf(parse_condition(text)).conjunctions)
    CandidateGroups(groups=(('city', 'kind'),), left_out=0)
    """
    sets: Counter[Group] = Counter()
    for attributes, number in _equalities(subscriptions):
        if len(attributes) > 1:
            sets[attributes] += number
    kept: dict[Group, int] = {}
    left_out = 0
    level = _counted(sets, 2, None)
    for size in range(2, width + 1):
        # As in Apriori: a group is no more frequent than any part of it and is ranked behind it, so every part of a
        # kept group is kept too.
        ranked = sorted([*kept.items(), *level.items()], key=lambda one: (-one[1], len(one[0]), one[0]))
        left_out += len(ranked) - len(ranked[:most])
        kept = dict(ranked[:most])
        level = _counted(sets, size + 1, kept) if size < width else {}
    return CandidateGroups(tuple(kept), left_out)


def _equalities(subscriptions: ConjunctionBatch | Iterable[Conjunction]) -> Iterator[tuple[Group, int]]:
    """Yield the attributes of each conjunction's equalities, and the number of conjunctions with them.

    In a CNF expression only clauses of one predicate count: the predicates of others need not hold.
    """
    if isinstance(subscriptions, ConjunctionBatch):
        yield from ((_attributes(group.shape), len(group.ids)) for group in subscriptions.groups)
        for form in subscriptions.clauses:
            single = tuple(clause[0] for clause in form.shape if len(clause) == 1)
            yield _attributes(single), len(form.ids)
    else:
        yield from ((_attributes(conjunction), 1) for conjunction in subscriptions)


def _attributes(conjunction: Conjunction) -> Group:
    """Return the sorted attributes that the conjunction compares with constants by `=`."""
    return tuple(
        sorted(
            {
                predicate.subject.path
                for predicate in conjunction
                if predicate.operator is Operator.EQ
                and isinstance(predicate.subject, Attribute)
                and not isinstance(predicate.operands[0], Attribute)
            }
        )
    )


def _counted(sets: Mapping[Group, int], size: int, within: Mapping[Group, int] | None) -> dict[Group, int]:
    """Count the groups of a size in all sets, if all of their parts that are one smaller are in `within`."""
    counts: Counter[Group] = Counter()
    known = None if within is None else {name for group in within for name in group}
    for attributes, number in sets.items():
        wanted = attributes if known is None else [name for name in attributes if name in known]
        for group in combinations(wanted, size):
            if within is None or all(smaller in within for smaller in combinations(group, size - 1)):
                counts[group] += number
    return dict(counts)
