"""What statistics of events say about encoded attributes and values: equalities, presence, and where values lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from tocsin.matching.encoding.codes import (
    FIELD_MASK,
    FIELDS,
    Field,
    Keys,
    key_of,
    keys_of_numbers,
    neighbours,
    string_key_bounds,
)
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.statistics.distribution import Distribution
from tocsin.matching.statistics.statistics import Statistics
from tocsin.model.values import Kind, Value
from tocsin.structures.array_types import Float64s

KINDS: Final = {
    Field.NUMBER: Kind.NUMBER,
    Field.BIG: Kind.NUMBER,
    Field.STRING: Kind.STRING,
    Field.BOOLEAN: Kind.BOOLEAN,
    Field.TIMESTAMP: Kind.TIMESTAMP,
    Field.TEXT: Kind.STRING,
}
_OF_TEXTS: Final = 0.1  # of a test on strings, where no frequent string tells better
_OF_A_BIN: Final = 16  # values that stand for those of a bin
_LARGE: Final = 2.0**1000  # numbers up to which differences are finite


def equality_probabilities(
    statistics: Statistics, vocabulary: Vocabulary, tags: Keys, keys: Keys
) -> Float64s:
    """Return the probabilities of these equalities; a stored test on strings is one, too."""
    found = np.zeros(len(tags), dtype=np.float64)
    for tag in np.unique(tags).tolist():
        path, field = place_of(vocabulary, tag)
        values = statistics.attribute(path).of(KINDS[field])
        if values.count:
            rows = np.flatnonzero(tags == tag)
            if field is Field.TEXT:
                attribute = vocabulary.names.codes[path]
                counts = _passing(values, vocabulary, attribute, keys[rows].tolist())
            else:
                counts = [values.equal_to(vocabulary.constant(field, key)) for key in keys[rows].tolist()]
            found[rows] = np.array(counts) / statistics.events
    return found


def _passing(
    texts: Distribution, vocabulary: Vocabulary, attribute: int, codes: Sequence[int]
) -> list[float]:
    """Return the share of events that pass each of these tests: the rest is assumed to be like the frequent strings."""
    frequent = [str(text) for text in texts.frequent]
    tested = texts.count - texts.rest
    if not tested:
        return [_OF_TEXTS * texts.count] * len(codes)
    attributes = np.full(len(frequent), attribute, dtype=np.int64)
    offsets, passed = vocabulary.tests.passed(attributes, frequent)
    counts: Counter[int] = Counter()
    for code, count in zip(
        passed.tolist(), np.repeat(list(texts.frequent.values()), np.diff(offsets)).tolist(), strict=True
    ):
        counts[code] += count
    return [counts[code] * texts.count / tested for code in codes]


def presence_probability(statistics: Statistics, vocabulary: Vocabulary, field: int) -> float:
    """Return the probability that an event has a value in a field."""
    path, kind = place_of(vocabulary, field)
    if kind is Field.ANY or not statistics.events:
        return statistics.presence(path)
    return min(statistics.attribute(path).of(KINDS[kind]).count / statistics.events, 1.0)


def value_keys(values: Distribution) -> tuple[Keys, Float64s]:
    """Return keys in the order of values, ascending, and the number of events with each.

    A frequent value stands for itself; the values of a bin are taken to be spread evenly.
    """
    pairs = [(_order_key(value), float(count)) for value, count in values.frequent.items()]
    for (low, high), depth in zip(pairwise(values.bounds), values.depths, strict=True):
        spread = _spread(values.kind, low, high)
        pairs += [(key, depth / len(spread)) for key in spread]
    pairs.sort()
    return np.array([key for key, _ in pairs], dtype=np.int64), np.array([count for _, count in pairs])


def place_of(vocabulary: Vocabulary, tag: int) -> tuple[str, Field]:
    """Return the attribute and the field that a predicate's tag names."""
    place = tag & FIELD_MASK
    return vocabulary.names.value(place // FIELDS), Field(place % FIELDS)


def _order_key(value: Value) -> int:
    """Return the key of a value in the order of its kind; of the two between which it lies, the lower one."""
    if isinstance(value, str):
        return string_key_bounds(value)[0]
    key = key_of(value)
    return neighbours(value)[0] if key is None else key  # type: ignore[arg-type]


def _spread(kind: Kind, low: Any, high: Any) -> list[int]:
    """Return keys of values in a bin; its upper bound only where values have no difference."""
    if kind is Kind.TIMESTAMP:
        first, last = _order_key(low), _order_key(high)
        return [first + (last - first) * step // _OF_A_BIN for step in range(1, _OF_A_BIN + 1)]
    if kind is Kind.NUMBER and abs(low) < _LARGE and abs(high) < _LARGE:
        found: list[int] = keys_of_numbers(np.linspace(low, high, _OF_A_BIN + 1)[1:]).tolist()
        return found
    return [_order_key(high)]
