"""Values as text, one text for each value of a kind, for shuffling and saving statistics."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from tocsin.matching.encoding.codes import EXACT, is_exact
from tocsin.model.terms import Literal
from tocsin.model.timestamps import format_rfc3339, parse_timestamp
from tocsin.model.values import Kind, Opaque, Value

_LETTERS: Final = {Kind.NUMBER: "n", Kind.STRING: "s", Kind.BOOLEAN: "b", Kind.TIMESTAMP: "t"}
_KINDS: Final = {letter: kind for kind, letter in _LETTERS.items()}


def text_of(value: Value) -> str:
    """Return the text of a value: two values of one kind are equal iff their texts are.

    >>> text_of(1), text_of(1.0), text_of(2**53 + 1), text_of(True)
    ('1.0', '1.0', '9007199254740993', 'true')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return format_rfc3339(value)
    if isinstance(value, Opaque):
        return value.type
    return repr(float(value) + 0.0) if is_exact(value) else str(value)


def value_of(kind: Kind, text: str) -> Value:
    """Return the value with this text; raise `ValueError` if no value of this kind has it.

    >>> value_of(Kind.NUMBER, "1.0"), value_of(Kind.NUMBER, "9007199254740993"), value_of(Kind.BOOLEAN, "true")
    (1, 9007199254740993, True)
    """
    if kind is Kind.STRING:
        return text
    if kind is Kind.NUMBER:
        return _number(text)
    if kind is Kind.TIMESTAMP:
        time = parse_timestamp(text)
        if time is None:
            raise ValueError(f"`{text}` is no timestamp")
        return time
    if text not in ("true", "false"):
        raise ValueError(f"`{text}` is neither true nor false")
    return text == "true"


def combination_text(values: Sequence[tuple[Kind, Value]]) -> str:
    """Return the text of several values, each with its kind: equal iff kinds and values are."""
    return msgspec.json.encode([_LETTERS[kind] + text_of(value) for kind, value in values]).decode()


def combination_of(text: str) -> tuple[Literal, ...]:
    """Return the constants of a combination with this text; raise `ValueError` if there is none.

    >>> [constant.value for constant in combination_of('["n1.0","sOslo"]')]
    [1, 'Oslo']
    """
    try:
        parts = msgspec.json.decode(text, type=list[str])
    except msgspec.MsgspecError as fault:
        raise ValueError(str(fault)) from None
    found = []
    for part in parts:
        kind = _KINDS.get(part[:1])
        if kind is None:
            raise ValueError(f"`{part}` does not begin with the letter of a kind")
        found.append(Literal(value_of(kind, part[1:]), kind))
    return tuple(found)


def _number(text: str) -> int | float:
    if text.removeprefix("-").isdecimal():
        return int(text)
    number = float(text)
    if number != number:  # noqa: PLR0124 - NaN alone differs from itself
        raise ValueError("NaN is not a number that can be compared")
    return int(number) if abs(number) <= EXACT and number.is_integer() else number
