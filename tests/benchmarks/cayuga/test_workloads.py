"""Cayuga's generators: table 3 and its five templates, feeds and their four, stocks."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from benchmarks.cayuga.workloads import feeds, stocks
from benchmarks.cayuga.workloads.technical import TABLE_3, Kind, Parameters, Workload
from benchmarks.workloads.tabular import FilledTemplate, split
from tocsin.language import parse
from tocsin.model.errors import TocsinError
from tocsin.model.queries import Fold, From, Next, Sequence

MANY = 20_000
KINDS: tuple[Kind, ...] = get_args(Kind)


def drawn(parameters: Parameters = TABLE_3, kind: Kind = "LinearStat", seed: int = 1) -> list[FilledTemplate]:
    return Workload(parameters, kind, seed).subscriptions(0, MANY)


def attributes(rows: FilledTemplate, alias: str, kind: str = "d") -> list[str]:
    """Return the attributes of one kind that a step tests."""
    words = rows.text.replace("(", " ").split()
    found = (word.partition(".") for word in words if "." in word)
    return sorted({name for of, _, name in found if of == alias and name.startswith(kind)})


def primary(rows: FilledTemplate) -> str:
    return rows.text.split(" = :p")[0].split(".")[-1]


def column(groups: list[FilledTemplate], alias: str, bound: str = "") -> NDArray[Any]:
    """Return a step's constants: of equalities that are not primary, or of one bound of inequalities."""
    letter = "c" if bound else "d"
    found = [
        values
        for rows in groups
        for name, values in rows.columns.items()
        if name.startswith(f"{alias}_{letter}") and name.endswith(bound)
    ]
    return np.concatenate(found)


def expected(count: int, exponent: float) -> NDArray[np.float64]:
    weights = np.arange(1, count + 1) ** -exponent
    return np.asarray(weights / weights.sum())


def shares(values: NDArray[Any], count: int) -> NDArray[np.float64]:
    return np.bincount(values, minlength=count) / len(values)


def test_an_event_has_eight_attributes_and_a_tick_of_its_own() -> None:
    events = pa.concat_tables(Workload().events(0, MANY))
    assert events.column_names == ["t", "d1", "d2", "d3", "d4", "c1", "c2", "c3", "c4"]
    assert events["t"].to_pylist() == list(range(1, MANY + 1))
    for name in ("d1", "d4"):
        assert shares(events[name].to_numpy(), 100) == pytest.approx(np.full(100, 0.01), abs=0.004)
    for name in ("c1", "c4"):
        values = events[name].to_numpy()
        assert (values.mean(), values.min() >= 0, values.max() < 1) == (
            pytest.approx(0.5, abs=0.01),
            True,
            True,
        )


@pytest.mark.parametrize("by_step", [False, True])
def test_a_step_has_two_equalities_and_two_inequalities(by_step: bool) -> None:
    groups = drawn(Parameters(by_step=by_step))
    assert sorted(np.concatenate([rows.numbers for rows in groups]).tolist()) == list(range(MANY))
    for rows in groups:
        assert all(len(values) == len(rows) for values in rows.columns.values())
        for alias in "abc":
            assert len(attributes(rows, alias)) == 2
            assert len(attributes(rows, alias, "c")) == 2


def test_the_primary_attribute_has_one_value_in_all_three_steps() -> None:
    for rows in drawn(Parameters(by_step=True)):
        name = primary(rows)
        assert all(f"{alias}.{name} = :p" in rows.text for alias in "abc")
        assert all(name in attributes(rows, alias) for alias in "abc")


def test_attributes_are_chosen_for_all_steps_together_or_for_each_step() -> None:
    alike, anew = drawn(), drawn(Parameters(by_step=True))
    assert len(alike) == 4 * 3 * 6
    assert all(attributes(rows, "a") == attributes(rows, "b") == attributes(rows, "c") for rows in alike)
    assert len(anew) > 2_000


@pytest.mark.parametrize("exponent", [0.8, 1.0, 1.4])
def test_attributes_are_skewed_by_the_first_exponent(exponent: float) -> None:
    groups = drawn(replace(TABLE_3, zipf=(exponent, 1.0, 0.8)))
    found: Counter[str] = Counter()
    for rows in groups:
        found[primary(rows)] += len(rows)
    counted = [found[f"d{number}"] / MANY for number in range(1, 5)]
    assert counted == pytest.approx(expected(4, exponent), abs=0.015)


