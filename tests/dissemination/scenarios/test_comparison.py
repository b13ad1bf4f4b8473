import msgspec
import numpy as np
import pytest

from tests.dissemination.own import Own
from tocsin.dissemination.query_kinds.base import Changes
from tocsin.dissemination.scenarios.comparison import CLOSELY, AnswerError, compare, count_update_kinds
from tocsin.dissemination.scenarios.ranges import DOMAIN
from tocsin.dissemination.scenarios.scenario import Prepared, Scenario, prepare
from tocsin.dissemination.simulator import CostSummary
from tocsin.dissemination.strategies.registry import STRATEGIES, strategy_named
from tocsin.dissemination.strategies.strategy import Outcome, Strategy

UNICAST = strategy_named("S-UN")
SERVED = strategy_named("S-CN")


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    return prepare(
        Scenario(nodes=6, physical=40, subscriptions=80, rows=40, decimals=-2, events=150, spikes=0.1)
    )


def test_a_comparison_reports_every_batch_and_returns_a_result_for_each_strategy(prepared: Prepared) -> None:
    progress: list[tuple[str, int]] = []
    results = list(compare(prepared, ["S-UN", "S-CN"], 20, lambda *one: progress.append(one)))
    assert progress == [
        *(("S-UN", size) for size in (CLOSELY, 20, 20, 10)),
        *(("S-CN", size) for size in (CLOSELY, 20, 20, 10)),
    ]
    assert [result.strategy for result in results] == ["S-UN", "S-CN"]
    assert results[0].changed_answers == results[1].changed_answers > 0


def test_figures_are_means_over_events(prepared: Prepared) -> None:
    [result] = compare(prepared, ["S-CN"], 1_000)
    figures = CostSummary.of(result)
    assert figures.overlay_hops == pytest.approx(result.costs.overlay_hops.mean())
    assert figures.size == pytest.approx(sum(figures.size_by_role.values()) / 150)
    assert figures.highest_stress == result.costs.stress.max()
    assert figures.server_messages == pytest.approx(result.outgoing / 150)
    assert figures.busiest_link == result.links.size.max()


def test_updates_are_counted_by_the_messages_that_they_take(prepared: Prepared) -> None:
    found = count_update_kinds(prepared)
    assert found.ignorable + found.one_message + found.several_messages == 150
    assert found.ignorable == 0
    assert found.several_messages > 0


def test_a_maximum_has_updates_as_a_minimum_has_upside_down(prepared: Prepared) -> None:
    turned = prepare(msgspec.structs.replace(prepared.scenario, kind="max"))
    assert count_update_kinds(turned) == count_update_kinds(prepared)
    assert turned.queries.y + prepared.queries.y == pytest.approx(np.full(40, DOMAIN[1]))
    for name in STRATEGIES:
        [least], [greatest] = compare(prepared, [name], 1_000), compare(turned, [name], 1_000)
        assert greatest.changed_answers == least.changed_answers
        assert greatest.costs.size.tolist() == least.costs.size.tolist()


def test_a_strategy_of_ones_own_is_compared_as_a_class(prepared: Prepared) -> None:
    progress: list[tuple[str, int]] = []
    own, served = compare(prepared, [Own, "S-UN"], 1_000, lambda *one: progress.append(one))
    assert (own.strategy, own.changed_answers) == ("OWN", served.changed_answers)
    assert {name for name, _ in progress} == {"OWN", "S-UN"}


def test_without_events_there_is_nothing_to_compare(prepared: Prepared) -> None:
    nothing = prepare(msgspec.structs.replace(prepared.scenario, events=0))
    assert [CostSummary.of(one).overlay_hops for one in compare(nothing, ["S-UN", "CN"], 10)] == [0.0, 0.0]


def _keep_changes(outcome: Outcome, kept: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Outcome:
    changes = outcome.answer_changes
    part = msgspec.structs.replace(
        changes,
        rows=changes.rows[kept],
        numbers=changes.numbers[kept],
        old=changes.old[kept],
        new=changes.new[kept],
    )
    return msgspec.structs.replace(outcome, answer_changes=part)


def test_a_missing_change_is_found(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    publish = UNICAST.publish

    def deaf(self: Strategy, changes: Changes) -> Outcome:
        outcome = publish(self, changes)
        return _keep_changes(outcome, np.arange(len(outcome.answer_changes)) > 0)

    monkeypatch.setattr(UNICAST, "publish", deaf)
    with pytest.raises(
        AnswerError,
        match=r"strategy S-UN, subscription \d+, event \d+: the change .* -> .* is missing",
    ):
        list(compare(prepared, ["S-UN"], 50))


def test_a_wrong_last_answer_is_seen(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SERVED, "answer", lambda *_: -7)
    with pytest.raises(
        AnswerError, match="strategy S-CN, subscription 0, after event 149: its answer is -7, and recomputing"
    ):
        list(compare(prepared, ["S-CN"], 50))


def test_strategies_that_change_different_answers_are_seen(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = SERVED.publish

    def later(self: Strategy, changes: Changes) -> Outcome:
        outcome = publish(self, changes)
        return (
            outcome if len(changes) == CLOSELY else _keep_changes(outcome, outcome.answer_changes.rows != 4)
        )

    monkeypatch.setattr(SERVED, "publish", later)
    with pytest.raises(
        AnswerError,
        match=r"strategy S-CN, event 1[0-4]4: it changes 0 answers, and with S-UN [1-9]",
    ):
        list(compare(prepared, ["S-UN", "S-CN"], 10))
