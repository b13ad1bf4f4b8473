"""The experiments: figure 1, the studies behind the rules for G and B, and the time beside other matchers; sizes and plots."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from math import inf, isqrt
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from benchmarks.amkh.workload import FIGURE_1, Parameters, Workload
from benchmarks.runner.agreement import Agreement, summary
from benchmarks.runner.benchmark import MATCHERS, Benchmark, Experiment
from benchmarks.runner.plots import Panel, Plot, lines
from benchmarks.runner.session import MatcherSession, scales
from benchmarks.runner.subject import Contender, Subject
from benchmarks.runner.tables import show_by_place
from tocsin.matching.amkh.matcher import Amkh
from tocsin.matching.encoding.codes import Keys

SCALES: Final = scales(
    # subscriptions (N) of figure 1, and where times are compared
    sizes=((50_000, 200_000), (200_000, 1_000_000)),
    # subscriptions, where something else is varied; the published methods get as many buckets
    usual=(200_000, 1_000_000),
    highest=((15, 35, 55, 75, 95), (15, 25, 35, 45, 55, 65, 75, 85, 95)),  # x: constants are 6 to x
    ratios=((0.25, 1.0, 4.0), (0.25, 1.0, 4.0)),  # N/M: subscriptions to a bucket
    equality_clauses=((0, 1, 2, 3, 4, 5), (0, 1, 2, 3, 4, 5)),  # of a subscription, where G is studied
    small_set=(3, 3),  # equality-only attributes in use, where these are few
    hashed=((0, 1, 2), (0, 1, 2)),  # G
    classes=((2, 8, 64, inf), (2, 4, 8, 16, 64, inf)),  # B
    # per cent of values that an inequality holds for
    selectivities=((1, 5, 20, 80), (1, 2, 5, 10, 20, 50, 80)),
    events=(500, 2_000),  # that a figure is taken from,
    seconds=(0.5, 5.0),  # or as many batches of them as this time allows
    warm_up=(250, 500),  # events before
    batch=(250, 250),  # events
)

AUTOMATIC: Final = "amkh"  # chooses G and B by itself
BEST: Final = "best of these"
_AS_PUBLISHED: Final = {"split_weights": False, "ranked_classes": False}
_FIRST_CLASSES: Final = 2  # B, where G is varied


class Found(Struct, frozen=True):
    """The cost of an event; None where the matcher does not count it."""

    microseconds: float
    unmatched: float | None


class AmkhSession(MatcherSession):
    """Fills matchers with a workload's subscriptions, and records the cost of its events."""

    paper = ("amkh", "mkh", "dynamic", "opindex")

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._agreement = Agreement()

    def small_workloads(self) -> Sequence[Any]:
        """Return the workload of figure 1."""
        return [Workload(FIGURE_1)]

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that the report names, with the usual sizes."""
        return {**super().parameters(), "usual": self.scale.usual, "events": self.scale.events}

    def measure(
        self, contender: Contender, parameters: Parameters, at: float, count: int, *, building: bool = False
    ) -> Found:
        """Record the cost of a workload's events with its first `count` subscriptions and, if `building`, of loading them."""
        gc.collect()
        label, scale, workload = contender.label, self.scale, Workload(parameters)
        subject = Subject(contender)
        loading = subject.load(
            workload.subscriptions(0, count), lambda text: self.tell(label, f"{text} of {count:,}")
        )
        if building:
            self.record("build time", label, at, loading.seconds, "s")
            self.record("memory", label, at, loading.bytes / 1e6, "MB")
        self.tell(label, f"matching, {count:,} subscriptions")
        for events in workload.events(0, scale.warm_up, batch=scale.batch):
            subject.match(events)
        matcher = subject.matcher
        if isinstance(matcher, Amkh):  # the choice itself is measured, not how soon it is made
            matcher.review()
            matcher.forget_examined()
        found: list[Keys] = []
        timing = subject.time(
            workload.events(scale.warm_up, scale.warm_up + scale.events, batch=scale.batch),
            scale.seconds,
            lambda matches: found.append(summary(matches)),
        )
        self._agreement.check((self.experiment, at), label, found)
        unmatched = None
        if isinstance(matcher, Amkh):
            cost = matcher.examined()
            unmatched = cost.unmatched / max(cost.events, 1)
            self.record("unmatched examined", label, at, unmatched, "an event")
            self.record("buckets probed", label, at, cost.probed / max(cost.events, 1), "an event")
        self.record("matches", label, at, timing.matches, "an event")
        self.record("matching time", label, at, timing.total, "µs")
        return Found(timing.total, unmatched)


def figure_1(session: AmkhSession) -> None:
    """Record the unmatched subscriptions examined by the range of the constants, for tables of several sizes."""
    for count in session.scale.sizes:
        for ratio in session.scale.ratios:
            buckets = prime(max(round(count / ratio), 2))
            methods = [_mkh(buckets), _amkh(1, 2, buckets), _amkh(0, 2, buckets)]
            session.begin(f"figure 1: {count:,} subscriptions, {ratio:g} to a bucket")
            for highest in session.scale.highest:
                for contender in session.taking_part(methods):
                    session.measure(contender, replace(FIGURE_1, highest=highest), highest, count)


