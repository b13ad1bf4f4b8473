"""The contract of sequence matchers, checked against the oracle.

`CONTRACT` holds the checks by name; each takes a `Subject`, that is, how a runner is made and how a query is prepared
for it. A failure shows the script that was run, and the missing and the surplus matches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby
from random import Random
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sequences.outcomes import Outcome, compiled, ids, kinds_and_values, outcomes, query_of, shown
from tests.sequences.scripts import Add, Advance, Remove, Script, changing_scripts, scripts
from tests.sequences.templates import templates
from tests.sequences.vectors import VECTORS
from tocsin.language import Template
from tocsin.language.template.columns import Column, read_columns
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model import Event, Sequence
from tocsin.sequences.compiling.compiler import CompiledSequence
from tocsin.sequences.matcher import SequenceMatcher
from tocsin.sequences.oracle import OracleSequenceMatcher


def _prepare(query: Sequence, ticks: Mapping[str, int], *, full: bool) -> CompiledSequence:
    return compiled(query, ticks, full=full)


@dataclass(frozen=True)
class Subject:
    """A matcher to check: how to create it, and how to compile sequences for it."""

    make: Callable[[], SequenceMatcher]
    prepare: Callable[..., CompiledSequence] = _prepare  # (query, ticks, *, full)
    share: float = 1.0  # of the random cases that there are in all


ORACLE: Final = Subject(OracleSequenceMatcher, share=0.25)


def _cases(
    subject: Subject, *strategies: st.SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Run a check on as many random cases as the subject is to have."""

    def decorate(check: Callable[..., None]) -> Callable[[], None]:
        examples = max(1, round(settings.default.max_examples * subject.share))  # type: ignore[union-attr]
        return settings(max_examples=examples)(given(*strategies)(check))

    return decorate


def run(subject: Subject, script: Script) -> list[Counter[Outcome]]:
    """Return the matches of each advance with the rows that completed them, and the published events."""
    runner = subject.make()
    found: list[Counter[Outcome]] = []
    for action in script.actions:
        if isinstance(action, Add):
            ready = subject.prepare(query_of(action.text), {}, full=action.full)
            runner.add(ids(*action.numbers), ready, columns_of(action))
        elif isinstance(action, Remove):
            runner.remove(ids(action.number))
        else:
            found.append(_advance(runner, action))
    return found


def columns_of(action: Add) -> dict[str, Column]:
    """Return the rows of a template as columns."""
    if not action.rows:
        return {}
    many = {name: isinstance(values[0], list) for name, values in action.rows.items()}
    columns, _, faults = read_columns(dict(action.rows), many)
    assert not faults, faults
    return columns


def assert_agrees(subject: Subject, script: Script) -> None:
    """Assert that a runner has the oracle's matches, at the same events, and publishes the same events."""
    expected, actual = run(ORACLE, script), run(subject, script)
    for number, (right, found) in enumerate(zip(expected, actual, strict=True)):
        assert right == found, _difference(script, right, found, f"at advance {number}")


def agrees_on_whole_batches(subject: Subject) -> None:
    @_cases(subject, scripts())
    def check(script: Script) -> None:
        assert_agrees(subject, script)

    check()


def tells_the_same_event_by_event(subject: Subject) -> None:
    @_cases(subject, scripts())
    def check(script: Script) -> None:
        other = script.one_by_one()
        expected, actual = _in_all(ORACLE, script), _in_all(subject, other)
        assert expected == actual, _difference(other, expected, actual, "event by event")

    check()


def agrees_while_subscriptions_come_and_go(subject: Subject) -> None:
    @_cases(subject, changing_scripts())
    def check(script: Script) -> None:
        assert_agrees(subject, script)

    check()


def passes_over_the_order_of_simultaneous_events(subject: Subject) -> None:
    @_cases(subject, scripts(), st.integers(0, 2**32))
    def check(script: Script, seed: int) -> None:
        other = script.ordered(lambda events: shuffled(events, Random(seed)))  # noqa: S311 - nothing secret
        expected, actual = _in_all(ORACLE, script), _in_all(subject, other)
        assert expected == actual, _difference(other, expected, actual, "of another order")

    check()


