"""The ids of subscriptions that come from a template's rows."""

from __future__ import annotations

from string import Formatter
from uuid import uuid4

from tocsin.language import TemplateRows
from tocsin.language.template.columns import Rows, values_of
from tocsin.language.template.template import constant_at
from tocsin.model.errors import TemplateError
from tocsin.subscriptions.options import is_encodable


def row_ids(rule: str | None, table: Rows, rows: TemplateRows) -> tuple[list[str], list[TemplateError]]:
    """Return the ids of the kept rows, and an error for each row without an id or with the id of an earlier row.

    `rule` names the column that holds the ids, or is a pattern such as `"alert-{s}-{row}"`; without it, ids
    are generated.
    """
    if rule is None:
        prefix = uuid4().hex[:16]
        return [f"{prefix}-{row}" for row in rows.rows.tolist()], []
    made = _from_pattern(rule, rows) if "{" in rule or "}" in rule else _from_column(rule, table, rows)
    ids: dict[str, None] = {}
    faulty = []
    for row, name in zip(rows.rows.tolist(), made, strict=True):
        if not name:
            faulty.append(TemplateError("it has no id", row=row))
        elif not is_encodable(name):
            faulty.append(TemplateError(f"its id {name!r} has half of a character", row=row))
        elif name in ids:
            faulty.append(TemplateError(f"another row has made the id `{name}` already", row=row))
        else:
            ids[name] = None
    return list(ids), faulty


def _from_pattern(pattern: str, rows: TemplateRows) -> list[str]:
    """Return an id per row from a pattern with the names of columns in braces."""
    try:
        parts = list(Formatter().parse(pattern))
    except ValueError as fault:
        raise TemplateError(f"the id's pattern `{pattern}` cannot be read: {fault}") from None
    if any(style or conversion for _, _, style, conversion in parts):
        raise TemplateError(f"the id's pattern `{pattern}` may hold plain names only, such as {{row}}")
    names = {name for _, name, _, _ in parts if name is not None}
    unknown = names - set(rows.columns) - {"row"}
    if unknown:
        known = ", ".join(["row", *rows.columns])
        raise TemplateError(f"the id's pattern names `{{{min(unknown)}}}`; known are {known}")
    used = [name for name in rows.columns if name in names]
    return [
        pattern.format(row=row, **{name: constant_at(rows.columns[name], position) for name in used})
        for position, row in enumerate(rows.rows.tolist())
    ]


def _from_column(name: str, table: Rows, rows: TemplateRows) -> list[str]:
    """Return an id per row from the column `name`."""
    try:
        values = values_of(table, name)
    except TemplateError:
        raise TemplateError(
            f"no column `{name}` holds the ids; a pattern has braces, such as `alert-{{row}}`"
        ) from None
    return ["" if values[row] is None else str(values[row]) for row in rows.rows.tolist()]