def test_values_are_skewed_by_the_exponent_of_their_step() -> None:
    parameters = replace(TABLE_3, zipf=(1.4, 1.0, 0.4))
    groups = drawn(parameters)
    everywhere = np.concatenate([rows.columns["p"] for rows in groups])
    assert shares(everywhere, 100)[:5] == pytest.approx(expected(100, 1.4)[:5], abs=0.015)
    for alias, exponent in zip("abc", parameters.zipf, strict=True):
        assert shares(column(groups, alias), 100)[:5] == pytest.approx(expected(100, exponent)[:5], abs=0.015)


def test_there_are_25_ranges_which_hold_for_seven_values_in_ten() -> None:
    groups = drawn()
    lows, highs = column(groups, "a", "low"), column(groups, "a", "high")
    assert len(np.unique(lows)) == 25
    assert highs - lows == pytest.approx(np.full(len(lows), 0.7))
    assert (lows.min(), highs.max()) == (0, pytest.approx(1.0))
    events = pa.concat_tables(Workload().events(0, MANY))["c2"].to_numpy()
    for low in np.unique(lows):
        assert np.mean((events >= low) & (events <= low + 0.7)) == pytest.approx(0.7, abs=0.02)


def test_a_sequence_s_first_step_holds_as_often_as_its_predicates_say() -> None:
    events = pa.concat_tables(Workload().events(0, MANY))
    held = {name: events[name].to_numpy() for name in events.column_names}
    rows = max(drawn(), key=len)
    (first, second), (low, high) = attributes(rows, "a"), attributes(rows, "a", "c")
    found = 0
    for row in range(200):
        constant = {name: values[row] for name, values in rows.columns.items()}
        other = second if primary(rows) == first else first
        holds = (held[primary(rows)] == constant["p"]) & (held[other] == constant[f"a_{other}"])
        for name in (low, high):
            holds &= (held[name] >= constant[f"a_{name}_low"]) & (held[name] <= constant[f"a_{name}_high"])
        found += int(holds.sum())
    assert found / (200 * MANY) == pytest.approx(0.01 * 0.01 * 0.7 * 0.7, rel=0.35)


@pytest.mark.parametrize("kind", KINDS)
def test_every_template_is_read_and_has_a_column_for_each_parameter(kind: Kind) -> None:
    for rows in drawn(kind=kind)[:5]:
        template = rows.template()
        assert set(template.parameters) == set(rows.columns)
        query = template.query
        assert isinstance(query, Sequence)
        later = Next if kind in ("LinearStat", "LinearDyn", "Filter") else Fold
        assert [type(step) for step in query.steps] == [From, later, later]


def test_templates_have_conditions_beside_the_steps() -> None:
    texts = {kind: drawn(kind=kind)[0].text for kind in KINDS}
    assert "1.01 * a." in texts["LinearDyn"]
    assert "1.01 * b." in texts["LinearDyn"]
    for kind in KINDS[2:]:
        assert texts[kind].count("on duration <= 20 and") == 2
    assert texts["NonDeterministicAgg"].count("sum_c4 =") == 3
    shorter = drawn(replace(TABLE_3, zipf=(1.0,)), "NonDeterministicAgg")
    assert all("fold" not in rows.text for rows in shorter)


def test_subscriptions_are_the_same_whatever_the_batches() -> None:
    workload = Workload(seed=7)
    whole = {rows.text: rows for rows in workload.subscriptions(0, 3_000)}
    for begin, end in ((0, 1_000), (1_000, 3_000)):
        for rows in workload.subscriptions(begin, end):
            places = np.searchsorted(whole[rows.text].numbers, rows.numbers)
            for name, values in rows.columns.items():
                assert np.array_equal(whole[rows.text].columns[name][places], values)
    other = {rows.text: rows for rows in Workload(seed=8).subscriptions(0, 3_000)}
    assert any(not np.array_equal(rows.numbers, other[text].numbers) for text, rows in whole.items())


def test_a_part_of_all_steps_can_be_merged_and_more_of_them_the_more_skewed_they_are() -> None:
    levels = [
        Workload(replace(TABLE_3, zipf=(exponent, 1.0, 0.8))).levels(MANY) for exponent in (0.8, 1.0, 1.4)
    ]
    flat, usual, skewed = levels
    assert MANY > flat[0] > usual[0] > skewed[0] > MANY / 3
    assert all(first <= second <= third <= MANY for first, second, third in levels)


@pytest.mark.parametrize("kind", ["LinearStat", "LinearDyn"])
def test_levels_are_the_different_beginnings_of_subscriptions(kind: Kind) -> None:
    workload = Workload(replace(TABLE_3, domain=2, ranges=2), kind)
    rows = [
        tuple(part.format(**{name: values[row] for name, values in rows.columns.items()}) for part in parts)
        for rows in workload.subscriptions(0, 3_000)
        for parts in [[f"{part} " for part in re.sub(r":(\w+)", r"{\1}", rows.text).split(" next ")]]
        for row in range(len(rows))
    ]
    assert workload.levels(3_000) == tuple(len({row[: step + 1] for row in rows}) for step in range(3))


