"""What happens, in plain words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from tocsin.dissemination.page.event_selection import Point, ShownEvent, Sort
from tocsin.dissemination.strategies.strategy import Outcome, Strategy
from tocsin.dissemination.traffic import Role

_TITLES: Final[Mapping[str, str]] = {
    "S-UN": "server, unicast",
    "S-MN": "server, multicast",
    "CN": "content-based network",
    "CN+": "content-based network, cutoff",
    "S-CN": "server, content-based network",
    "DS-CN": "distributed server",
}


def title_of(name: str) -> str:
    """Return what a strategy's name stands for; nothing for one that is none of the six."""
    return _TITLES.get(name, "")


def headline(chapter: ShownEvent) -> str:
    """Return what happens to the row."""
    row, old, new = f"Row {chapter.row}", chapter.old, chapter.new
    if old is None:
        return f"{row} comes at {_at(new)}"
    if new is None:
        return f"{row} goes from {_at(old)}"
    if old[0] != new[0]:
        return f"{row} moves from {_at(old)} to {_at(new)}"
    way = "falls" if new[1] < old[1] else "rises"
    told = f"{row} at x = {_number(old[0])}: y {way} from {_number(old[1])} to {_number(new[1])}"
    beyond = "below" if way == "falls" else "above"
    also = {Sort.SPIKE: f", {beyond} all others", Sort.RETURN: ", back from its spike"}
    return told + also.get(chapter.sort, "")


def in_words(strategy: Strategy, outcome: Outcome, chapter: ShownEvent) -> str:
    """Return what a strategy does about a change, and why."""
    return _WORDS.get(strategy.name, _plain)(strategy, outcome, chapter)


def _plain(_: Strategy, outcome: Outcome, __: ShownEvent) -> str:
    """Return what can be told of any strategy."""
    sent, told = int(outcome.traffic.messages.sum()), len(outcome.answer_changes)
    return f"{_count(sent, 'message').capitalize()} {'is' if sent == 1 else 'are'} sent: {_count(told, 'answer')} {_change(told)}."


def _unicast(strategy: Strategy, outcome: Outcome, _: ShownEvent) -> str:
    told = len(outcome.answer_changes)
    if not told:
        return _finds_none(strategy)
    sent = int(outcome.traffic.messages.sum())
    if not sent:
        return f"{_finds(strategy, told)}, all at its own node. It sends nothing."
    return (
        f"{_finds(strategy, told)}, and writes to {'it' if told == 1 else 'each'}: "
        f"{_count(sent, 'message')} to {_count(len(outcome.traffic), 'gateway')}{_at_home(told - sent)}."
    )


def _multicast(strategy: Strategy, outcome: Outcome, _: ShownEvent) -> str:
    told = len(outcome.answer_changes)
    if not told:
        return _finds_none(strategy)
    nodes = len(np.unique(outcome.traffic.receiver))
    if not nodes:
        return f"{_finds(strategy, told)}, all at its own node. It sends nothing."
    return (
        f"{_finds(strategy, told)}, and hands "
        f"{_count(outcome.outgoing, 'message')} with the list of them down its hierarchy, over {_count(nodes, 'node')}; "
        f"each hands on only those that are below."
    )


def _content(strategy: Strategy, outcome: Outcome, chapter: ShownEvent) -> str:
    return (
        f"Nobody knows whose answer changes. {_handing_on(strategy, outcome, chapter)}. "
        f"{_count(len(outcome.answer_changes), 'answer').capitalize()} {_change(len(outcome.answer_changes))}."
    )


def _cutoff(strategy: Strategy, outcome: Outcome, chapter: ShownEvent) -> str:
    old, new = chapter.old, chapter.new
    is_min = strategy.queries.kind == "min"
    is_good = old is not None and new is not None and old[0] == new[0] and (new[1] < old[1]) == is_min
    if is_good:
        changed = f"{_count(len(outcome.answer_changes), 'answer')} {_change(len(outcome.answer_changes))}"
        if not len(outcome.traffic):
            return (
                f"{_owner(strategy, chapter)} sends nothing, since beyond it nothing can change: {changed}."
            )
        return (
            f"{_owner(strategy, chapter)} hands the update on, and every zone notes the rows that keep its own "
            f"answers as they are. Beyond these nothing can change, so it goes no farther than "
            f"{_count(_reached(strategy, outcome, chapter), 'zone')}: {changed}."
        )
    asked = int(outcome.traffic.messages[outcome.traffic.role == Role.ASK].sum())
    asking = (
        f" Those who lose their answer's row ask for another: {_count(asked, 'message')} along the diagonal."
        if asked
        else ""
    )
    return (
        f"The cutoff is for {'falling' if is_min else 'rising'} values alone. "
        f"{_handing_on(strategy, outcome, chapter)}.{asking}"
    )


