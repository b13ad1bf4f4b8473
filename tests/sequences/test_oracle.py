"""The meaning of sequences where it is easily misread, one rule per test."""

from __future__ import annotations

from collections import Counter

from tests.sequences.outcomes import Outcome, compiled, event, found, ids, outcomes, shown, values
from tests.sequences.stocks import TRADES
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model import Event
from tocsin.sequences.matches import SequenceMatches
from tocsin.sequences.oracle import OracleSequenceMatcher


def _s(id: str, end: int, **data: float | str) -> Event:
    return event(id, end, None, "s", **data)


def _advance(matcher: OracleSequenceMatcher, *events: Event) -> SequenceMatches:
    return matcher.process(TimedBatch(events))


# aggregates


def test_aggregates_begin_with_the_left_event() -> None:
    text = """from s a fold s b
        compute n = count(*), present = count(x), total = sum(x), mean = avg(x), low = min(x), high = max(x)"""
    bag = found(text, [_s("e1", 1, x=4), _s("e2", 2), _s("e3", 3, x=1)])
    assert [value for value in values(bag) if value["n"] == 3] == [
        {"n": 3, "present": 2, "total": 5, "mean": 2.5, "low": 1, "high": 4}
    ]


def test_an_aggregate_over_nothing_is_absent_and_a_count_of_nothing_is_zero() -> None:
    bag = found(
        "from s a fold s b compute n = count(x), t = sum(x), m = avg(x), h = max(x)",
        [_s("e1", 1), _s("e2", 2)],
    )
    assert values(bag) == [{"n": 0, "t": None, "m": None, "h": None}]


def test_only_numbers_are_averaged() -> None:
    bag = found(
        "from s a fold s b compute n = count(x), m = avg(x)", [_s("e1", 1, x="dear"), _s("e2", 2, x=3)]
    )
    assert values(bag) == [{"n": 2, "m": 3}]


def test_an_aggregate_in_its_own_fold_is_its_value_before_this_iteration() -> None:
    text = "from s a fold s b while b.x > last.mean compute mean = avg(x)"
    bag = found(text, [_s("e1", 1, x=2), _s("e2", 2, x=4), _s("e3", 3, x=4), _s("e4", 4, x=3)])
    assert shown(bag) == ["e1e2[1,2]", "e1e2e3[1,3]"]


def test_aggregates_are_parts_of_terms() -> None:
    text = "from s a fold s b compute spread = max(x) - min(x), rise = b.x - last.x + 0 * count(*)"
    bag = found(text, [_s("e1", 1, x=2), _s("e2", 2, x=7), _s("e3", 3, x=5)])
    assert values(bag)[:2] == [{"spread": 5, "rise": 5}, {"spread": 5, "rise": -2}]


def test_the_argument_begins_with_the_nearest_left_event_that_has_it() -> None:
    text = "from s a where a.x = 1 next s b on b.y is present fold s c on c.x is present compute t = sum(x)"
    bag = found(text, [_s("e1", 1, x=1), _s("e2", 2, y=0), _s("e3", 3, x=10)])
    assert values(bag) == [{"t": 11}]


# computed values


def test_all_values_are_computed_of_the_data_before() -> None:
    text = "from s a compute m = 1, n = 2 fold s b compute m = last.n, n = last.m"
    assert values(found(text, [_s("e1", 1), _s("e2", 2)])) == [{"m": 2, "n": 1}]


def test_a_value_that_is_computed_again_replaces_the_one_before() -> None:
    text = "from s a compute m = a.x fold s b compute m = b.x where m = 2 next s c select m"
    assert values(found(text, [_s("e1", 1, x=1), _s("e2", 2, x=2), _s("e3", 3)])) == [{"m": 2}]


def test_an_absent_value_replaces_it_too() -> None:
    text = "from s a compute m = a.x fold s b compute m = b.x where m is missing"
    assert shown(found(text, [_s("e1", 1, x=1), _s("e2", 2)])) == ["e1e2[1,2]"]


def test_last_is_the_iteration_before_even_where_that_lacks_the_attribute() -> None:
    text = "from s a fold s b while last.x is present"
    assert shown(found(text, [_s("e1", 1, x=1), _s("e2", 2), _s("e3", 3, x=1)])) == ["e1e2[1,2]"]


# time


def test_duration_counts_both_ends() -> None:
    text = "from s a next s b where duration = 3"
    assert shown(found(text, [_s("e1", 1), _s("e2", 3), _s("e3", 6)])) == ["e1e2[1,3]"]


def test_duration_in_on_passes_events_over() -> None:
    text = "from s a where a.x = 1 next s b on duration >= 3"
    assert shown(found(text, [_s("e1", 1, x=1), _s("e2", 2), _s("e3", 3)])) == ["e1e3[1,3]"]


def test_an_event_that_begins_when_the_left_one_ends_is_passed_over() -> None:
    long = event("e2", 4, 1, "s")
    assert shown(found("from s a where a.x = 1 next s b", [_s("e1", 1, x=1), long, _s("e3", 5)])) == [
        "e1e3[1,5]"
    ]


def test_within_bounds_the_whole() -> None:
    text = "from s a next s b next s c within 3 ticks"
    assert shown(found(text, [_s("e1", 1), _s("e2", 2), _s("e3", 3), _s("e4", 5)])) == ["e1e2e3[1,3]"]


def test_simultaneous_events_each_go_on() -> None:
    text = "from s a where a.x = 1 fold s b"
    bag = found(text, [_s("e1", 1, x=1), _s("e2", 2), _s("e3", 2), _s("e4", 3)])
    assert shown(bag) == ["e1e2[1,2]", "e1e2e4[1,3]", "e1e3[1,2]", "e1e3e4[1,3]"]


