"""Captions of a page: each event, and what each strategy does about it, in plain words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from tocsin.dissemination.page.event_selection import EventKind, Point, ShownEvent
from tocsin.dissemination.strategies.strategy import Outcome, Strategy
from tocsin.dissemination.traffic import MessageRole


def title_of(name: str) -> str:
    """Return the long form of a strategy's name; empty for a strategy that is not one of the six."""
    return _STRATEGIES[name][0] if name in _STRATEGIES else ""


def headline(event: ShownEvent) -> str:
    """Return what happens to the row."""
    row, old, new = f"Row {event.row}", event.old, event.new
    if old is None:
        return f"{row} comes at {_at(new)}"
    if new is None:
        return f"{row} goes from {_at(old)}"
    if old[0] != new[0]:
        return f"{row} moves from {_at(old)} to {_at(new)}"
    direction, beyond = ("falls", "below") if new[1] < old[1] else ("rises", "above")
    text = f"{row} at x = {_number(old[0])}: y {direction} from {_number(old[1])} to {_number(new[1])}"
    also = {EventKind.SPIKE: f", {beyond} all others", EventKind.RETURN: ", back from its spike"}
    return text + also.get(event.kind, "")


def caption(strategy: Strategy, outcome: Outcome, event: ShownEvent) -> str:
    """Return a sentence about a strategy's messages for a change, and their reason."""
    describe = _STRATEGIES[strategy.name][1] if strategy.name in _STRATEGIES else _any_strategy
    return describe(strategy, outcome, event)


def _any_strategy(_: Strategy, outcome: Outcome, __: ShownEvent) -> str:
    sent = int(outcome.traffic.messages.sum())
    are = _verb(sent, "is", "are")
    return f"{_count(sent, 'message').capitalize()} {are} sent: {_answers_change(outcome)}."


def _unicast(strategy: Strategy, outcome: Outcome, _: ShownEvent) -> str:
    """Describe S-UN."""
    if not len(outcome.traffic):
        return _server_sends_nothing(strategy, outcome)
    changed, sent = len(outcome.answer_changes), int(outcome.traffic.messages.sum())
    local = changed - sent
    aside = f" ({local:,} more {_verb(local, 'is', 'are')} at the server's own node)" if local else ""
    return (
        f"{_finds(strategy, changed)}, and writes to {_verb(changed, 'it', 'each')}: "
        f"{_count(sent, 'message')} to {_count(len(outcome.traffic), 'gateway')}{aside}."
    )


def _multicast(strategy: Strategy, outcome: Outcome, _: ShownEvent) -> str:
    """Describe S-MN."""
    if not len(outcome.traffic):
        return _server_sends_nothing(strategy, outcome)
    nodes = len(np.unique(outcome.traffic.receiver))
    return (
        f"{_finds(strategy, len(outcome.answer_changes))}, and hands "
        f"{_count(outcome.outgoing, 'message')} with the list of them down its hierarchy, over {_count(nodes, 'node')}; "
        f"each hands on only those that are below."
    )


def _content_network(strategy: Strategy, outcome: Outcome, event: ShownEvent) -> str:
    changes = _answers_change(outcome)
    return (
        f"Nobody knows whose answer changes. {_forwarding(strategy, outcome, event)}. "
        f"{changes[0].upper()}{changes[1:]}."
    )


def _cutoff(strategy: Strategy, outcome: Outcome, event: ShownEvent) -> str:
    """Describe CN+: the cutoff, or the requests of subscriptions that lose their row."""
    old, new = event.old, event.new
    is_min = strategy.queries.kind == "min"
    is_good = old is not None and new is not None and old[0] == new[0] and (new[1] < old[1]) == is_min
    if is_good:
        owner, changes = _owners(strategy, event)[0], _answers_change(outcome)
        if not len(outcome.traffic):
            return f"{owner} sends nothing, since beyond it nothing can change: {changes}."
        return (
            f"{owner} hands the update on, and every zone notes the rows that keep its own "
            f"answers as they are. Beyond these nothing can change, so it goes no farther than "
            f"{_count(_zones_reached(strategy, outcome, event), 'zone')}: {changes}."
        )
    asked = _messages(outcome, MessageRole.ASK)
    asking = (
        f" Subscriptions that lose their answer's row request another: {_count(asked, 'message')} along the diagonal."
        if asked
        else ""
    )
    return (
        f"The cutoff is for {'falling' if is_min else 'rising'} values alone. "
        f"{_forwarding(strategy, outcome, event)}.{asking}"
    )


