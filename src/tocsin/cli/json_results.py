"""The results of commands as JSON documents: `--json FILE`, or `-` for standard output.

A document has the `command`, its `errors` and `warnings`, and the command's own results. The shapes are in
docs/reference/command-line.md, and `tests/cli/test_json_results.py` pins them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tocsin.cli.output import write_json
from tocsin.cli.subscription_loading import EntryError
from tocsin.cli.terminal import REPORTED, FaultLog, error_text
from tocsin.formats import Fault
from tocsin.formats.subscription_files import Entry, UnreadableEntryError, position
from tocsin.model.errors import FormError, LanguageError, SubscriptionError

Record = dict[str, Any]


@contextmanager
def reported_errors(json: Path | None, command: str) -> Iterator[None]:
    """Write an error that ends a command as a document, too."""
    try:
        yield
    except REPORTED as error:
        if json is not None:
            write_json(json, {"command": command, "errors": [error_record(error)], "warnings": []})
        raise


def write_result(
    json: Path | None,
    command: str,
    result: Record,
    *,
    errors: Iterable[Record] = (),
    warnings: Iterable[Record] = (),
    log: FaultLog | None = None,
) -> None:
    """Write the document of a command that has a result; `log` has the records that were refused or late."""
    if json is None:
        return
    faults = {} if log is None else {"refused": log.count, "faults": [fault_record(one) for one in log.first]}
    head = {"command": command, "errors": list(errors), "warnings": list(warnings)}
    write_json(json, {**head, **result, **faults})


def error_record(error: BaseException, entry: Entry | None = None) -> Record:
    """Return an error with its place: file, line, column, subscription and hint, as far as they are known."""
    if isinstance(error, EntryError):
        return error_record(error.error, error.entry)
    record: Record = {"message": error_text(error)}
    if isinstance(error, (LanguageError, FormError, SubscriptionError)):
        record["message"] = error.reason
    if entry is not None:
        record |= {"file": entry.source, "line": entry.line, "subscription": entry.id}
    if isinstance(error, UnreadableEntryError):
        record |= {"file": error.source, "line": error.line}
    elif isinstance(error, SubscriptionError) and error.id is not None:
        record["subscription"] = error.id
    elif isinstance(error, FormError):
        record["path"] = error.path
    elif isinstance(error, LanguageError):
        line, column = (error.line, error.column) if entry is None else position(error, entry)
        record |= {"line": line, "column": column}
        if error.expected:
            record["expected"] = list(error.expected)
        if error.suggestion:
            record["hint"] = error.suggestion
    return record


def warning_record(text: str, entry: Entry | None = None) -> Record:
    """Return a warning with its place."""
    place = {} if entry is None else {"file": entry.source, "line": entry.line, "subscription": entry.id}
    return {"message": text, **place}


def fault_record(fault: object) -> Record:
    """Return a refused or late record with its place."""
    if not isinstance(fault, Fault):
        return {"message": str(fault)}
    place = {"file": fault.source, "line": fault.line} if fault.line else {"event": fault.source}
    return {"message": fault.reason, **place}
