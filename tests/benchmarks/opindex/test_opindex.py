from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from benchmarks.opindex.experiments import BENCHMARK, EXPERIMENTS, PLOTS, SCALES
from benchmarks.opindex.session import OpIndexSession
from benchmarks.runner.agreement import Agreement, summary
from benchmarks.runner.plots import draw
from benchmarks.runner.report import Report
from tests.benchmarks.running import benchmark
from tocsin.matching import Matcher, Matches, create_matcher, registered_matchers, registry, takes_clauses
from tocsin.matching.encoding.codes import Keys
from tocsin.model.errors import MatcherError, TocsinError

run = BENCHMARK.run
MATCHERS = OpIndexSession.paper
TINY = replace(
    SCALES["paper"],
    name="tiny",
    sizes=(100, 200),
    usual=100,
    input_a=(100,),
    queries=(100,),
    products=(100,),
    product_usual=100,
    forms=(100,),
    form_usual=100,
    prefixes=100,
    attributes=(200, 400),
    predicates=(4, 8),
    pairs=(20, 40),
    equal_shares=(20, 100),
    values=(5, 50),
    exponents=(0.0, 1.0),
    clauses=(1, 3),
    prefix_shares=(50, 100),
    prefix_lengths=(1, 3),
    capacities=(5,),
    documents=100,
    words=300,
    catalogue=100,
    catalogue_attributes=100,
    events=40,
    seconds=5.0,
    warm_up=20,
    batch=20,
    dicts=20,
)
PRESENT = [name for name in MATCHERS if name in registered_matchers()]
LOADING = {"build time", "encoding", "memory", "resident memory"}
FIGURES = LOADING | {"matching time", "matches", "encoding dicts"}
CLAUSES = {"cnf", "cnf clauses"}


@pytest.fixture(scope="module")
def report() -> Report:
    return run(TINY)


def test_every_experiment_measures_every_matcher_in_every_way(report: Report) -> None:
    for experiment in EXPERIMENTS.keys() - {"capacity", *CLAUSES}:  # which few matchers can take
        for matcher in PRESENT:
            found = {
                one.name
                for one in report.measurements
                if (one.details["experiment"], one.details["matcher"]) == (experiment, matcher)
            }
            # Where only events vary, one index serves for all, and is reported elsewhere.
            wanted = FIGURES - LOADING if experiment in ("pairs", "full events") else FIGURES
            assert found == wanted, (experiment, matcher)
    assert all(one.value >= 0 for one in report.measurements)
    assert report.parameters["documents"] == report.parameters["catalogue"] == "made up"


def test_clause_forms_are_measured_on_matchers_that_hold_them(report: Report) -> None:
    holding = {name for name in PRESENT if takes_clauses(create_matcher(name))}
    for experiment in CLAUSES:
        found = {
            one.details["matcher"] for one in report.measurements if one.details["experiment"] == experiment
        }
        assert found == holding
        for name in set(PRESENT) - holding:
            assert f"{experiment}: {name} holds no clauses" in str(report.parameters["left_out"])


def test_a_varied_parameter_takes_all_its_values(report: Report) -> None:
    varied: dict[str, Sequence[float]] = {
        "subscriptions": TINY.sizes,
        "attributes": TINY.attributes,
        "equal share": TINY.equal_shares,
        "pairs": TINY.pairs,
        "full events": TINY.pairs,
        "zipf": TINY.exponents,
        "prefix length": TINY.prefix_lengths,
    }
    for experiment, expected in varied.items():
        found = {
            float(one.details["at"]) for one in report.measurements if one.details["experiment"] == experiment
        }
        assert found == set(expected)


def test_something_matches_in_every_experiment_but_where_the_paper_s_draws_leave_little(
    report: Report,
) -> None:
    found = {
        one.details["experiment"] for one in report.measurements if one.name == "matches" and one.value > 0
    }
    assert {"keywords", "products from one", "prefix share", "prefix length"} <= found


def test_matchers_that_are_not_registered_yet_are_named(report: Report) -> None:
    absent = [name for name in MATCHERS if name not in registered_matchers()]
    assert report.parameters["not_there"] == (", ".join(absent) or "none")


def test_runs_that_would_take_too_long_are_skipped_and_reported() -> None:
    hasty = run(replace(TINY, patience=0.0, tried=50), matcher=["counting"], experiments=["subscriptions"])
    small, large = (one for one in hasty.measurements if one.name == "left out")
    assert [small.details["at"], large.details["at"]] == list(TINY.sizes)
    assert small.unit == "s"
    assert "subscriptions: counting at 100 left out, it would take about" in str(hasty.parameters["left_out"])
    assert not [one for one in hasty.measurements if one.name == "build time"]


def test_runs_that_do_not_fit_are_reported_with_the_memory_they_need() -> None:
    tight = run(replace(TINY, tried=50), matcher=["counting"], experiments=["subscriptions"], memory=1e-6)
    small, large = (one for one in tight.measurements if one.name == "does not fit")
    assert large.value == pytest.approx(2 * small.value, rel=0.2)
    assert small.unit == "GB"
    assert "counting at 100 does not fit, it would need about" in str(tight.parameters["left_out"])


def test_an_unknown_matcher_or_experiment_is_refused_before_anything_is_measured() -> None:
    with pytest.raises(MatcherError, match="there is no matcher `dinamic`; did you mean `dynamic`"):
        run(TINY, matcher=["dinamic"])
    with pytest.raises(TocsinError, match="there is no experiment `zip`; there are: input A, attributes"):
        run(TINY, matcher=["counting"], experiments=["zip"])