# absence and kinds


def test_an_unknown_comparison_is_not_satisfied_nor_is_its_opposite() -> None:
    events = [_s("e1", 1, x=1), _s("e2", 2, x="1")]
    assert not found("from s a next s b on b.x = a.x", events)
    assert not found("from s a next s b on not b.x = a.x", events)
    assert found("from s a next s b on not b.y is present", events)


def test_text_beside_a_timestamp_constant_is_read_as_one() -> None:
    text = "from s a next s b on b.x = timestamp '2026-01-01T00:00:00Z'"
    events = [_s("e1", 1), _s("e2", 2, x="2026-01-01T01:00:00+01:00")]
    assert shown(found(text, events)) == ["e1e2[1,2]"]


# sequences in parentheses, and published ones


def test_a_sequence_in_parentheses_is_one_event() -> None:
    text = "from s x next (from s a next s b) p on p.a.x = 2"
    bag = found(text, [_s("e1", 1, x=1), _s("e2", 2, x=2), _s("e3", 3, x=3)])
    (outcome,) = bag
    assert outcome[1:3] == (1, 3)
    matcher = OracleSequenceMatcher()
    matcher.add(ids(7), compiled(text, full=False), {})
    matches = _advance(matcher, _s("e1", 1, x=1), _s("e2", 2, x=2), _s("e3", 3, x=3))
    within = matches.match(0).steps[1]
    assert within.alias == "p"
    assert within.first.id == "$(from s a next s b)(e2,e3)"
    assert within.first.attributes == {"a.x": 2, "b.x": 3}
    assert within.chain is None


def test_its_events_have_only_the_selected_values() -> None:
    text = "from (from s a next s b select a.x as early) p next s c on c.x = p.early"
    assert found(text, [_s("e1", 1, x=1), _s("e2", 2, x=2), _s("e3", 3, x=1)])


def test_several_publishers_of_one_name_make_one_stream() -> None:
    texts = ["from s a next s b select b.x publish as p", "from s a publish as p", "from p a next p b"]
    bag = found(texts, [_s("e1", 1, x=1), _s("e2", 2, x=2)])
    spans = [outcome[1:3] for outcome in bag if outcome[0] == 2]
    assert spans == [(1, 2)]  # p(e1), p(e2); what began at 1 has no successor, and none begins after it ended


def test_the_id_of_a_published_event_has_the_ids_of_its_steps() -> None:
    matcher = OracleSequenceMatcher()
    matcher.add(ids(0), compiled("from s a fold s b publish as p"), {})
    matches = _advance(matcher, _s("e1", 1, x=1), _s("e2", 2, x=2), _s("e3", 3, x=3))
    assert [(place, made.id) for place, made in matches.published] == [
        (1, "p(e1,e2)"),
        (2, "p(e1,e2,e3)"),
        (2, "p(e2,e3)"),
    ]
    assert matches.published[1][1] == Event("p(e1,e2,e3)", {"a.x": 1, "b.x": 3}, "p", 1, 3)


# coming and going


def test_a_subscription_sees_events_that_end_after_it_was_added() -> None:
    matcher = OracleSequenceMatcher()
    _advance(matcher, _s("e1", 1), _s("e2", 2))
    matcher.add(ids(0), compiled("from s a next s b"), {})
    assert not len(_advance(matcher, _s("e3", 2)))  # ends when the last did that had come
    assert not len(_advance(matcher, _s("e4", 3)))
    assert shown(_bag(_advance(matcher, _s("e5", 4)))) == ["e4e5[3,4]"]


def test_matches_of_a_sequence_in_parentheses_begin_after_it_was_added() -> None:
    matcher = OracleSequenceMatcher()
    _advance(matcher, _s("e1", 1))
    matcher.add(ids(0), compiled("from (from s a next s b) p compute n = 1"), {})
    assert shown(_bag(_advance(matcher, _s("e2", 2), _s("e3", 3)))) == ["$(from s a next s b)(e2,e3)[2,3]"]


def test_published_events_count_by_their_own_end() -> None:
    matcher = OracleSequenceMatcher()
    matcher.add(ids(0), compiled("from s a next s b publish as p"), {})
    _advance(matcher, _s("e1", 1))
    matcher.add(ids(1), compiled("from p a compute n = 1"), {})
    assert len(_advance(matcher, _s("e2", 2))) == 2


def test_a_removed_subscription_publishes_no_more_but_its_events_remain() -> None:
    matcher = OracleSequenceMatcher()
    matcher.add(ids(0), compiled("from s a publish as p"), {})
    matcher.add(ids(1), compiled("from p a next s b"), {})
    _advance(matcher, _s("e1", 1))
    matcher.remove(ids(0, 5))
    assert shown(_bag(_advance(matcher, _s("e2", 2)))) == ["p(e1)e2[1,2]"]
    assert not len(_advance(matcher, _s("e3", 3)))


def test_matches_come_in_the_order_of_the_completing_events() -> None:
    matcher = OracleSequenceMatcher()
    matcher.add(ids(3), compiled("from stock a next stock b"), {})
    matcher.add(ids(1), compiled("from stock a next stock b on b.name = a.name"), {})
    matches = _advance(matcher, *TRADES)
    assert matches.rows.tolist() == sorted(matches.rows.tolist())
    assert [TRADES[place].end for place in matches.rows] == matches.ends.tolist()


def _bag(matches: SequenceMatches) -> Counter[Outcome]:
    return Counter(outcome for _, outcome in outcomes(matches))
