"""Subscriptions as an index has them, from a plain list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tocsin.index.stateful import StatefulRun, StatefulSubscriptions
from tocsin.language import to_text
from tocsin.model import Filter, Subscription
from tocsin.structures.packed_strings import PackedStrings
from tocsin.subscriptions.options import read_options
from tocsin.subscriptions.runs import Run


def stateful_subscriptions(
    subscriptions: Iterable[Subscription],
    *,
    tables: Mapping[str, str | Sequence[str]] | None = None,
    ticks: Mapping[str, int] | None = None,
    numbers: Mapping[str, int] | None = None,
) -> StatefulSubscriptions:
    """Return subscriptions as an index has them, filters among them as those on published streams.

    `numbers` are those of the subscriptions by id, by default their positions. One that is replaced needs a new number.
    """
    each = list(subscriptions)
    of_id = {one.id: number for number, one in enumerate(each)} if numbers is None else numbers
    filters = [one for one in each if isinstance(one.query, Filter)]
    others = [one for one in each if not isinstance(one.query, Filter)]
    keys = {name: (key,) if isinstance(key, str) else tuple(key) for name, key in (tables or {}).items()}
    return StatefulSubscriptions(
        "", tuple(_runs(others, of_id)), tuple(_runs(filters, of_id)), keys, dict(ticks or {})
    )


def _runs(subscriptions: list[Subscription], numbers: Mapping[str, int]) -> Iterable[StatefulRun]:
    if not subscriptions:
        return
    options = [
        read_options(one.valid_from, one.valid_until, id_=one.id, weight=one.weight, witness=one.witness)
        for one in subscriptions
    ]
    texts = [to_text(one.query) for one in subscriptions]
    own = np.array([numbers[one.id] for one in subscriptions], dtype=np.int64)
    ids = PackedStrings([one.id for one in subscriptions])
    yield StatefulRun(Run(ids, options, None, texts), own, np.zeros(len(own), dtype=np.int64))
