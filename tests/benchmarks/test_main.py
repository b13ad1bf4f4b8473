import json
from pathlib import Path

import pytest

import benchmarks
from benchmarks.__main__ import BENCHMARKS, load, parser_of
from tests.benchmarks.running import benchmark
from tests.cli.running import run_module


def test_language_prints_a_table_and_writes_json(tmp_path: Path) -> None:
    file = tmp_path / "language.json"
    done = run_module("benchmarks", "language", "--filters", "50", "--rows", "500", "--json", file)
    assert done.returncode == 0, done.stderr
    assert "parse and normalise" in done.stdout
    report = json.loads(file.read_text())
    assert report["benchmark"] == "language"
    assert {m["name"]: m["target"] for m in report["measurements"]}["parse and normalise"] == 10_000
    assert all(m["value"] > 0 for m in report["measurements"])


def test_opindex_says_which_data_is_missing(tmp_path: Path) -> None:
    done = run_module("benchmarks", "opindex", "--data", tmp_path)
    assert done.returncode == 2
    assert "news.jsonl.gz and no" in done.stderr
    assert "or name none, and the data is made up" in done.stderr


def test_cayuga_says_which_data_is_missing(tmp_path: Path) -> None:
    done = run_module("benchmarks", "cayuga", "--data", tmp_path)
    assert done.returncode == 2
    assert "news.jsonl.gz and no" in done.stderr
    assert "leave out --data, and the data is made up" in done.stderr


def test_views_says_which_data_is_missing(tmp_path: Path) -> None:
    done = run_module("benchmarks", "views", "--data", tmp_path)
    assert done.returncode == 2
    assert "stock_quotes.jsonl.gz; leave out --data, and the quotes are made up" in done.stderr


def test_without_a_name_all_benchmarks_are_listed() -> None:
    done = benchmark()
    assert done.exit_code == 0
    for name in BENCHMARKS:
        assert f"  {name} " in done.output
        assert load(name).title in done.output


def test_an_unknown_benchmark_is_refused_with_the_known_ones() -> None:
    done = benchmark("opindx")
    assert done.exit_code == 2
    assert "there is no benchmark `opindx`; there are: engine, language, lesubscribe" in done.output


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_help_of_a_benchmark_names_its_options_and_experiments(name: str) -> None:
    text = parser_of(load(name)).format_help()
    for option in (
        "scale",
        "experiment",
        "json",
        "plots",
        "recorded",
        *(one.name for one in load(name).options),
    ):
        assert f"--{option} " in text
    for experiment in load(name).experiments:
        assert f"\n  {experiment} " in text


def test_plots_of_what_has_none_are_said_to_be_missing(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = benchmark("language", "--filters", "20", "--rows", "20", "--plots", tmp_path)
    assert done.exit_code == 0
    assert "nothing will be drawn: the benchmark `language` has no plots, only figures" in done.output
    report = json.loads((Path(benchmarks.__file__).parent / "amkh" / "results.json").read_text())
    recorded = tmp_path / "recorded.json"
    recorded.write_text(json.dumps({**report, "measurements": []}))
    done = benchmark("amkh", "--recorded", recorded, "--plots", tmp_path)
    assert "nothing was drawn: no plot of `amkh` (" in done.output
    assert list(tmp_path.glob("*.png")) == []


def test_measurements_go_to_standard_output_alone() -> None:
    done = run_module("benchmarks", "language", "--filters", "20", "--rows", "20", "--json", "-")
    assert json.loads(done.stdout)["benchmark"] == "language"
