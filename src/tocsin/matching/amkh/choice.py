"""Choosing a scheme: by the paper's rules, or by its cost.

All that is asked for is plain figures, so that a matcher and a plan for a cluster choose alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import prod
from typing import Final, NamedTuple

from tocsin.matching.amkh.scheme import ALL_CLASSES, Hashing, Scheme

BETTER: Final = 0.8  # a scheme is changed for one that costs at most so much of it

# Costs, in units of one comparison of signatures.
_SCHEMA: Final = 1.0  # to see that an event lacks an attribute of a schema
_PROBE: Final = 12.0  # to look for a bucket, which waits for memory
_EXAMINE: Final = 1.0  # to compare a signature, one after the other in memory

# Clauses on equality-only attributes, above which no general attribute is hashed
_MANY_EQUALITIES: Final = 3.0
_FEW_EQUALITIES: Final = 2.0
_FEW_ATTRIBUTES: Final = 4  # a small set of equality-only attributes
_SELECTIVE: Final = 0.05  # the share of events that satisfy a clause, below which nothing is folded
_FINER: Final = 0.95  # more classes are made if it then costs less than so much
_CLASSES: Final = (2, 4, 8, 16, 64)
_WIDTHS: Final = (1, 2, 3, None)
_SHAPES: Final = 2.0  # clauses bounded below, above, or both: each shape has classes of its own


class Figures(NamedTuple):
    """The figures of an attribute."""

    equalities: float  # clauses that ask for a value
    others: float  # clauses that do not
    presence: float = 1.0  # the share of events that have it
    equal: float = 0.1  # of those, the share that an equality asks for
    selectivity: float = 0.5  # of those, the share that satisfies a clause other than an equality

    @property
    def is_equality_only(self) -> bool:
        """Tell whether all clauses are equalities."""
        return self.others == 0


class Coordinate(NamedTuple):
    """A clause that may be hashed: its attribute, and whether it is an equality."""

    attribute: Hashable
    is_equality: bool


class Cost(NamedTuple):
    """The average cost of an event."""

    schemas: float  # visited because an event has their rarest attribute
    probed: float  # buckets
    examined: float  # subscriptions

    @property
    def total(self) -> float:
        """Return all of it as one number; only good for comparison."""
        return _SCHEMA * self.schemas + _PROBE * self.probed + _EXAMINE * self.examined


Attributes = Mapping[Hashable, Figures]
Sample = Sequence[Sequence[Coordinate]]


def general_attributes(attributes: Attributes) -> list[Hashable]:
    """Return the general attributes, the best to hash first (AMKH, 2).

    That is by how seldom a clause on it is satisfied: an equality by its share of the events, any other by its
    selectivity, each as often as it is used.
    """

    def hit(attribute: Hashable) -> float:
        known = attributes[attribute]
        uses = known.equalities + known.others
        return known.presence * (known.equalities * known.equal + known.others * known.selectivity) / uses

    return sorted((one for one in attributes if not attributes[one].is_equality_only), key=hit)


def rule_of_thumb(attributes: Attributes, sample: Sample) -> Scheme:
    """Return the scheme by the paper's rules.

    G is 0 where subscriptions have more than three clauses on equality-only attributes, 2 where they have one or two
    on a small set of them, else 1. B is 2, or above any id where the clauses are very selective.
    """
    equality_only = {one for one in attributes if attributes[one].is_equality_only}
    counts = [sum(c.attribute in equality_only for c in one) for one in sample]
    average = sum(counts) / max(len(counts), 1)
    if average > _MANY_EQUALITIES:
        count = 0
    elif 0 < average <= _FEW_EQUALITIES and len(equality_only) <= _FEW_ATTRIBUTES:
        count = 2
    else:
        count = 1
    general = tuple(general_attributes(attributes)[:count])
    selective = all(attributes[one].selectivity < _SELECTIVE for one in general)
    return Scheme(general, ALL_CLASSES if general and selective else 2)


def candidates(attributes: Attributes, general: int | None = None, classes: int = 4) -> Iterable[Scheme]:
    """Yield the schemes with B classes that are compared; with a G, there is only one."""
    ordered = general_attributes(attributes)
    if general is not None:
        yield Scheme(tuple(ordered[:general]), classes)
        return
    hashed: list[tuple[Hashable, ...] | None] = [(), tuple(ordered[:1]), tuple(ordered[:2]), None]
    for which in dict.fromkeys(hashed):
        for width in _WIDTHS:
            yield Scheme(which, classes, width, equalities=True)


def cost_of(scheme: Scheme, attributes: Attributes, sample: Sample, population: int) -> Cost:
    """Return the expected cost of an event under a scheme, by a sample of the subscriptions.

    Attributes are taken to be independent. The number of schemas in all is estimated by how many of the sample are
    alone in theirs.
    """
    schemas: Counter[tuple[Hashable, ...]] = Counter()
    examined = 0.0
    for clauses in sample:
        hits = sorted(
            (
                (_hit(c, scheme, attributes[c.attribute]), i)
                for i, c in enumerate(clauses)
                if _is_hashed(c, scheme, attributes[c.attribute])
            )
        )[: scheme.width]
        examined += prod(hit for hit, _ in hits)
        schemas[tuple(sorted((clauses[i].attribute for _, i in hits), key=hash))] += 1
    alone = sum(count == 1 for count in schemas.values()) / max(len(schemas), 1)
    scale = max(population / max(len(sample), 1), 1.0)
    widest = max(map(len, schemas), default=0)
    possible = float(len(attributes)) ** min(widest, 8) / max(len(schemas), 1)
    more = max(min(scale**alone, possible), 1.0)  # how many schemas there are for each in the sample
    looked_at = probed = 0.0
    for schema, count in schemas.items():
        figures = [attributes[one] for one in schema]
        looked_at += min((one.presence for one in figures), default=1.0)
        members = count * scale / more
        products = prod(_coordinates(scheme, one) for one in figures)
        probed += prod(one.presence for one in figures) * min(products, members)
    return Cost(looked_at * more, probed * more, examined * scale)


def choose(
    attributes: Attributes,
    sample: Sample,
    population: int,
    *,
    general: int | None = None,
    classes: int | None = None,
) -> Scheme:
    """Return the cheapest scheme, of those with this G or B if one is given; of equals, the simplest.

    First the hashed attributes are chosen, then the number of classes: in no more classes than attributes have clauses, for each takes
    memory on each attribute. B above any id is only considered where G is given: it costs an event a look at every
    clause of an attribute.
    """

    def cost(scheme: Scheme) -> float:
        return cost_of(scheme, attributes, sample, population).total

    best = min(candidates(attributes, general, _CLASSES[1] if classes is None else classes), key=cost)
    if classes is not None:
        return best
    if best.general == ():
        return Scheme((), _CLASSES[0], best.width, best.equalities)
    # A class takes memory even if it is empty: more of them must pay off.
    finest = _clauses_beside(best, attributes)
    counts = [one for one in _CLASSES[1:] if one <= finest] + ([] if general is None else [ALL_CLASSES])
    best = Scheme(best.general, _CLASSES[0], best.width, best.equalities)
    for one in counts:
        finer = Scheme(best.general, one, best.width, best.equalities)
        if cost(finer) < _FINER * cost(best):
            best = finer
    return best


def is_better(new: Cost, old: Cost) -> bool:
    """Tell whether a scheme is so much cheaper than another that rehashing all subscriptions pays off."""
    return new.total <= BETTER * old.total


def _clauses_beside(scheme: Scheme, attributes: Attributes) -> float:
    """Return how many clauses other than equalities the attribute of one has, on the average over these clauses."""
    hashed = attributes if scheme.general is None else scheme.general
    counts = [attributes[one].others for one in hashed]
    return sum(count * count for count in counts) / max(sum(counts), 1.0)


def _is_hashed(clause: Coordinate, scheme: Scheme, known: Figures) -> bool:
    hashing = scheme.hashing(clause.attribute, equality_only=known.is_equality_only)
    return hashing is Hashing.EVERYTHING or (hashing is Hashing.EQUALITIES and clause.is_equality)


def _hit(clause: Coordinate, scheme: Scheme, known: Figures) -> float:
    """Return the share of events that lead to a clause's coordinate."""
    return known.presence * (known.equal if clause.is_equality else _class_hit(scheme, known))


def _class_hit(scheme: Scheme, known: Figures) -> float:
    # Of clauses that half of the values satisfy, in B classes by their constants, (B + 1) / 2B are reached.
    if scheme.classes == ALL_CLASSES:
        return known.selectivity
    filled = min(float(scheme.classes), max(known.others / _SHAPES, 1.0))
    return known.selectivity + (1.0 - known.selectivity) / filled


def _coordinates(scheme: Scheme, known: Figures) -> float:
    """Return how many coordinates of an attribute an event that has it leads to."""
    equal = min(1.0, known.equalities)
    if not known.others:
        return equal
    classes = known.others if scheme.classes == ALL_CLASSES else min(_SHAPES * scheme.classes, known.others)
    return equal + classes * _class_hit(scheme, known)
