"""Loading subscriptions from the command line and from files into an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from tocsin.cli.terminal import warn
from tocsin.engine import Engine
from tocsin.formats import Format
from tocsin.formats.files import format_of, is_readable, raw_records, unreadable_reason
from tocsin.formats.records import UnreadableRecord
from tocsin.formats.subscription_files import Entry, describe, read_subscriptions
from tocsin.language import Template, to_normal
from tocsin.language.check import Checked, read_query
from tocsin.language.parsing.cursor import closest
from tocsin.model import Filter, Sequence, View
from tocsin.model.conditions import TRUE, Condition
from tocsin.model.errors import LanguageError, SubscriptionError, TemplateError, TocsinError
from tocsin.sequences.compiling.compiler import compile_sequence
from tocsin.subscriptions.filters import smaller_form
from tocsin.subscriptions.options import check_id, read_options
from tocsin.views.compilation import compile_view
from tocsin.views.compiled import CompiledRowView

_FEW: Final = 5  # columns that an error names
_TOGETHER: Final = 10_000  # subscriptions of a file that are read before they are subscribed


class EntryError(TocsinError):
    """An entry of a file whose query is at fault; `error` says why."""

    def __init__(self, error: TocsinError, entry: Entry) -> None:
        super().__init__(_described(error, entry))
        self.error = error
        self.entry = entry


def load_given(
    engine: Engine,
    texts: list[str] | None,
    files: list[Path] | None,
    template: tuple[str | None, Path | None, str | None],
    report: Callable[[object], None],
) -> None:
    """Subscribe texts, files and a template's rows; raise `TocsinError` if that is nothing."""
    text, parameters, id_rule = template
    if (text is None) is not (parameters is None):
        raise TocsinError("--template and --parameters go together: a text, and the rows with its values")
    if not texts and not files and text is None:
        raise TocsinError("nothing is subscribed: give -s TEXT, -f FILE, or --template and --parameters")
    load_texts(engine, texts or [])
    for file in files or []:
        load_entries(engine, file, report)
    if text is not None and parameters is not None:
        load_template(engine, text, parameters, id_rule, report)
    if not len(engine):
        raise TocsinError("no subscription could be read")


def load_texts(engine: Engine, texts: list[str]) -> None:
    """Subscribe to texts as `s1`, `s2`, …; raise the error of the first faulty one."""
    for number, text in enumerate(texts, 1):
        _warn(f"s{number}", engine.subscribe(text, id=f"s{number}").warnings)


def load_entries(
    engine: Engine, path: Path, report: Callable[[object], None], format: Format | None = None
) -> int:
    """Subscribe to the subscriptions of a file, report faulty ones and go on; return how many were faulty."""
    faulty = 0
    for part in _parts(read_subscriptions(path, format)):
        entries = [entry for entry in part if isinstance(entry, Entry)]
        done = engine.subscribe_all(entries)
        refused = {id(entries[position]): error for position, error in done.errors.items()}
        for entry in part:
            error = entry if isinstance(entry, SubscriptionError) else refused.get(id(entry))
            if error is not None:
                faulty += 1
                report(_described(error, entry))
            elif isinstance(entry, Entry):
                _warn(entry.id, done.warnings.get(entry.id, ()))
    return faulty


def _parts(
    entries: Iterator[Entry | SubscriptionError],
) -> Iterator[list[Entry | SubscriptionError]]:
    """Yield a file's entries, many at a time; those before a fault that ends the file come before the fault."""
    part: list[Entry | SubscriptionError] = []
    try:
        for entry in entries:
            part.append(entry)
            if len(part) == _TOGETHER:
                yield part
                part = []
    except Exception:
        yield part
        raise
    yield part


def check_entry(entry: Entry | SubscriptionError) -> Checked:
    """Return an entry's query with its warnings, or raise its error as a `TocsinError`.

    A query that is too large in every normal form is an error.
    """
    if isinstance(entry, SubscriptionError):
        raise entry
    try:
        checked = read_query(entry.query)
        check_id(entry.id)
        terms = entry.valid_from, entry.valid_until, entry.owner, entry.id
        read_options(*terms, weight=entry.weight, witness=entry.witness)
        if isinstance(checked.query, Filter) and checked.normal is None:
            smaller_form(checked.query, entry.id, checked.normal)
        if isinstance(checked.query, Sequence):
            compile_sequence(checked.query)
        if isinstance(checked.query, View):
            to_normal(_row_condition(checked.query, entry.id))
    except TocsinError as error:
        raise EntryError(error, entry) from None
    return checked


def _row_condition(view: View, id_: str) -> Condition:
    """Return the condition on a view's rows, or raise `SubscriptionError` if the view is not supported."""
    compiled = compile_view(view, id_)
    return compiled.condition if isinstance(compiled, CompiledRowView) else TRUE


def load_template(
    engine: Engine, template: str, parameters: Path, id_rule: str | None, report: Callable[[object], None]
) -> None:
    """Subscribe to a template's rows; `template` is a text, or the name of a file that holds one."""
    rows = parameter_rows(parameters, report)
    lines = list(rows)
    read = Template(template_text(template))
    _check_columns(read, parameters, rows.values())
    done = engine.subscribe_many(read, list(rows.values()), id=id_rule)
    for error in done.errors:
        location = parameters if error.row is None else f"{parameters}:{lines[error.row]}"
        named = "" if error.parameter is None else f"parameter `:{error.parameter}`: "
        report(f"{location}: {named}{error.reason}")
    if done.never:
        warn(f"{len(done.never):,} rows of {parameters} can never match")


def _check_columns(template: Template, path: Path, rows: Iterable[object]) -> None:
    """Raise `TemplateError` for a parameter that no row of a file has; a row that lacks one is a fault of its own."""
    names = dict.fromkeys(name for row in rows if isinstance(row, Mapping) for name in row)
    for parameter in template.parameters:
        if names and parameter not in names:
            near = closest(parameter, tuple(names))
            known = ", ".join(f"`{name}`" for name in list(names)[:_FEW])
            raise TemplateError(
                f"{path} has no column `{parameter}` for the parameter `:{parameter}`; "
                + (f"did you mean `{near}`?" if near else f"its columns are {known}")
            )


def template_text(template: str) -> str:
    """Return the text of a template, which is given as a text or as the name of a file."""
    file = Path(template)
    return file.read_text(encoding="utf-8") if is_readable(file) else template


def parameter_rows(path: Path, report: Callable[[object], None]) -> dict[int, object]:
    """Return a template's rows by their line numbers; report unreadable ones and leave them out."""
    if not is_readable(path):
        raise TemplateError(unreadable_reason(path))
    found: dict[int, object] = {}
    for line, record in raw_records(path, format_of(path)):
        if isinstance(record, UnreadableRecord):
            report(f"{path}:{line}: {record.reason}")
        else:
            found[line] = record
    return found


def _described(error: TocsinError, entry: Entry | SubscriptionError) -> str:
    if isinstance(entry, SubscriptionError):
        return str(error)
    if isinstance(error, LanguageError):
        return describe(error, entry)
    named = "" if isinstance(error, SubscriptionError) and error.id else f"subscription `{entry.id}`: "
    return f"{entry.location}: {named}{error}"


def _warn(id_: str, warnings: tuple[str, ...]) -> None:
    for warning in warnings:
        warn(f"subscription `{id_}`: {warning}")