def sees_what_comes_after_it_was_added(subject: Subject) -> None:
    """A sequence that is added later has the matches of an oracle that starts at that moment."""

    @_cases(subject, scripts(), st.integers(1, 8))
    def check(script: Script, cut: int) -> None:
        before, after = script.events[:cut], script.events[cut:]
        while after and after[0].end == before[-1].end:  # these end no later than what had come
            before.append(after.pop(0))
        started = Script((*script.adds, Advance(tuple(after))))
        later = Script((Advance(tuple(before)), *script.adds, Advance(tuple(after))))
        expected, actual = run(ORACLE, started)[-1], run(subject, later)[-1]
        assert expected == actual, _difference(later, expected, actual, "of one that was added later")

    check()


def runs_templates_as_the_texts_of_their_rows(subject: Subject) -> None:
    @_cases(subject, templates(), scripts(max_size=1))
    def check(drawn: tuple[str, dict[str, list[object]]], script: Script) -> None:
        text, rows = drawn
        advance = script.actions[-1]
        whole = Script((Add(0, text, rows, True), advance))  # type: ignore[arg-type]
        runner = ORACLE.make()
        for number in whole.adds[0].numbers:
            bound = Template(text).bind({name: column[number] for name, column in rows.items()})
            assert isinstance(bound, Sequence)
            runner.add(ids(number), compiled(bound), {})
        assert isinstance(advance, Advance)
        expected, actual = _advance(runner, advance), run(subject, whole)[-1]
        assert expected == actual, _difference(whole, expected, actual, "of a template")

    check()


def finds_the_worked_examples(subject: Subject) -> None:
    for text, events, expected in VECTORS.values():
        script = Script((Add(0, text, {}, True), Advance(tuple(events))))
        bag = Counter(outcome[1:] for outcome in run(subject, script)[-1].elements() if outcome[0] != "made")
        assert shown(bag) == sorted(expected.split()), script


def publishes_what_the_oracle_publishes(subject: Subject) -> None:
    """Scripts with repeated event ids, and with an absent computed value named like an attribute."""
    events = [Event("e", {"x": number}, "s", number, number) for number in (1, 2, 3)]
    for text in ('from s a compute "a.x" = a.y publish as p', "from s a fold s b publish as p"):
        assert_agrees(subject, Script((Add(0, text, {}, False), Advance(tuple(events)))))


CONTRACT: Final[dict[str, Callable[[Subject], None]]] = {
    check.__name__: check
    for check in (
        finds_the_worked_examples,
        publishes_what_the_oracle_publishes,
        agrees_on_whole_batches,
        tells_the_same_event_by_event,
        agrees_while_subscriptions_come_and_go,
        passes_over_the_order_of_simultaneous_events,
        sees_what_comes_after_it_was_added,
        runs_templates_as_the_texts_of_their_rows,
    )
}


def shuffled(events: list[Event], random: Random) -> list[Event]:
    """Return the events; events with equal ends are shuffled."""
    found: list[Event] = []
    for _, group in groupby(events, key=lambda event: event.end):
        together = list(group)
        random.shuffle(together)
        found += together
    return found


def _advance(runner: SequenceMatcher, action: Advance) -> Counter[Outcome]:
    matches = runner.process(TimedBatch(action.events))
    assert sorted(matches.rows.tolist()) == matches.rows.tolist(), "matches are not in order"
    bag: Counter[Outcome] = Counter()
    for place, outcome in outcomes(matches):
        bag[place, *outcome] += 1
    for place, event in matches.published:
        found = kinds_and_values(event.attributes)
        bag["made", place, event.id, event.stream, event.start, event.end, found] += 1
    return bag


def _in_all(subject: Subject, script: Script) -> Counter[Outcome]:
    """Return all matches, without their rows in the batch."""
    bag: Counter[Outcome] = Counter()
    for found in run(subject, script):
        for outcome in found.elements():
            bag[("made", *outcome[2:]) if outcome[0] == "made" else outcome[1:]] += 1
    return bag


def _difference(script: Script, right: Counter[Outcome], found: Counter[Outcome], where: str) -> str:
    lines = [f"{where}, of", repr(script)]
    for title, bag in (("missing:", right - found), ("surplus:", found - right)):
        lines += [title, *(f"    {times} x {outcome}" for outcome, times in bag.items())] if bag else []
    return "\n".join(lines)
