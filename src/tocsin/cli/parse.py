"""`tocsin parse`: a subscription as canonical text, JSON or normal form."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from tocsin.cli.terminal import warn
from tocsin.language import Cnf, Dnf, check, condition_text, to_cnf, to_dnf, to_json, to_normal, to_text
from tocsin.model import Filter, Query
from tocsin.model.conditions import all_of, any_of
from tocsin.model.errors import TocsinError


class OutputForm(StrEnum):
    """The output forms of a subscription."""

    TEXT = "text"
    JSON = "json"
    DNF = "dnf"
    CNF = "cnf"
    NORMAL = "normal"


def parse(
    text: Annotated[str, typer.Argument(help="A subscription, or - to read it from standard input.")],
    form: Annotated[
        OutputForm,
        typer.Option(help="Canonical text, JSON, or a filter's normal form; `normal` is the smaller one."),
    ] = OutputForm.TEXT,
) -> None:
    """Show a subscription as it was parsed, or the position of its error."""
    checked = check(sys.stdin.read() if text == "-" else text)
    for warning in checked.warnings:
        warn(warning)
    typer.echo(_shown(checked.query, form))


def _shown(query: Query, form: OutputForm) -> str:
    """Return a query in an output form; raise `TocsinError` if the form needs a filter and it is none."""
    if form is OutputForm.TEXT:
        return to_text(query)
    if form is OutputForm.JSON:
        return msgspec.json.format(msgspec.json.encode(to_json(query)), indent=2).decode()
    if not isinstance(query, Filter):
        raise TocsinError("only filters have a normal form; sequences and views are compiled in other ways")
    if form is OutputForm.DNF:
        return _lines(to_dnf(query.condition))
    if form is OutputForm.CNF:
        return _lines(to_cnf(query.condition))
    normal = to_normal(query.condition)
    return f"{'cnf' if isinstance(normal, Cnf) else 'dnf'}\n{_lines(normal)}"


def _lines(normal: Dnf | Cnf) -> str:
    if isinstance(normal, Dnf):
        return "\n".join(condition_text(all_of(list(c))) for c in normal.conjunctions) or "false"
    return "\n".join(condition_text(any_of(list(c))) for c in normal.clauses) or "true"