def hashed(session: AmkhSession) -> None:
    """Compare numbers of hashed general attributes (G), by the number of clauses on equality-only attributes."""
    scale = session.scale
    for name, small in (("any equality-only attributes", None), ("a small set of them", scale.small_set)):
        session.begin(f"best G: {name}")
        for count in scale.equality_clauses:
            if small is not None and not 1 <= count <= small:
                continue
            parameters = replace(
                FIGURE_1,
                equality_clauses=count,
                fixed_equality=min(count, 1),
                equality_set=small,
                general_clauses=2,
                fixed_general=2,
            )
            _choose(session, parameters, count, {f"{g}": (g, _FIRST_CLASSES) for g in scale.hashed})


def classes(session: AmkhSession) -> None:
    """Compare numbers of classes (B), by the share of values that satisfy an inequality."""
    for share in session.scale.selectivities:
        choices = {_written(b): (1, b) for b in session.scale.classes}
        _choose(session, replace(FIGURE_1, selectivity=share / 100), share, choices)


def times(session: AmkhSession) -> None:
    """Compare the time and the memory of AMKH with those of other matchers, on figure 1's workload."""
    for count in session.scale.sizes:
        for contender in [*session.taking_part([_amkh(1, 2), _amkh(0, 2)]), *session.contenders]:
            session.measure(contender, FIGURE_1, count, count, building=True)


def _choose(
    session: AmkhSession, parameters: Parameters, at: float, choices: Mapping[str, tuple[int, float]]
) -> None:
    """Measure fixed choices of G and B and the automatic one; record the best, and the automatic choice beside it."""
    usual = session.scale.usual
    found: dict[str, Found] = {}
    for value, (general, number) in choices.items():
        for contender in session.taking_part([_amkh(general, number, prime(usual))]):
            found[value] = session.measure(contender, parameters, at, usual)
    for automatic in session.taking_part([Contender.of(AUTOMATIC)]):
        chosen = session.measure(automatic, parameters, at, usual)
        if not found:
            continue
        fewest = min(found, key=lambda value: found[value].unmatched or 0.0)
        fastest = min(found, key=lambda value: found[value].microseconds)
        session.record("unmatched examined", BEST, at, found[fewest].unmatched or 0.0, "an event", of=fewest)
        session.record("matching time", BEST, at, found[fastest].microseconds, "µs", of=fastest)
        ratio = chosen.microseconds / max(found[fastest].microseconds, 1e-9)
        session.record("time over the best", automatic.label, at, ratio, "times", best=fastest)


def _amkh(general: int, classes: float, buckets: int | None = None) -> Contender:
    options: dict[str, float | bool] = {"general": general, "classes": classes, **_AS_PUBLISHED}
    if buckets is not None:
        options["buckets"] = buckets
    return Contender(name_of(general, classes), AUTOMATIC, options)


def name_of(general: int, classes: float) -> str:
    """Return a method as the paper writes it.

    >>> name_of(1, 2), name_of(0, 2)
    ('AMKH(1,2)', 'AMKH(0,-)')
    """
    return f"AMKH({general},{_written(classes)})" if general else "AMKH(0,-)"


def _written(classes: float) -> str:
    return "∞" if classes == inf else f"{classes:g}"


def _mkh(buckets: int) -> Contender:
    return Contender("MKH", "mkh", {"split_weights": False, "buckets": buckets})


def prime(least: int) -> int:
    """Return the first prime number that is not less.

    >>> prime(100), prime(101), prime(2)
    (101, 101, 2)
    """
    number = max(least, 2)
    while any(number % divisor == 0 for divisor in range(2, isqrt(number) + 1)):
        number += 1
    return number


EXPERIMENTS: Final[Mapping[str, Experiment[AmkhSession]]] = {
    "figure 1": Experiment("Figure 1: range of the constants", "6 to x", figure_1),
    "best G": Experiment("Best G, by clauses on equality-only attributes", "clauses", hashed),
    "best B": Experiment("Best B, by the selectivity of inequalities", "% of values", classes),
    "time": Experiment("Time beside other matchers, figure 1's workload", "subscriptions", times),
}

_UNMATCHED, _TIME = "unmatched examined", "matching time"
_CLAUSES: Final = "clauses on equality-only attributes"
_SHARE: Final = "% of values that satisfy an inequality"

PLOTS: Final[Mapping[str, Plot]] = {
    "figure-1": lines(Panel("figure 1: *", _UNMATCHED, "x: constants are 6 to x", ""), widest=3),
    "hashed": lines(
        Panel("best G: *", _UNMATCHED, _CLAUSES, "", without=(BEST,)),
        Panel("best G: *", _TIME, _CLAUSES, "", without=(BEST,)),
        widest=2,
    ),
    "classes": lines(
        Panel("best B", _UNMATCHED, _SHARE, "unmatched examined an event", without=(BEST,)),
        Panel("best B", _TIME, _SHARE, "time an event", without=(BEST,)),
    ),
    "times": lines(Panel("time", _TIME, "subscriptions", "time an event, figure 1's workload, x = 95")),
}

BENCHMARK: Final = Benchmark(
    name="amkh",
    title="AMKH (Wu and Yu): figure 1, the best numbers of hashed attributes and classes, and the time per event.",
    sizes="small: about two minutes; paper: up to 1,000,000 subscriptions",
    scales=SCALES,
    session=AmkhSession,
    experiments=EXPERIMENTS,
    show=show_by_place,
    plots=PLOTS,
    options=(MATCHERS,),
)
