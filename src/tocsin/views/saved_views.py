"""The state of views as parts: the rows of tables, and the last reported answers where a later change was not reported."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
from msgspec import Struct

from tocsin.matching import IdArray
from tocsin.model.errors import SavedError
from tocsin.model.plain_values import plain_value, value_of_plain
from tocsin.model.subscription import Answer
from tocsin.structures.archive import Parts
from tocsin.structures.array_types import Int64s
from tocsin.structures.packed_strings import PackedStrings
from tocsin.views.table import StoredTable

FORMAT: Final = 1  # raised whenever an older Tocsin could misread it
_SAVED: Final = "views"


class SavedViews(Struct, frozen=True):
    """The state of views, read and checked."""

    tables: dict[str, StoredTable]
    count: int  # of views
    unreported: dict[int, Answer]  # by the position of the view's number


def write_views(tables: Iterable[StoredTable], unreported: Mapping[int, Answer], numbers: IdArray) -> Parts:
    """Return the state of views; `unreported` is by number, and `numbers` are those of the views."""
    parts = Parts({"saved": _SAVED, "format": FORMAT, "views": len(numbers), "tables": []}, {})
    for position, table in enumerate(tables):
        arrays, rest = table.parts()
        parts.members.update({f"{position}/{name}": array for name, array in arrays.items()})
        values, shapes = rest["values"], [list(one or ()) for one in rest["shapes"]]
        texts = PackedStrings([value if isinstance(value, str) else "" for value in values])
        others = {str(code): value for code, value in enumerate(values) if not isinstance(value, str)}
        parts.members.update({f"{position}/texts": texts.data, f"{position}/text_ends": texts.offsets})
        rest = {"key": rest["key"], "names": rest["names"], "shapes": shapes, "others": others}
        parts.about["tables"].append({"name": table.name, "late": table.late, "rest": rest})
    positions = np.flatnonzero(np.isin(numbers, list(unreported)))
    answers = [_plain_answer(unreported[number]) for number in numbers[positions].tolist()]
    parts.members.update({"unreported": positions, "answers": json.dumps(answers).encode()})
    return parts


def read_views(parts: Parts) -> SavedViews:
    """Return the state of views, or raise `SavedError` if it is none, or is damaged."""
    if parts.about.get("saved") != _SAVED or parts.about.get("format") != FORMAT:
        raise SavedError("this is no state of views, or that of another version of Tocsin")
    try:
        tables = [_read_table(parts, position) for position in range(len(parts.about["tables"]))]
        positions: Int64s = parts.array("unreported")
        count = int(parts.about["views"])
        if len(positions) and not 0 <= int(positions.min()) <= int(positions.max()) < count:
            raise ValueError("an answer is of no view")
        answers = map(_answer_of_plain, json.loads(parts.bytes("answers")))
        unreported = dict(zip(positions.tolist(), answers, strict=True))
    except SavedError:
        raise
    except Exception as fault:  # what readers of damaged contents may raise
        raise SavedError(f"the state of views is damaged: {type(fault).__name__}: {fault}") from fault
    return SavedViews({table.name: table for table in tables}, count, unreported)


def _read_table(parts: Parts, position: int) -> StoredTable:
    about, prefix = parts.about["tables"][position], f"{position}/"
    arrays: dict[str, Any] = {
        name.removeprefix(prefix): one for name, one in parts.members.items() if name.startswith(prefix)
    }
    values: list[Any] = list(PackedStrings.of_parts(arrays.pop("texts"), arrays.pop("text_ends")))
    for code, value in about["rest"]["others"].items():
        values[int(code)] = value
    table = StoredTable.of_parts(str(about["name"]), arrays, about["rest"] | {"values": values})
    table.late = int(about["late"])
    return table


def _plain_answer(answer: Answer) -> Any:
    """Return an answer as JSON has it: a value, or a list of values or of rows."""
    if not isinstance(answer, tuple):
        return plain_value(answer)
    return [
        {"row": {name: plain_value(value) for name, value in item.items()}}
        if isinstance(item, Mapping)
        else plain_value(item)
        for item in answer
    ]


def _answer_of_plain(plain: Any) -> Answer:
    """Return the answer that `_plain_answer` wrote."""
    if not isinstance(plain, list):
        answer: Answer = value_of_plain(plain)
        return answer
    return tuple(
        {name: value_of_plain(value) for name, value in item["row"].items()}
        if isinstance(item, dict) and "row" in item
        else value_of_plain(item)
        for item in plain
    )