def _server_content_network(strategy: Strategy, outcome: Outcome, event: ShownEvent) -> str:
    """Describe S-CN: the affected ranges, and the way of their messages."""
    messages = len(event.messages)
    if not messages:
        return f"The server knows no subscription, and need not: {_no_effect(strategy, event)}. It sends nothing."
    hops = _messages(outcome, MessageRole.ROUTE)
    return (
        f"The server knows no subscription, but the rows: {_affected_ranges(event)}. "
        f"{_count(messages, 'message').capitalize()} {_verb(messages, 'goes', 'go')} {_count(hops, 'hop')} to the corner"
        f"{_verb(messages, '', 's')} of what can change, {_spreading(strategy, outcome, event)}."
    )


def _distributed_server(strategy: Strategy, outcome: Outcome, event: ShownEvent) -> str:
    """Describe DS-CN: the rows that owners request, and the way of the messages."""
    asked = _messages(outcome, MessageRole.ASK)
    owner, *others = _owners(strategy, event)
    asks = f"{_count(asked, 'message')} along the diagonal {_verb(asked, 'asks', 'ask')} for others"
    if others:
        knows = f"{owner} has the rows nearby, and {others[0].lower()} tells of those there"
        knows += f"; {asks}" if asked else ""
    else:
        knows = f"{owner} has the rows nearby, and {asks}" if asked else f"{owner} has all rows that it takes"
    messages = len(event.messages)
    if not messages:
        end = "No answer changes" if len(outcome.traffic) else "It sends nothing"
        return f"{knows}: {_no_effect(strategy, event)}. {end}."
    hops = _messages(outcome, MessageRole.ROUTE)
    going = f"{_verb(messages, 'goes', 'go')} {_count(hops, 'hop')}"
    way = going if hops else f"{_verb(messages, 'starts', 'start')} here"
    return (
        f"{knows}: {_affected_ranges(event)}. {_count(messages, 'message').capitalize()} {way}, "
        f"{_spreading(strategy, outcome, event)}."
    )


_STRATEGIES: Final[Mapping[str, tuple[str, Callable[[Strategy, Outcome, ShownEvent], str]]]] = {
    "S-UN": ("server, unicast", _unicast),
    "S-MN": ("server, multicast", _multicast),
    "CN": ("content-based network", _content_network),
    "CN+": ("content-based network, cutoff", _cutoff),
    "S-CN": ("server, content-based network", _server_content_network),
    "DS-CN": ("distributed server", _distributed_server),
}
"""The title of each strategy, and the function that describes its work."""


# parts of sentences


def _spreading(strategy: Strategy, outcome: Outcome, event: ShownEvent) -> str:
    """Return how far messages spread, and how many answers change."""
    messages = event.messages
    receivers = outcome.traffic.receiver[outcome.traffic.role == MessageRole.SPREAD]
    if not len(receivers):
        return f"and need not spread: {_answers_change(outcome)}"
    corners = strategy.setting.can.locate(messages.inner_l, messages.inner_r)
    zones = len(np.union1d(receivers, corners))
    spread = _verb(len(messages), "spreads", "spread")
    return f"and {spread} over {_count(zones, 'zone')} in all: {_answers_change(outcome)}"


def _affected_ranges(event: ShownEvent) -> str:
    """Return which ranges can change according to the messages."""
    messages = event.messages
    # Where a row moves, one of its two x may affect no answer.
    affecting = [x for x in _x_values(event) if np.any((messages.outer_l < x) & (x < messages.outer_r))]
    lowest, highest = float(messages.outer_l.min()), float(messages.outer_r.max())
    # A message may be for ranges with all x of the change in them, or only for those with one and not the other.
    holds_all = bool(np.any((messages.outer_l < min(affecting)) & (messages.outer_r > max(affecting))))
    points = " or ".join(map(_number, affecting)) + ("" if holds_all else ", but not both,")
    if np.isinf(lowest) and np.isinf(highest):
        # If the widest range changes with its one x, so do all ranges within it that contain this x.
        is_any = len(affecting) == 1 and bool(np.any(np.isinf(messages.outer_l) & np.isinf(messages.outer_r)))
        some = f"any range with {points} in it" if is_any else f"only ranges with {points} in them"
        return f"{some} can change"
    ends = (
        f"above {_number(lowest)}"
        if np.isinf(highest)
        else f"below {_number(highest)}"
        if np.isinf(lowest)
        else f"between {_number(lowest)} and {_number(highest)}"
    )
    return f"only ranges {ends} with {points} in them can change"


