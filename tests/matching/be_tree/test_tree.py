"""The tree by small examples: cuts, and the removal of conjunctions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from tests.matching.be_tree.invariants import check_invariants
from tocsin.language import Dnf, Template, parse_condition, to_dnf
from tocsin.matching import ConjunctionBatch, EventBatch, Oracle, create_matcher, open_matcher, save_matcher
from tocsin.matching.be_tree.matcher import BeTree
from tocsin.matching.be_tree.state import HIGHEST, LOWEST, ROOT, Node, NodeInfo, Partition, StoredColumn
from tocsin.matching.encoding.codes import FIELDS, key_of_number
from tocsin.model import Predicate
from tocsin.model.errors import MatcherError


def tree(*texts: str, capacity: int = 3, min_partition: int = 1) -> BeTree:
    """Return a tree in which rank is gain alone: the attribute that most conjunctions have comes first."""
    matcher = BeTree(capacity=capacity, min_partition=min_partition, alpha=0.0)
    add(matcher, enumerate(texts))
    check_invariants(matcher)
    return matcher


def add(matcher: BeTree, texts: Iterable[tuple[int, str]]) -> None:
    matcher.add(ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in texts))


def found(matcher: BeTree, **event: object) -> list[int]:
    return matcher.match(EventBatch.of_dicts([event])).to_lists()[0]


def node_of(matcher: BeTree, number: int) -> int:
    return int(matcher._store.rows[number, StoredColumn.NODE])


def path(matcher: BeTree, number: int) -> list[str]:
    """Return the attributes by which the way leads to a conjunction, from the root."""
    state, names, node = matcher._state, [], node_of(matcher, number)
    while (partition := int(state.info[node, NodeInfo.PARTITION])) >= 0:
        names.append(
            matcher.vocabulary.names.value(int(state.partitions[partition, Partition.FIELD]) // FIELDS)
        )
        while state.info[node, NodeInfo.PARTITION] == partition:
            node = int(state.info[node, NodeInfo.PARENT])
    return names[::-1]


def interval(matcher: BeTree, number: int) -> tuple[int, int]:
    low, high = matcher._state.bounds[node_of(matcher, number)].tolist()
    return low, high


def test_the_root_holds_as_many_as_a_leaf_may() -> None:
    matcher = tree("a = 1", "b = 1", "c = 1")
    assert matcher.stats().details["nodes"] == 1
    assert [path(matcher, i) for i in range(3)] == [[], [], []]


def test_the_root_is_cut_by_attributes_when_it_has_too_many() -> None:
    matcher = tree("a = 1", "a = 2 and b = 1", "a > 1", "c = 1")
    assert [path(matcher, i) for i in range(4)] == [["a"], ["a"], ["a"], []]
    assert matcher.stats().details["partitions"] == 1


def test_later_conjunctions_go_into_existing_partitions() -> None:
    matcher = tree("a = 1", "a = 2 and b = 1", "a > 1", "c = 1")
    add(matcher, [(4, "a = 7 and d = 1"), (5, "d = 1")])
    assert [path(matcher, i) for i in (4, 5)] == [["a"], []]


def test_a_partition_is_cut_by_values_in_the_middle_of_its_bounds() -> None:
    matcher = tree("a = 10", "a = 20", "a = 30", "a = 40")
    state, middle = matcher._state, key_of_number(25.0)
    assert [interval(matcher, i) for i in range(4)] == [(LOWEST, middle)] * 2 + [(middle + 1, HIGHEST)] * 2
    top = int(state.info[node_of(matcher, 0), NodeInfo.PARENT])
    assert (state.info[top, NodeInfo.MEMBERS], state.info[top, NodeInfo.PARENT]) == (0, ROOT)
    assert [found(matcher, a=a) for a in (10, 25, 40, 50)] == [[0], [], [3], []]


def test_ranges_that_no_half_encloses_stay_with_the_whole() -> None:
    matcher = tree("a = 10", "a = 40", "a between 10 and 40", "a <= 12", "a >= 38", "a != 7", "a < 30")
    below, above = (LOWEST, key_of_number(25.0)), (key_of_number(25.0) + 1, HIGHEST)
    whole = (LOWEST, HIGHEST)
    assert [interval(matcher, i) for i in range(7)] == [below, above, whole, below, above, whole, whole]
    assert found(matcher, a=11) == [2, 3, 5, 6]


def test_values_beyond_all_that_were_known_are_in_the_outermost_intervals() -> None:
    matcher = tree("a = 10", "a = 20", "a = 30", "a = 40")
    add(matcher, [(4, "a = 1000"), (5, "a = -1000"), (6, "a = 2000"), (7, "a = 3000")])
    check_invariants(matcher)
    assert [found(matcher, a=a) for a in (1000, -1000, 3000)] == [[4], [5], [7]]
    assert interval(matcher, 7)[1] == HIGHEST
    assert interval(matcher, 5)[0] == LOWEST


def test_one_value_alone_is_atomic_and_is_cut_by_other_attributes() -> None:
    texts = ["a = 5 and b = 1", "a = 5 and b = 2", "a = 5 and c = 1", "a = 5 and d = 1"]
    matcher = tree(*texts, "a = 6", "a = 7", capacity=2)
    five = key_of_number(5.0)
    below = [i for i in range(4) if path(matcher, i) == ["a"]]
    assert all(interval(matcher, i) == (five, five) for i in below)
    assert {tuple(path(matcher, i)) for i in range(4)} - {("a",)}
    assert found(matcher, a=5, b=2, c=1) == [1, 2]


def test_a_leaf_that_nothing_cuts_may_have_more_members() -> None:
    matcher = tree(*["a = 5"] * 8)
    state, node = matcher._state, node_of(matcher, 0)
    assert {node_of(matcher, i) for i in range(8)} == {node}
    assert state.info[node, NodeInfo.CAPACITY] % 3 == 0
    assert state.info[node, NodeInfo.CAPACITY] >= 8
    assert matcher.stats().details["raised leaves"] == 1
    matcher.remove(np.arange(7))
    check_invariants(matcher)
    assert matcher.stats().details["raised leaves"] == 0


def test_no_partition_is_made_for_fewer_than_it_is_to_have() -> None:
    matcher = tree("a = 1", "b = 1", "c = 1", "d = 1", min_partition=2)
    assert matcher.stats().details == {
        **matcher.stats().details,
        "partitions": 0,
        "raised leaves": 1,
    }
    add(matcher, [(4, "a = 2"), (5, "e = 1"), (6, "f = 1")])
    check_invariants(matcher)
    assert path(matcher, 0) == path(matcher, 4) == ["a"]


def test_an_attribute_is_on_a_path_once() -> None:
    matcher = tree(*(f"a = {i % 4} and b = {i // 4}" for i in range(64)), capacity=1)
    assert {tuple(sorted(path(matcher, i))) for i in range(64)} <= {("a",), ("b",), ("a", "b")}
    assert max(len(path(matcher, i)) for i in range(64)) == 2


def test_attributes_that_an_event_need_not_have_make_no_partition() -> None:
    matcher = tree(*["a is missing"] * 3, "b > 2 * c", "true", *["a is missing and d = 1"] * 4)
    assert [path(matcher, i) for i in range(9)] == [[]] * 5 + [["d"]] * 4
    assert found(matcher, b=5, c=2, d=1) == list(range(9))
    assert found(matcher, a=1) == [4]


def test_strings_are_found_by_equality_and_by_tests() -> None:
    words = [f"w{i}" for i in range(40)]
    texts = [f"s = '{w}'" for w in words] + [f"s starts with '{w}'" for w in words]
    texts += ["s < 'w2'", "s != 'w1'", "s not starts with 'w1'", f"s in ({', '.join(map(repr, words[:9]))})"]
    matcher, oracle = tree(*texts, capacity=2), Oracle()
    oracle.add(ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts)))
    events = EventBatch.of_dicts([{"s": word} for word in [*words, "w", "v", "w123"]] + [{"s": 5}, {}])
    assert matcher.match(events).to_lists() == oracle.match(events).to_lists()
    assert matcher.stats().details["depth"] > 4


def test_long_strings_are_above_the_empty_one() -> None:
    texts = ["s > ''", "s <= ''", "s between '' and 'b'", "s not between '' and 'b'", "s >= '' and s < 'b'"]
    matcher = tree(*texts)
    assert found(matcher, s="a string of more than seven bytes") == [0, 2, 4]
    assert found(matcher, s="") == [1, 2, 4]
    assert found(matcher, s="c") == [0, 3]


def test_of_tests_that_stand_far_apart_the_first_leads_too() -> None:
    words = [f"s contains 'p{k}'" for k in range(12)]
    between = [f"f{i} is present" for i in range(40)]
    said = [["z = 1"]] * 3 + [["z = 1", word] for word in words]
    said += [[words[i % 12], *between, words[(5 * i + 3) % 12], "z = 1"] for i in range(24)]
    matcher, oracle = BeTree(capacity=1, alpha=0.0), Oracle()
    for i, one in enumerate(said):  # as they are: from text, predicates on one attribute stand together
        conjunction = tuple(cast("Predicate", parse_condition(text)) for text in one)
        for each in (matcher, oracle):
            each.add(ConjunctionBatch.of([(i, Dnf((conjunction,)))]))
    check_invariants(matcher)
    full = {f"f{i}": 1 for i in range(40)} | {"z": 1}
    events = EventBatch.of_dicts([{**full, "s": f"p{a} p{b}"} for a in range(12) for b in range(12)])
    assert matcher.match(events).to_lists() == oracle.match(events).to_lists()


def test_numbers_that_no_float_equals_come_to_the_intervals_on_both_sides() -> None:
    big = 2**60
    bounds = [big - 256, big, big + 256, big + 512]
    texts = [f"a {op} {b}" for op in ("<", "<=", ">", ">=", "=", "!=") for b in bounds]
    texts += [f"a = {big + 1}", f"a in ({big + 1}, 3)", f"a not between {big} and {big + 256}"]
    matcher, oracle = tree(*texts, capacity=1), Oracle()
    oracle.add(ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts)))
    values = [b + d for b in bounds for d in (-1, 0, 1)]
    events = EventBatch.of_dicts([{"a": value} for value in values])
    assert matcher.match(events).to_lists() == oracle.match(events).to_lists()


def test_nodes_go_with_the_last_that_was_in_them() -> None:
    texts = [f"a = {i % 7} and b > {i % 5} and c{i % 11} = 1" for i in range(500)]
    matcher = tree(*texts, capacity=2)
    for part in np.array_split(np.random.default_rng(3).permutation(500), 10):
        matcher.remove(part)
        check_invariants(matcher)
    empty = matcher.stats().details
    assert (empty["nodes"], empty["partitions"], empty["depth"], empty["raised leaves"]) == (1, 0, 1, 0)
    sizes = []
    for _ in range(6):
        add(matcher, enumerate(texts))
        matcher.remove(np.arange(500))
        sizes.append(matcher.stats().bytes)
    assert len(set(sizes[1:])) == 1  # memory is used again, not more of it


def test_many_in_one_leaf_come_and_go_in_time_that_is_in_proportion() -> None:
    matcher = BeTree()
    ids = np.arange(20_000)
    matcher.add(ConjunctionBatch.of_rows(ids, Template("a = :x").bind_many({"x": ids * 0})))
    check_invariants(matcher)
    assert len(found(matcher, a=0)) == 20_000
    matcher.remove(np.random.default_rng(0).permutation(20_000)[:19_000])
    check_invariants(matcher)
    assert len(found(matcher, a=0)) == 1_000


def test_partitions_whose_rank_has_fallen_are_recycled() -> None:
    matcher, oracle = BeTree(capacity=200, window=200), Oracle()
    texts = [f"x = {i % 20} and y = {i // 20}" for i in range(2_000)]
    batch = ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts))
    for each in (matcher, oracle):
        each.add(batch)
    ((chosen,),) = {tuple(path(matcher, i)[:1]) for i in range(2_000)}
    other = "x" if chosen == "y" else "y"
    for _ in range(20):
        matcher.match(EventBatch.of_dicts([{other: 5}] * 100))
    assert matcher.stats().details["partitions recycled"] == 0
    for _ in range(200):
        matcher.match(EventBatch.of_dicts([{chosen: 5}] * 100))
    check_invariants(matcher)
    assert {tuple(path(matcher, i)[:1]) for i in range(2_000)} == {(other,)}
    details = matcher.stats().details
    assert (details["partitions recycled"], details["conjunctions moved"]) == (1, 2_000)
    events = EventBatch.of_dicts([{"x": x, "y": y} for x in range(20) for y in range(0, 100, 7)])
    assert matcher.match(events).to_lists() == oracle.match(events).to_lists()


def test_a_stream_that_does_not_change_recycles_nothing() -> None:
    matcher = BeTree(window=500)
    random = np.random.default_rng(0)
    texts = [f"a{random.integers(200)} = 1 and a{random.integers(200)} = 2" for _ in range(3_000)]
    add(matcher, enumerate(texts))
    for _ in range(60):
        rows = [{f"a{i}": 1 for i in random.integers(0, 200, 8)} for _ in range(200)]
        matcher.match(EventBatch.of_dicts(rows))
    assert matcher.stats().details["partitions recycled"] <= 2
    assert matcher.stats().details["conjunctions moved"] <= 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(
            ({name: value}, f"`{name}` is a whole number from 1 to 2147483647, not ")
            for name in ("capacity", "min_partition", "window")
            for value in (0, -1, 2.5, 5.0, float("nan"), float("inf"), 2**31, 10**30, "5", True, None)
        ),
        *(
            ({"alpha": value}, "`alpha` is a number from 0 to 1, not ")
            for value in (1.5, -0.1, float("nan"), float("inf"), 10**400, "0.5", True, None)
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(MatcherError, match=message):
        create_matcher("be-tree", **options)


def test_a_large_directory_is_probed_by_the_event_s_fields() -> None:
    texts = [f"a = 1 and b{i} = 1" for i in range(200)] + ["a = 2 and b0 = 1"]
    matcher = tree(*texts, capacity=1)
    state = matcher._state
    assert max(int(count) for count in state.nodes[:, Node.PARTITIONS]) > 50
    assert state.nodes[ROOT, Node.DIRECTORY] >= 0
    assert (state.nodes[ROOT, Node.LEFT], state.nodes[ROOT, Node.RIGHT]) == (-1, -1)
    assert found(matcher, a=1, b3=1, b150=1) == [3, 150]
    assert found(matcher, a=1, **{f"b{i}": 1 for i in range(200)}) == list(range(200))


def test_a_window_restarts_when_a_matcher_is_opened(tmp_path: Path) -> None:
    matcher = BeTree(window=100)
    add(matcher, [(0, "a = 1")])
    matcher.match(EventBatch.of_dicts([{"a": 1}] * 99))
    save_matcher(matcher, str(tmp_path))
    opened = open_matcher(str(tmp_path))
    assert isinstance(opened, BeTree)
    opened.match(EventBatch.of_dicts([{"a": 1}] * 100))
    assert opened._state.attributes.share.max() == 1.0