def test_targets_are_for_the_number_of_subscriptions_that_they_were_set_for(report: Report) -> None:
    assert not [one for one in report.measurements if one.target is not None]
    session = OpIndexSession(SCALES["paper"], ["opindex"])
    session.begin("prefix share")
    assert session.target("matching time", "opindex", 100) == 100
    assert session.target("matching time", "dynamic", 100) is None
    assert session.target("matching time", "opindex", 80) is None


def test_a_be_tree_s_capacity_is_varied_as_soon_as_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def be_tree(capacity: int = 0) -> Matcher:
        made.append(capacity)
        return create_matcher("oracle")

    monkeypatch.setitem(registry._MATCHERS, "be-tree", be_tree)
    report = run(replace(TINY, capacities=(5, 250)), matcher=["be-tree"], experiments=["capacity"])
    assert {5, 250} <= set(made)
    assert {one.details["at"] for one in report.measurements} == {5, 250}


def test_documents_products_and_words_are_read_where_they_are_given(tmp_path: Path) -> None:
    texts = [{"headline": f"bank number {i}", "body": "the bank said so"} for i in range(30)]
    (tmp_path / "texts.jsonl").write_text("\n".join(map(json.dumps, texts)), encoding="utf-8")
    goods = [{"id": i, "colour": "red", "size": i % 5, "brand": f"b{i % 3}"} for i in range(30)]
    (tmp_path / "goods.jsonl").write_text("\n".join(map(json.dumps, goods)), encoding="utf-8")
    (tmp_path / "words.txt").write_text("station\nstatue\nsum\n", encoding="utf-8")
    report = run(
        TINY,
        matcher=["counting"],
        documents=tmp_path / "texts.jsonl",
        catalogue=tmp_path / "goods.jsonl",
        words=tmp_path / "words.txt",
        text=("headline", "body"),
        experiments=["keywords", "products from one", "prefix share"],
    )
    named = [report.parameters[name] for name in ("documents", "catalogue", "words")]
    assert named == ["texts.jsonl", "goods.jsonl", "words.txt"]
    matches = [one for one in report.measurements if one.name == "matches"]
    assert all(one.value > 0 for one in matches if one.details["experiment"] == "products from one")


def test_missing_data_is_named(tmp_path: Path) -> None:
    (tmp_path / "news.jsonl.gz").touch()
    with pytest.raises(TocsinError, match=r"there is no .*products\.jsonl\.zst; name other files with"):
        OpIndexSession(TINY, data=tmp_path)
    with pytest.raises(TocsinError, match=r"there is no .*none\.txt; name other files with"):
        OpIndexSession(TINY, words=tmp_path / "none.txt")
    (tmp_path / "products.jsonl.zst").touch()
    assert OpIndexSession(TINY, data=tmp_path).files["catalogue"] == tmp_path / "products.jsonl.zst"
    assert OpIndexSession(TINY, data=tmp_path, text=["headline", "body"]).text == ("headline", "body")
    assert OpIndexSession(TINY, data=tmp_path, text=["*"]).text is None


def answers(*rows: list[int]) -> list[Keys]:
    return [summary(Matches.of(rows))]


def test_matchers_that_disagree_are_an_error() -> None:
    known = Agreement()
    known.check(("zipf", 1.0, ""), "one", answers([1, 2], []))
    known.check(("zipf", 1.0, ""), "two", answers([1, 2], [], [7]))  # further than the other
    known.check(("zipf", 0.0, ""), "two", answers([3]))  # another question
    with pytest.raises(
        MatcherError, match=r"`two` and `three` disagree on 1 of 3 events .* 1 and 0 subscriptions"
    ):
        known.check(("zipf", 1.0, ""), "three", answers([1, 2], [], []))
    with pytest.raises(MatcherError, match="on event 0 they find 2 subscriptions each, not the same"):
        known.check(("zipf", 1.0, ""), "three", answers([1, 3]))


def test_a_report_is_drawn_and_read_back(report: Report, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report.write(tmp_path / "report.json")
    read = Report.read(tmp_path / "report.json")
    drawn = draw(PLOTS, read.measurements, tmp_path / "plots")
    expected = [
        "attributes",
        "memory",
        "building",
        "matching",
        "keywords",
        "products",
        "forms",
        "prefix",
    ]
    assert [path.stem for path in drawn if path.stem != "capacity"] == expected
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)


def test_the_command_prints_a_table_of_each_experiment_and_writes_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SCALES, "small", replace(TINY, tried=150))
    monkeypatch.setenv("COLUMNS", "200")
    file = tmp_path / "opindex.json"
    chosen = ["--matcher", "counting", "--experiment", "keywords", "--experiment", "subscriptions"]
    done = benchmark("opindex", *chosen, "--memory", "1e-6", "--json", file)
    assert done.exit_code == 0, done.output
    assert "Figure 11: keywords, `=`" in done.output
    assert "│ long " in done.output
    assert "matching time" in done.output
    assert "does not fit (" in done.output
    report = json.loads(file.read_text(encoding="utf-8"))
    assert report["benchmark"] == "opindex"
    assert {one["details"]["experiment"] for one in report["measurements"]} == {"keywords", "subscriptions"}
