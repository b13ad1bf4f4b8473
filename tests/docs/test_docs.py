"""The documents are right: subscriptions parse, and Python examples run (pytest collects those itself)."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tocsin import check
from tocsin.cli.app import app
from tocsin.language.parsing.tokens import RESERVED

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("docs/**/*.md"), ROOT / "README.md"])
SUBSCRIPTIONS = [
    pytest.param(text, id=f"{page.name}: {text[:40]}")
    for page in PAGES
    for text in re.findall(r"^```sql\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
]


@pytest.mark.parametrize("text", SUBSCRIPTIONS)
def test_every_subscription_in_the_documents_parses(text: str) -> None:
    assert check(text).warnings == ()


def test_the_reference_lists_every_reserved_word() -> None:
    page = (ROOT / "docs/reference/language.md").read_text(encoding="utf-8")
    listed = re.search(r"names only in double quotes: `([^`]*)`", page)
    assert listed is not None
    assert set(listed.group(1).split()) == RESERVED


def _commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def test_every_command_and_option_is_in_the_reference() -> None:
    page = (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8")
    for name, command in _commands(typer.main.get_command(app), "tocsin"):
        assert f"`{name}" in page, name
        for parameter in command.params:
            for option in parameter.opts:
                assert not option.startswith("-") or f"`{option}`" in page or option == "--help", (
                    f"{name} {option}"
                )


def test_links_between_documents_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_document_is_linked_from_an_index() -> None:
    linked = {
        (index.parent / target).resolve()
        for index in (ROOT / "README.md", ROOT / "docs/decisions/README.md")
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", index.read_text(encoding="utf-8"))
    }
    assert [page.name for page in PAGES if page.name != "README.md" and page not in linked] == []


@pytest.mark.parametrize("page", ["docs/comparison.md", "benchmarks/engine/README.md"])
def test_figures_of_the_engine_are_the_recorded_ones(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    recorded = json.loads((ROOT / "benchmarks/engine/results.json").read_text(encoding="utf-8"))[
        "measurements"
    ]

    def figure(name: str, experiment: str, matcher: str, at: object) -> float:
        wanted = {"experiment": experiment, "matcher": matcher, "at": at}
        (value,) = [one["value"] for one in recorded if one["name"] == name and one["details"] == wanted]
        return float(value)

    names = ("tocsin match", "loop of lambdas", "DuckDB")
    for suffix, shown in (("jsonl", "JSON lines"), ("csv", "CSV"), ("parquet", "Parquet")):
        rates = [f"{figure('events/s', 'files', name, f'.{suffix}'):,.0f}" for name in names]
        assert f"| 12 filters, {shown} | {' | '.join(rates)} |" in text
    for alerts in (100, 1000):
        rates = [f"{figure('events/s', 'files by number', name, alerts):,.0f}" for name in names[:2]]
        assert f"| {alerts:,} alerts, JSON lines | {' | '.join(rates)} | |" in text
    for matcher, stored in (("alerts, 3.3 matches", 100_000), ("Le Subscribe's W0", 1_000_000)):
        assert f"{figure('µs an event', 'one event', matcher, stored):.1f} µs" in text
    assert f"{figure('subscriptions where the lines cross', 'few', 'Engine', 150):.0f} subscriptions" in text
