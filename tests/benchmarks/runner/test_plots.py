from __future__ import annotations

from pathlib import Path

import pytest

import benchmarks
from benchmarks.__main__ import BENCHMARKS, load
from benchmarks.runner import plots
from tests.benchmarks.running import benchmark
from tocsin.model.errors import TocsinError

RECORDED = Path(benchmarks.__file__).parent
FILES = {"network": ["network.json"], "spark": ["results.json", "cores.json", "stateful.json"]}


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "find_spec", lambda _: None)
    with pytest.raises(TocsinError, match=r"pip install '.*\[bench\]'"):
        plots.require_matplotlib()


@pytest.mark.parametrize("name", BENCHMARKS)
def test_recorded_results_are_shown_and_drawn(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    folder = RECORDED / {"views": "dbnet", "network": "dbnet"}.get(name, name)
    shown = ""
    for file in FILES.get(name, ["results.json"]):
        done = benchmark(name, "--recorded", folder / file, "--plots", tmp_path)
        assert done.exit_code == 0, done.output
        shown += done.output
    titles = [one.title.split(",")[0] for one in load(name).experiments.values()]
    assert sum(title in shown for title in titles) >= len(titles) - 1
    drawn = {path.name for path in tmp_path.glob("*.png")}
    assert drawn <= {path.name for path in folder.glob("*.png")}
    assert len(drawn) >= len(load(name).plots) - 1  # a recorded run may have left one experiment out
