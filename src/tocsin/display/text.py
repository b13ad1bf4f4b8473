"""Short texts: counts with their nouns, texts cut to a width, and one line about an object."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

_SHOWN: Final = 3  # of a sequence
_WIDTH: Final = 60  # of each
_LINE: Final = 240  # of the whole


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: `1 event`, `2 events`, `2 matches`."""
    plural = "es" if noun.endswith(("s", "sh", "ch", "x")) else "s"
    return f"{count:,} {noun}{'' if count == 1 else plural}"


def shortened(text: str, width: int) -> str:
    """Return a text cut to a width, with an ellipsis where it was cut."""
    return text if len(text) <= width else text[: width - 1] + "…"


def first_warning(warnings: Sequence[str]) -> str:
    """Return the number of warnings with the first of them: `1 warning: it can never match`; nothing if there are none."""
    return f"{counted(len(warnings), 'warning')}: {warnings[0]}" if warnings else ""


def first_of(sequence: Sequence[object], shown: int = _SHOWN) -> str:
    """Return the first elements of a sequence, of which no others are read."""
    texts = [shortened(str(sequence[i]), _WIDTH) for i in range(min(shown, len(sequence)))]
    return ", ".join([*texts, *(["…"] if len(sequence) > shown else [])])


def summary(of: object, facts: Iterable[str], *, first: Sequence[object] = ()) -> str:
    """Return one line about an object: its class, facts that are not empty, and the first elements of a sequence.

    >>> summary([], [counted(2_000, "row"), ""], first=["a", "b", "c", "d"])
    '<list: 2,000 rows; a, b, c, …>'
    """
    said = ", ".join(fact for fact in facts if fact)
    shown = first_of(first)
    return f"<{type(of).__name__}: {shortened('; '.join(one for one in (said, shown) if one), _LINE)}>"