def _no_effect(strategy: Strategy, event: ShownEvent) -> str:
    """Return why a change affects no answer."""
    if (
        strategy.queries.kind not in ("min", "max")
        or len(_x_values(event)) > 1
        or None in (event.old, event.new)
    ):
        return "no range's answer depends on it"
    return f"another row at x = {_points(event)} is what counts there, before and after"


def _finds(strategy: Strategy, changed: int) -> str:
    return f"The server finds {_among(strategy)} {_verb(changed, 'one', f'{changed:,}')} whose answer changes"


def _server_sends_nothing(strategy: Strategy, outcome: Outcome) -> str:
    if changed := len(outcome.answer_changes):
        return f"{_finds(strategy, changed)}, all at its own node. It sends nothing."
    return f"The server, which knows every subscription, finds {_among(strategy)} none whose answer changes. It sends nothing."


def _among(strategy: Strategy) -> str:
    count = len(strategy.queries)
    return f"among all {count:,} subscriptions" if count > 1 else "among its one subscription"


def _forwarding(strategy: Strategy, outcome: Outcome, event: ShownEvent) -> str:
    """Return which zones hand an update on, where it goes to all subscriptions that it may concern."""
    owners, reached = _owners(strategy, event), _zones_reached(strategy, outcome, event)
    if reached == 1:
        return f"{owners[0]} is the only one that may have a range with {_points(event)} in it"
    who = " and ".join([owners[0], *(one.lower() for one in owners[1:])])
    hands = _verb(len(owners), "hands", "hand")
    return f"{who} {hands} the update on to all zones that may have a range with {_points(event)} in it: {reached:,} zones"


def _zones_reached(strategy: Strategy, outcome: Outcome, event: ShownEvent) -> int:
    """Return how many zones an update gets to as it spreads, including those where it begins."""
    spreading = outcome.traffic.role == MessageRole.SPREAD
    return len(np.union1d(outcome.traffic.receiver[spreading], _diagonal_zones(strategy, event)))


def _owners(strategy: Strategy, event: ShownEvent) -> list[str]:
    """Return the zones on the diagonal where a row was and where it is, each once."""
    zones: dict[int, float] = {}
    for zone, x in zip(_diagonal_zones(strategy, event), _x_values(event), strict=True):
        zones.setdefault(zone, x)
    return [f"Zone {zone}, where x = {_number(x)} is," for zone, x in zones.items()]


def _diagonal_zones(strategy: Strategy, event: ShownEvent) -> list[int]:
    x = np.array(_x_values(event))
    found: list[int] = strategy.setting.can.locate(x, x).tolist()
    return found


def _x_values(event: ShownEvent) -> list[float]:
    """Return the x where a row was, and where it is if that differs."""
    return list(dict.fromkeys(end[0] for end in (event.old, event.new) if end is not None))


def _points(event: ShownEvent) -> str:
    return " or ".join(map(_number, _x_values(event)))


def _at(point: Point | None) -> str:
    assert point is not None  # noqa: S101 - a change has an old or a new point
    return f"({_number(point[0])}, {_number(point[1])})"


def _messages(outcome: Outcome, role: MessageRole) -> int:
    return int(outcome.traffic.messages[outcome.traffic.role == role].sum())


def _answers_change(outcome: Outcome) -> str:
    changed = len(outcome.answer_changes)
    return f"{_count(changed, 'answer')} {_verb(changed, 'changes', 'change')}"


def _count(count: int, what: str) -> str:
    number = {0: "no", 1: "one"}.get(count, f"{count:,}")
    return f"{number} {what}{_verb(count, '', 's')}"


def _verb(count: int, singular: str, plural: str) -> str:
    return singular if count == 1 else plural


def _number(value: float) -> str:
    return f"{value:,.7g}"