def _served(strategy: Strategy, outcome: Outcome, chapter: ShownEvent) -> str:
    messages = len(chapter.messages)
    if not messages:
        return (
            f"The server knows no subscription, and need not: {_nobody(strategy, chapter)}. It sends nothing."
        )
    hops = int(outcome.traffic.messages[outcome.traffic.role == Role.ROUTE].sum())
    return (
        f"The server knows no subscription, but the rows: {_reach(chapter)}. "
        f"{_count(messages, 'message').capitalize()} {_go(messages)} {_count(hops, 'hop')} to the corner"
        f"{'' if messages == 1 else 's'} of what can change, {_spreading(strategy, outcome, chapter)}."
    )


def _distributed(strategy: Strategy, outcome: Outcome, chapter: ShownEvent) -> str:
    asked = int(outcome.traffic.messages[outcome.traffic.role == Role.ASK].sum())
    owner, *others = _owners(strategy, chapter)
    asks = f"{_count(asked, 'message')} along the diagonal {'asks' if asked == 1 else 'ask'} for others"
    if others:
        knows = f"{owner} has the rows nearby, and {others[0].lower()} tells of those there"
        knows += f"; {asks}" if asked else ""
    else:
        knows = f"{owner} has the rows nearby, and {asks}" if asked else f"{owner} has all rows that it takes"
    messages = len(chapter.messages)
    if not messages:
        end = "Nobody needs to be told" if len(outcome.traffic) else "It sends nothing"
        return f"{knows}: {_nobody(strategy, chapter)}. {end}."
    hops = int(outcome.traffic.messages[outcome.traffic.role == Role.ROUTE].sum())
    way = (
        f"{_go(messages)} {_count(hops, 'hop')}" if hops else f"{'starts' if messages == 1 else 'start'} here"
    )
    return f"{knows}: {_reach(chapter)}. {_count(messages, 'message').capitalize()} {way}, {_spreading(strategy, outcome, chapter)}."


_WORDS: Final[Mapping[str, Callable[[Strategy, Outcome, ShownEvent], str]]] = {
    "S-UN": _unicast,
    "S-MN": _multicast,
    "CN": _content,
    "CN+": _cutoff,
    "S-CN": _served,
    "DS-CN": _distributed,
}


# parts of sentences


def _spreading(strategy: Strategy, outcome: Outcome, chapter: ShownEvent) -> str:
    """Return how far messages spread, and for whom."""
    messages = chapter.messages
    receivers = outcome.traffic.receiver[outcome.traffic.role == Role.SPREAD]
    told = len(outcome.answer_changes)
    one = len(messages) == 1
    if len(receivers):
        corners = strategy.setting.can.locate(messages.inner_l, messages.inner_r)
        zones = len(np.union1d(receivers, corners))
        further = f"and {'spreads' if one else 'spread'} over {_count(zones, 'zone')} in all"
    else:
        further = "and need not spread"
    return f"{further}: {_count(told, 'answer')} {_change(told)}"