@pytest.mark.parametrize(
    "wrong",
    [
        {"zipf": ()},
        {"zipf": (1.0, -1.0)},
        {"equalities": 0},
        {"equalities": 5},
        {"inequalities": 5},
        {"selectivity": 0.0},
        {"ranges": 0},
        {"duration": 0},
    ],
)
def test_parameters_that_make_no_workload_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Parameters(**wrong)


def test_equal_rows_are_found_together() -> None:
    assert [places.tolist() for places in split(np.array([[1, 2], [0, 0], [1, 2]]))] == [[1], [0, 2]]
    assert split(np.empty((0, 2), dtype=np.int32)) == []


def test_a_made_up_feed_is_as_large_as_the_paper_s() -> None:
    feed = feeds.make_feed()
    assert (feed.articles.num_rows, len(feed.sites)) == (26_623, 415)
    there = np.sum([np.asarray(column.is_valid()) for column in feed.articles.columns], axis=0) - 1
    assert (there.min(), there.max()) == (6, 11)
    assert sum(part.num_rows for part in feed.batches(100, 2_500)) == 2_400
    assert feed.articles.equals(feeds.make_feed().articles)
    assert not feed.articles.equals(feeds.make_feed(seed=2).articles)


@pytest.mark.parametrize("kind", feeds.TEMPLATES)
def test_a_feed_s_templates_test_sites_and_popularities(kind: feeds.Kind) -> None:
    (rows,) = feeds.make_feed(500, 20).subscriptions(kind, 1_000)
    template = rows.template()
    assert isinstance(template.query, Sequence)
    assert set(template.parameters) == set(rows.columns)
    assert len(set(rows.columns["w"].tolist())) == 20
    if "x" in rows.columns:
        assert (rows.columns["x"].min(), rows.columns["x"].max()) == (0, 99)


def test_a_feed_is_read_in_the_order_of_publication_from_the_sites_with_the_most_articles(
    tmp_path: Path,
) -> None:
    records = [
        {"time": f"2020-01-{30 - i:02}", "site": site, "title": f"n{i}", "category": "x"}
        for i, site in enumerate(["one", "two", "one", "three", "two", "one"])
    ]
    file = tmp_path / "news.jsonl"
    file.write_text("\n".join(map(json.dumps, [*records, {"site": "one"}])), encoding="utf-8")
    feed = feeds.read_feed(file, sites=2)
    assert feed.sites == ("one", "two")
    assert feed.articles["title"].to_pylist() == ["n5", "n4", "n2", "n1", "n0"]
    assert set(feed.articles["channel"].to_pylist()) == {"x"}
    assert feeds.read_feed(file, articles=2).articles.num_rows == 2
    file.write_text('{"a": 1}', encoding="utf-8")
    with pytest.raises(TocsinError, match="a record needs time, site and title"):
        feeds.read_feed(file)
    with pytest.raises(TocsinError, match="there is no file"):
        feeds.read_feed(tmp_path / "none.jsonl")


def test_prices_are_walked_or_read_day_by_day(tmp_path: Path) -> None:
    walked = stocks.make_prices(5, 11)
    assert walked.column_names == ["day", "name", "price", "volume"]
    assert walked.num_rows == 55
    days = walked["day"].to_numpy()
    assert (np.diff(days) >= 0).all()
    assert days[-1] - days[0] == 14
    file = tmp_path / "stocks.jsonl"
    lines = [
        {"date": "2013-02-11", "symbol": "B", "close": 2.5, "volume": 1},
        {"date": "2013-02-08", "symbol": "B", "close": 2.0, "volume": 1},
        {"date": "2013-02-08", "symbol": "A", "close": 1.5, "volume": 1},
        {"date": "2013-02-08", "symbol": "C", "close": None, "volume": 1},
    ]
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    read = stocks.read_prices(file)
    assert read["name"].to_pylist() == ["A", "B", "B"]
    assert np.diff(read["day"].to_numpy()).tolist() == [0, 3]
    file.write_text('{"a": 1}', encoding="utf-8")
    with pytest.raises(TocsinError, match="date, symbol, close and volume are needed"):
        stocks.read_prices(file)
    with pytest.raises(TocsinError, match="there is no file"):
        stocks.read_prices(tmp_path / "none.jsonl")


@pytest.mark.parametrize("text", [stocks.S3, stocks.S4])
def test_the_questions_about_stocks_are_sequences(text: str) -> None:
    assert isinstance(parse(text), Sequence)
