"""The subscriptions that need state, as the shards take them: runs of texts, and of the rows of a template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from tocsin.language import to_text
from tocsin.language.template.template import Template
from tocsin.matching import IdArray
from tocsin.model import Subscription
from tocsin.model.options import SubscriptionOptions
from tocsin.subscriptions.options import read_options
from tocsin.subscriptions.queries import StoredTemplate


class StatefulRun(Struct, frozen=True):
    """Subscriptions that came one after another: the rows of a template with the same options, or texts.

    `since` is the generation in which each was added or replaced, so that a later generation knows which it has already.
    """

    ids: Sequence[str]
    since: IdArray
    options: Sequence[SubscriptionOptions]  # of each text; one, of all rows
    template: StoredTemplate | None = None
    texts: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, positions: IdArray) -> StatefulRun:
        """Return the subscriptions at these positions."""
        places = positions.tolist()
        ids, since = [self.ids[place] for place in places], self.since[positions]
        if self.template is not None:
            return StatefulRun(ids, since, self.options, self.template.take(positions))
        options = [self.options[place] for place in places]
        return StatefulRun(ids, since, options, None, [self.texts[place] for place in places])


class StatefulSubscriptions(Struct, frozen=True):
    """Sequences, views, and filters on the streams that sequences publish, with the tables and ticks they need.

    `tables` has the key of each declared table, `ticks` the microseconds of a tick of each declared stream.
    """

    runs: tuple[StatefulRun, ...]
    tables: Mapping[str, tuple[str, ...]] = {}
    ticks: Mapping[str, int] = {}

    @classmethod
    def of(
        cls,
        subscriptions: Iterable[Subscription],
        *,
        tables: Mapping[str, str | Sequence[str]] | None = None,
        ticks: Mapping[str, int] | None = None,
        since: Mapping[str, int] | None = None,
    ) -> StatefulSubscriptions:
        """Return subscriptions given one by one; `since` has the generations of those that are not of the first."""
        each = list(subscriptions)
        texts = [to_text(one.query) for one in each]
        generations = np.array([(since or {}).get(one.id, 0) for one in each], dtype=np.int64)
        run = StatefulRun([one.id for one in each], generations, list(map(_options, each)), None, texts)
        keys = {name: (key,) if isinstance(key, str) else tuple(key) for name, key in (tables or {}).items()}
        return cls((run,) if each else (), keys, dict(ticks or {}))

    @classmethod
    def of_template(
        cls,
        template: Template,
        rows: Mapping[str, Sequence[object]],
        ids: Sequence[str],
        options: SubscriptionOptions | None = None,
        since: int = 0,
    ) -> StatefulSubscriptions:
        """Return a subscription for each row of a template's parameters; faulty rows are refused."""
        bound = template.bind_many(rows)
        if bound.errors:
            raise bound.errors[0]
        generations = np.full(len(bound), since, dtype=np.int64)
        taken = [ids[row] for row in bound.rows.tolist()]
        given = (SubscriptionOptions() if options is None else options,)
        return cls((StatefulRun(taken, generations, given, StoredTemplate(template, bound)),))

    def with_runs(self, runs: Iterable[StatefulRun]) -> StatefulSubscriptions:
        """Return the same with more subscriptions."""
        return StatefulSubscriptions((*self.runs, *runs), self.tables, self.ticks)

    def __len__(self) -> int:
        return sum(map(len, self.runs))


def _options(one: Subscription) -> SubscriptionOptions:
    return read_options(one.valid_from, one.valid_until, id_=one.id, weight=one.weight, witness=one.witness)
