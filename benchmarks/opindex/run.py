"""All experiments in one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from benchmarks.opindex import experiments as work
from benchmarks.opindex.inputs import Data, Material
from benchmarks.opindex.scales import SMALL, Scale
from benchmarks.opindex.session import Session
from benchmarks.runner.experiment import Experiment, check_choice
from benchmarks.runner.report import Report
from tocsin.matching import registered_matchers

MATCHERS: Final = ("opindex", "opindex-bs", "dynamic", "amkh", "k-index", "be-tree")
"""Those that are compared as soon as they are registered."""


EXPERIMENTS: Final[Mapping[str, Experiment[Session]]] = {
    "input A": Experiment("What the targets are set for", "subscriptions", work.input_a),
    "attributes": Experiment("Figure 1: number of attributes", "attributes", work.attributes),
    "capacity": Experiment("Figure 7: capacity of BE-Tree's leaves", "capacity", work.capacities),
    "subscriptions": Experiment(
        "Figures 8a, 9a, 10a: number of subscriptions", "subscriptions", work.subscriptions
    ),
    "predicates": Experiment("Figures 9b, 10b: largest subscription", "predicates", work.predicates),
    "pairs": Experiment("Figure 10c: largest event", "attributes", work.pairs),
    "full events": Experiment("Figure 10c, all events that large", "attributes", work.full_events),
    "equal share": Experiment("Figure 10d: share of `=`", "% `=`", work.equal_shares),
    "values": Experiment("Figures 8b, 10e: number of values", "values", work.values),
    "zipf": Experiment("Figure 10f: Zipf's exponent", "exponent", work.exponents),
    "keywords": Experiment("Figure 11: keywords, `=`", "subscriptions", work.keywords),
    "keyword intervals": Experiment(
        "Figure 11: keywords, intervals", "subscriptions", work.keyword_intervals
    ),
    "products": Experiment(
        "Figure 12: products, attributes as the paper draws them", "subscriptions", work.products
    ),
    "products from one": Experiment(
        "Figure 12: products, attributes of one product", "subscriptions", work.products_from_one
    ),
    "product predicates": Experiment(
        "Figure 12: products, largest subscription", "predicates", work.product_predicates
    ),
    "dnf": Experiment("Figure 13a: DNF, number of subscriptions", "subscriptions", work.disjunctive),
    "cnf": Experiment("Figure 13a: CNF, number of subscriptions", "subscriptions", work.conjunctive),
    "dnf clauses": Experiment("Figure 13b: DNF, most clauses", "clauses", work.disjunctive_clauses),
    "cnf clauses": Experiment("Figure 13b: CNF, most clauses", "clauses", work.conjunctive_clauses),
    "prefix share": Experiment("Figure 14a: share of prefixes", "% prefixes", work.prefix_shares),
    "prefix length": Experiment("Figure 14b: length of prefixes", "letters", work.prefix_lengths),
}


def run(
    scale: Scale = SMALL,
    matchers: Sequence[str] = (),
    data: Data | None = None,
    *,
    experiments: Sequence[str] = (),
    memory_gb: float = float("inf"),
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Run these experiments, or all, with these matchers, or with all of `MATCHERS` that there are."""
    check_choice(experiments, matchers, EXPERIMENTS)
    known = registered_matchers()
    chosen = matchers or [name for name in MATCHERS if name in known]
    material = Material(data or Data(), scale, progress)
    session = Session(scale, chosen, material, memory_gb * 1e3, progress)
    session.begin("starting")
    compiling = session.compile()
    for name in experiments or EXPERIMENTS:
        session.begin(name)
        EXPERIMENTS[name].work(session)
    absent = [name for name in MATCHERS if name not in known and not matchers]
    return Report.of(
        "opindex",
        session.measurements,
        scale=scale.name,
        matchers=", ".join(contender.label for contender in session.contenders),
        not_there=", ".join(absent) or "none",
        left_out="; ".join(session.left_out) or "nothing",
        compile_s=compiling,
        **material.described(),
    )