def _reach(chapter: ShownEvent) -> str:
    """Return which ranges can change, as the messages say it."""
    messages = chapter.messages
    # Where a row moves, it may be that nothing depends on one of its two x.
    places = [x for x in _places(chapter) if np.any((messages.outer_l < x) & (x < messages.outer_r))]
    lowest, highest = float(messages.outer_l.min()), float(messages.outer_r.max())
    # A message may be for ranges that hold all the x of the change, or only for such as hold one and not the other.
    holds_all = bool(np.any((messages.outer_l < min(places)) & (messages.outer_r > max(places))))
    points = " or ".join(map(_number, places)) + ("" if holds_all else ", but not both,")
    if np.isinf(lowest) and np.isinf(highest):
        # Where the widest range changes with its one x, so do all within it that hold this.
        is_any = len(places) == 1 and bool(np.any(np.isinf(messages.outer_l) & np.isinf(messages.outer_r)))
        return (
            f"any range with {points} in it can change"
            if is_any
            else f"only ranges with {points} in them can change"
        )
    ends = (
        f"above {_number(lowest)}"
        if np.isinf(highest)
        else f"below {_number(highest)}"
        if np.isinf(lowest)
        else f"between {_number(lowest)} and {_number(highest)}"
    )
    return f"only ranges {ends} with {points} in them can change"


def _nobody(strategy: Strategy, chapter: ShownEvent) -> str:
    if (
        strategy.queries.kind not in ("min", "max")
        or len(_places(chapter)) > 1
        or None in (chapter.old, chapter.new)
    ):
        return "no range's answer depends on it"
    return f"another row at x = {_points(chapter)} is what counts there, before and after"


def _finds(strategy: Strategy, told: int) -> str:
    return f"The server finds {_among(strategy)} {'one' if told == 1 else f'{told:,}'} whose answer changes"


def _finds_none(strategy: Strategy) -> str:
    return f"The server, which knows every subscription, finds {_among(strategy)} none whose answer changes. It sends nothing."


def _among(strategy: Strategy) -> str:
    count = len(strategy.queries)
    return f"among all {count:,} subscriptions" if count > 1 else "among its one subscription"


def _handing_on(strategy: Strategy, outcome: Outcome, chapter: ShownEvent) -> str:
    """Return who hands an update on to whom, where it goes to all whom it may concern."""
    owners, reached = _owners(strategy, chapter), _reached(strategy, outcome, chapter)
    if reached == 1:
        return f"{owners[0]} is the only one that may have a range with {_points(chapter)} in it"
    who = " and ".join([owners[0], *(one.lower() for one in owners[1:])])
    hands = "hands" if len(owners) == 1 else "hand"
    return f"{who} {hands} the update on to all zones that may have a range with {_points(chapter)} in it: {reached:,} zones"


def _reached(strategy: Strategy, outcome: Outcome, chapter: ShownEvent) -> int:
    """Return how many zones an update gets to as it spreads, those included where it begins."""
    spreading = outcome.traffic.role == Role.SPREAD
    return len(np.union1d(outcome.traffic.receiver[spreading], _located(strategy, chapter)))


def _owner(strategy: Strategy, chapter: ShownEvent) -> str:
    return _owners(strategy, chapter)[0]


def _owners(strategy: Strategy, chapter: ShownEvent) -> list[str]:
    """Return the zones at the diagonal where a row was and where it is, each once."""
    zones: dict[int, float] = {}
    for zone, x in zip(_located(strategy, chapter), _places(chapter), strict=True):
        zones.setdefault(zone, x)
    return [f"Zone {zone}, where x = {_number(x)} is," for zone, x in zones.items()]


def _located(strategy: Strategy, chapter: ShownEvent) -> list[int]:
    x = np.array(_places(chapter))
    found: list[int] = strategy.setting.can.locate(x, x).tolist()
    return found


def _places(chapter: ShownEvent) -> list[float]:
    """Return the x where a row was and is, if that is another one."""
    return list(dict.fromkeys(end[0] for end in (chapter.old, chapter.new) if end is not None))


def _points(chapter: ShownEvent) -> str:
    return " or ".join(map(_number, _places(chapter)))


def _at_home(count: int) -> str:
    return f" ({count:,} more {'is' if count == 1 else 'are'} at the server's own node)" if count else ""


def _at(point: Point | None) -> str:
    assert point is not None  # noqa: S101 - a change has one of both
    return f"({_number(point[0])}, {_number(point[1])})"


def _count(count: int, what: str) -> str:
    return (
        f"{'no' if count == 0 else 'one' if count == 1 else f'{count:,}'} {what}{'' if count == 1 else 's'}"
    )


def _change(count: int) -> str:
    return "changes" if count == 1 else "change"


def _go(count: int) -> str:
    return "goes" if count == 1 else "go"


def _number(value: float) -> str:
    return f"{value:,.7g}"
