"""The options of a subscription: id, validity, owner, weight, witness."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, tzinfo
from functools import lru_cache

from tocsin.matching.ranking import check_weight
from tocsin.model.errors import KindError, MatcherError, SubscriptionError
from tocsin.model.options import ALWAYS, FOREVER, SubscriptionOptions, Validity
from tocsin.model.values import read_moment, read_ticks


def read_options(
    valid_from: object | None = None,
    valid_until: object | None = None,
    owner: str | None = None,
    id_: str | None = None,
    *,
    weight: object = 1.0,
    witness: object = None,
    zone: tzinfo = UTC,
) -> SubscriptionOptions:
    """Return the options as the engine stores them, or raise `SubscriptionError`; times without a zone are of `zone`."""
    if owner is not None and not isinstance(owner, str):
        raise SubscriptionError(f"an owner is a string, not {owner!r}", id_)
    if (
        valid_from is None
        and valid_until is None
        and witness is None
        and type(weight) is float
        and weight == 1.0
    ):
        return _plain_options(owner)
    try:
        validity = _read_validity(valid_from, valid_until, zone)
    except KindError as fault:
        raise SubscriptionError(f"its validity cannot be read: {fault}", id_) from None
    try:
        check_weight(weight)
    except MatcherError as fault:
        raise SubscriptionError(str(fault), id_) from None
    if witness not in (None, "full"):
        raise SubscriptionError(
            f'a witness is "full", or the first and last events, None, not {witness!r}', id_
        )
    # A copy, so that later changes of the caller's mapping do not reach the subscription.
    stored = dict(weight) if isinstance(weight, Mapping) else weight
    return SubscriptionOptions(validity, owner, stored, witness)  # type: ignore[arg-type]


def _read_validity(valid_from: object | None, valid_until: object | None, zone: tzinfo) -> Validity:
    """Return when a subscription applies, by ticks or by dates; beside a date, a number is in microseconds."""
    moments = [None if raw is None else read_moment(raw, zone) for raw in (valid_from, valid_until)]
    bounds = [
        default if raw is None else read_ticks(raw) if moment is None else moment
        for raw, moment, default in zip((valid_from, valid_until), moments, (ALWAYS, FOREVER), strict=True)
    ]
    return Validity(bounds[0], bounds[1], is_dated=moments != [None, None])


@lru_cache(maxsize=1024)
def _plain_options(owner: str | None) -> SubscriptionOptions:
    """Return the options of most subscriptions; those of an owner share them."""
    return SubscriptionOptions(owner=owner)


def check_id(id_: object) -> None:
    """Raise `SubscriptionError` unless `id_` can name a subscription."""
    if not isinstance(id_, str) or not id_:
        raise SubscriptionError(f"an id is a string that is not empty, not {id_!r}")
    if not is_encodable(id_):
        raise SubscriptionError(f"the id {id_!r} has half of a character, and cannot be written as UTF-8")


def is_encodable(id_: str) -> bool:
    """Tell whether an id can be written as UTF-8; one with half of a surrogate pair cannot."""
    if id_.isprintable():  # surrogates are not, and this is quicker
        return True
    try:
        id_.encode()
    except UnicodeEncodeError:
        return False
    return True
