"""`python -m benchmarks`: the papers' experiments on Tocsin's matchers, sequences, views and networks."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from benchmarks.runner.benchmark import Benchmark
from benchmarks.runner.plots import draw, require_matplotlib
from benchmarks.runner.report import Report
from tocsin.cli.terminal import complain, show_log, warn
from tocsin.formats.files import is_standard
from tocsin.model.errors import TocsinError
from tocsin.structures.answering import compile_first

BENCHMARKS: Final = {
    "engine": "benchmarks.engine",
    "language": "benchmarks.language",
    "lesubscribe": "benchmarks.lesubscribe",
    "opindex": "benchmarks.opindex",
    "amkh": "benchmarks.amkh",
    "adaptive": "benchmarks.adaptive",
    "cayuga": "benchmarks.cayuga",
    "views": "benchmarks.dbnet.views",
    "network": "benchmarks.dbnet.network",
    "spark": "benchmarks.spark",
}
ALL: Final = "all"

_USAGE: Final = "python -m benchmarks"


def load(name: str) -> Benchmark[Any]:
    """Return a benchmark by its name."""
    found: Benchmark[Any] = import_module(f"{BENCHMARKS[name]}.experiments").BENCHMARK
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; return 0, 1 if a part of the benchmark failed, or 2 for trouble."""
    compile_first()  # nothing is measured while kernels are interpreted
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in ("-h", "--help"):
        _list()
        return 0
    name, *others = given
    try:
        if name == ALL:
            parser = ArgumentParser(prog=f"{_USAGE} {ALL}", allow_abbrev=False)
            parser.add_argument("--scale", choices=("small", "paper"), default="small")
            scale = parser.parse_args(others).scale
            return max(_run(load(one), ["--scale", scale]) for one in BENCHMARKS)
        if name not in BENCHMARKS:
            raise TocsinError(f"there is no benchmark `{name}`; there are: {', '.join(BENCHMARKS)}, {ALL}")
        return _run(load(name), others)
    except (TocsinError, OSError) as error:
        complain(str(error) or type(error).__name__)
        return 2


def _list() -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"usage: {_USAGE} NAME [OPTIONS]\n\nbenchmarks:", markup=False)
    for name in BENCHMARKS:
        console.print(f"  {name:<12} {load(name).title}", markup=False)
    console.print(f"  {ALL:<12} All of them, one after another.\n", markup=False)
    console.print(
        f"`{_USAGE} NAME --help` lists the options and the experiments of a benchmark.", markup=False
    )


def _run(benchmark: Benchmark[Any], arguments: Sequence[str]) -> int:
    chosen = vars(parser_of(benchmark).parse_args(arguments))
    scale, experiments = benchmark.scales[chosen.pop("scale")], chosen.pop("experiment") or ()
    json, plots, recorded = chosen.pop("json"), chosen.pop("plots"), chosen.pop("recorded")
    if plots is not None:
        require_matplotlib()  # now, not after the run
        if not benchmark.plots:
            warn(f"nothing will be drawn: the benchmark `{benchmark.name}` has no plots, only figures")
    if recorded is not None:
        report = Report.read(recorded)
    else:
        options = {name: value for name, value in chosen.items() if value is not None}
        with Console(stderr=True).status("measuring") as status:
            report = benchmark.run(scale, experiments=experiments, progress=status.update, **options)
    if json is not None:
        report.write(json)
    if json is None or not is_standard(json):
        benchmark.show(report, benchmark.experiments)
    if plots is not None and benchmark.plots and not draw(benchmark.plots, report.measurements, plots):
        shown = ", ".join(benchmark.plots)
        warn(f"nothing was drawn: no plot of `{benchmark.name}` ({shown}) shows what was measured")
    if failures := report.parameters.get("failures", 0):
        complain(f"{failures} of {report.parameters['simulations']} simulations failed")
    return 1 if failures else 0


def parser_of(benchmark: Benchmark[Any]) -> ArgumentParser:
    """Return the parser of a benchmark's command line."""
    experiments = "\n".join(f"  {name:<26} {one.title}" for name, one in benchmark.experiments.items())
    parser = ArgumentParser(
        prog=f"{_USAGE} {benchmark.name}",
        description=benchmark.title,
        epilog=f"experiments:\n{experiments}",
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--scale", choices=benchmark.scales, default="small", help=benchmark.sizes)
    several = "only this experiment; may be given several times"
    parser.add_argument("--experiment", action="append", metavar="NAME", help=several)
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the measurements to this file, - for standard output"
    )
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="draw the figures into this folder")
    shown = "show and draw the measurements of this file, and run nothing"
    parser.add_argument("--recorded", type=Path, metavar="FILE", help=shown)
    for option in benchmark.options:
        flag = f"--{option.name}"
        if option.flag:
            parser.add_argument(flag, action="store_true", default=None, help=option.help)
        else:
            action = "append" if option.many else "store"
            parser.add_argument(flag, action=action, type=option.kind, metavar="VALUE", help=option.help)
    return parser


if __name__ == "__main__":
    show_log()
    sys.exit(main())
