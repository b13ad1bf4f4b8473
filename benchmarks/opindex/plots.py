"""Plots in the shape of the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from benchmarks.runner.plots import Panel, Plot, lines

_BUILD, _MATCHING, _MEMORY = "build time", "matching time", "memory"

PLOTS: Final[Mapping[str, Plot]] = {
    "attributes": lines(
        Panel("attributes", _BUILD, "attributes", "figure 1: building"),
        Panel("attributes", _MATCHING, "attributes", "figure 1: matching"),
    ),
    "capacity": lines(
        Panel("capacity", _BUILD, "capacity of a leaf", "figure 7: building"),
        Panel("capacity", _MATCHING, "capacity of a leaf", "figure 7: matching"),
    ),
    "memory": lines(
        Panel("subscriptions", _MEMORY, "subscriptions", "figure 8a: by subscriptions"),
        Panel("values", _MEMORY, "values of an attribute", "figure 8b: by values"),
    ),
    "building": lines(
        Panel("subscriptions", _BUILD, "subscriptions", "figure 9a: by subscriptions"),
        Panel("predicates", _BUILD, "largest subscription", "figure 9b: by predicates"),
    ),
    "matching": lines(
        Panel("subscriptions", _MATCHING, "subscriptions", "figure 10a: subscriptions"),
        Panel("predicates", _MATCHING, "largest subscription", "figure 10b: predicates"),
        Panel("pairs", _MATCHING, "largest event", "figure 10c: event size, 1 to m"),
        Panel("full events", _MATCHING, "size of all events", "figure 10c: event size, all m"),
        Panel("equal share", _MATCHING, "% of predicates that are =", "figure 10d: operators"),
        Panel("values", _MATCHING, "values of an attribute", "figure 10e: values"),
        Panel("zipf", _MATCHING, "Zipf's exponent", "figure 10f: skew"),
    ),
    "keywords": lines(
        Panel("keywords", _BUILD, "subscriptions", "figure 11: building, ="),
        Panel("keywords", _MATCHING, "subscriptions", "short documents, =", "short"),
        Panel("keywords", _MATCHING, "subscriptions", "long documents, =", "long"),
        Panel("keyword intervals", _BUILD, "subscriptions", "figure 11: building, intervals"),
        Panel("keyword intervals", _MATCHING, "subscriptions", "short, intervals", "short"),
        Panel("keyword intervals", _MATCHING, "subscriptions", "long, intervals", "long"),
        widest=3,
    ),
    "products": lines(
        Panel("products", _BUILD, "subscriptions", "figure 12: building"),
        Panel("product predicates", _BUILD, "largest subscription", "building"),
        Panel("products from one", _BUILD, "subscriptions", "building, drawn from a product"),
        Panel("products", _MATCHING, "subscriptions", "matching"),
        Panel("product predicates", _MATCHING, "largest subscription", "matching"),
        Panel("products from one", _MATCHING, "subscriptions", "matching, drawn from a product"),
        widest=3,
    ),
    "forms": lines(
        Panel("dnf", _MATCHING, "subscriptions", "figure 13a: DNF"),
        Panel("cnf", _MATCHING, "subscriptions", "figure 13a: CNF"),
        Panel("dnf clauses", _MATCHING, "most clauses", "figure 13b: DNF"),
        Panel("cnf clauses", _MATCHING, "most clauses", "figure 13b: CNF"),
        widest=2,
    ),
    "prefix": lines(
        Panel("prefix share", _MATCHING, "% prefixes", "figure 14a: any attributes", "any"),
        Panel("prefix share", _MATCHING, "% prefixes", "mostly words", "words"),
        Panel("prefix length", _MATCHING, "letters", "figure 14b: any attributes", "any"),
        Panel("prefix length", _MATCHING, "letters", "mostly words", "words"),
        widest=2,
    ),
}
