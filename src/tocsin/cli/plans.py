"""The plans of filters at the command line: the engine they come from, and the plan of one filter."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from tocsin.cli import options
from tocsin.cli.coverage import observed, warn_of_unseen
from tocsin.cli.explained_events import open_explained
from tocsin.cli.json_results import warning_record, write_result
from tocsin.cli.output import results
from tocsin.cli.subscription_loading import load_entries
from tocsin.cli.terminal import FaultLog, counted, errors, print_trees, progress, warn, watched
from tocsin.engine import Engine
from tocsin.formats import Fault
from tocsin.language.parsing.cursor import closest
from tocsin.language.schema_inference import ObservedSchema
from tocsin.matching.plans import FilterPlan
from tocsin.model import Event
from tocsin.model.errors import LanguageError, TocsinError

MATCHER: Final = "adaptive"
_ENOUGH: Final = 32_768  # events, beside which the guesses about values that have not come hardly count
_FEW: Final = 0.05  # of the events: a value that holds for no more is selective
_AGAIN: Final = 8  # events for each value: others are like ids and times, and nobody asks for one
_MOST_IDS: Final = 100_000  # that a mistyped one is compared with
_ID: Final = "it"
_COMMAND: Final = "explain"


def show_plan(
    text: str,
    given: str | None,
    among: list[Path],
    replay: options.ReplayOptions,
    log: FaultLog,
    *,
    json: Path | None,
    quiet: bool,
) -> None:
    """Print how events reach a filter, which is a text, or the id of one that is `among` others."""
    options.check_standard_input(given, *among)
    engine = replay.engine(MATCHER, log)
    name: str
    warnings: tuple[str, ...]
    with working("reading subscriptions", quiet=quiet):
        for file in among:
            load_entries(engine, file, log)
    if text in engine:
        name, warnings = text, ()
    else:
        name, warnings = _subscribe(engine, text, has_ids=bool(among))
    engine.explain_plan(name)  # of a sequence or a view it fails, and no event need be read
    seen = Seen()
    if given is not None:
        seen = adapt(engine, given, replay, log, quiet=quiet)
        warnings = (*warnings, *warn_of_unseen(engine, seen.schema, log.count))
    plan = seen.completed(engine.explain_plan(name))
    console = results(json)
    print_trees(plan.trees(), console)
    remarks = [f"among {counted(len(engine), 'subscription')}"] if len(engine) > 1 else []
    remarks += [f"expected from {counted(seen.count, 'event')}"] if seen.count else []
    if remarks:
        console.print(", ".join(remarks), style="dim", soft_wrap=True)
    record = {"kind": "plan", "events": seen.count, "subscriptions": len(engine), **plan.record()}
    record["subscription"] = text
    write_result(json, _COMMAND, record, warnings=map(warning_record, warnings), log=log)


def _subscribe(engine: Engine, text: str, *, has_ids: bool) -> tuple[str, tuple[str, ...]]:
    """Subscribe a text, and return its id and its warnings; a faulty one may have been meant as the id of another."""
    name = _ID
    while name in engine:
        name += "_"
    try:
        warnings = engine.subscribe(text, id=name).warnings
    except LanguageError as fault:
        may_be_id = has_ids and len(engine) <= _MOST_IDS
        near = closest(text, tuple(one.id for one in engine.subscriptions())) if may_be_id else None
        if near is None:
            raise
        raise TocsinError(f"there is no subscription `{text}`; did you mean `{near}`?") from fault
    for warning in warnings:
        warn(warning)
    return name, warnings


class Seen:
    """What a plan's events were like."""

    def __init__(self) -> None:
        self.schema = ObservedSchema()
        self.count = 0
        self._first: list[Event] = []

    def events(self, items: Iterable[Event | Fault]) -> Iterator[Event | Fault]:
        """Return events, and those of a small file several times; faults come once."""
        for item in items:
            yield item
            if isinstance(item, Event):
                self.count += 1
                if len(self._first) < _ENOUGH:
                    self._first.append(item)
        for _ in range(-(-_ENOUGH // self.count) - 1 if self.count else 0):
            yield from self._first

    def completed(self, plan: FilterPlan) -> FilterPlan:
        """Return a plan with attributes that an equality may be on, if no filter has one."""
        return plan if plan.selective else replace(plan, selective=self._selective())

    def _selective(self) -> tuple[str, ...]:
        """Return the attributes of most events whose values come again, and hold for few events each; the fewest first."""
        values: dict[str, Counter[object]] = defaultdict(Counter)
        for event in self._first:
            for path, value in event.attributes.items():
                if type(value) in (str, int):
                    values[path][value] += 1
        found = []
        for path, counts in values.items():
            total = counts.total()
            chance = sum(count * count for count in counts.values()) / total**2
            if 2 * total >= len(self._first) and chance <= _FEW and _AGAIN * len(counts) <= total:
                found.append((chance, path))
        return tuple(path for _, path in sorted(found))


def adapt(engine: Engine, given: str, replay: options.ReplayOptions, log: FaultLog, *, quiet: bool) -> Seen:
    """Have an engine's index count events, and plan for all filters; return what the events were like."""
    seen = Seen()
    with progress("events", quiet=quiet) as bar:
        source: Any = open_explained(given, replay, engine.ticks)
        items: Any = observed(watched(source, bar, "counting", source), seen.schema, engine)
        engine.adapt(seen.events(items), on_error=log)
    return seen


def working(text: str, *, quiet: bool) -> AbstractContextManager[object]:
    """Say on a terminal what is done while it takes long."""
    return nullcontext() if quiet or not errors.is_terminal else errors.status(text)
