"""Files that any system can read: subscriptions and events as 32-bit integers, little-endian.

SUBS is N, attributes, lowest, highest, then for each subscription k and k times (attribute, op, low, high); EVENTS
is M, attributes, lowest, highest, then for each event k and k times (attribute, value). The operators are 0 `=`,
1 `<=`, 2 `>=` and 3 `between`, and a value satisfies a predicate iff it lies from low to high. A subscription's id
is its position in the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.matching.encoding.codes import Op
from tocsin.model.errors import TocsinError
from tocsin.replay.numbered import NumberedEvents, NumberedSubscriptions

_WORD: Final = np.dtype("<i4")
_HEADER: Final = 4  # words
_PREDICATE: Final = 4
_PAIR: Final = 2
_OPS: Final = np.array([Op.EQ, Op.LE, Op.GE, Op.BETWEEN], dtype=np.int8)


class Header(Struct, frozen=True):
    """The header of a file."""

    count: int
    attributes: int
    lowest: int
    highest: int


def read_header(path: Path) -> Header:
    """Return a file's header, or raise `TocsinError` if it is no interchange file."""
    with path.open("rb") as file:
        words = np.frombuffer(file.read(_HEADER * _WORD.itemsize), dtype=np.uint8)
    size = path.stat().st_size
    if size % _WORD.itemsize or len(words) < _HEADER * _WORD.itemsize:
        raise _fault(path, f"{size:,} bytes are no header and whole 32-bit integers after it")
    header = Header(*words.view(_WORD).tolist())
    if header.count < 0 or header.attributes < 1 or header.lowest > header.highest:
        raise _fault(
            path,
            f"it begins with {header.count}, {header.attributes}, {header.lowest}, {header.highest}, which are"
            " no count, number of attributes, lowest and highest value",
        )
    return header


def read_subscriptions(path: Path, batch: int = 1 << 17) -> Iterator[NumberedSubscriptions]:
    """Yield a SUBS file's subscriptions in batches; raise `TocsinError` where the file is malformed."""
    header = read_header(path)
    for first, offsets, cells in _rows(path, header, _PREDICATE, "subscription", batch):
        _check_attributes(path, header, cells[:, 0], "predicate")
        _check_bounds(path, header, cells)
        ids = np.arange(first, first + len(offsets) - 1, dtype=np.int64)
        attributes, ops, lows, highs = np.ascontiguousarray(cells.T)
        yield NumberedSubscriptions(ids, offsets, attributes, _OPS[ops], lows, highs)


def read_events(path: Path) -> NumberedEvents:
    """Return an EVENTS file's events; raise `TocsinError` where the file is malformed."""
    header = read_header(path)
    none = np.empty(0, dtype=np.int32)
    events = NumberedEvents(np.zeros(1, dtype=np.int64), none, none)
    for _, offsets, cells in _rows(path, header, _PAIR, "event", max(header.count, 1)):
        events = NumberedEvents(offsets, *np.ascontiguousarray(cells.T))
    _check_attributes(path, header, events.attributes, "pair")
    outside = (events.values < header.lowest) | (events.values > header.highest)
    if outside.any():
        value = int(events.values[outside][0])
        raise _fault(path, f"a value is {value}; the file says {header.lowest} to {header.highest}")
    _check_once(path, header, events)
    return events


def _rows(
    path: Path, header: Header, width: int, what: str, batch: int
) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int32]]]:
    """Yield, in batches, the first row's number, where each row's cells begin, and the cells.

    A cell is `width` integers. Only the number of cells that begins each row is looked at one by one.
    """
    words = np.asarray(np.memmap(path, dtype=_WORD, mode="r"), dtype=np.int32)
    offset = _HEADER
    for first in range(0, header.count, batch):
        last = min(first + batch, header.count)
        starts = _starts(path, words, offset, last - first, (what, first, width))
        offset = int(starts[-1])
        is_cell = np.ones(offset - int(starts[0]), dtype=np.bool_)
        is_cell[starts[:-1] - starts[0]] = False
        cells = words[starts[0] : offset][is_cell].reshape(-1, width)
        yield first, (starts - starts[0] - np.arange(len(starts))) // width, cells
    if offset < len(words):
        raise _fault(
            path, f"{len(words) - offset:,} more integers follow the last of {header.count:,} {what}s"
        )


def _starts(
    path: Path, words: NDArray[np.int32], offset: int, count: int, rows: tuple[str, int, int]
) -> NDArray[np.int64]:
    """Return where each of the next `count` rows begins, and where the last one ends."""
    what, first, width = rows
    view = words.data
    starts = [offset]
    try:
        for _ in range(count):
            cells = view[offset]
            if cells < 0:
                raise _fault(path, f"{what} {first + len(starts) - 1:,} says that it has {cells:,} cells")
            offset += 1 + width * cells
            starts.append(offset)
    except IndexError:
        offset = len(words) + 1
    if offset > len(words):
        number = first + sum(start <= len(words) for start in starts) - 1
        raise _fault(path, f"it ends within {what} {number:,}, after {len(words):,} integers")
    return np.array(starts, dtype=np.int64)


def _check_attributes(path: Path, header: Header, attributes: NDArray[np.int32], what: str) -> None:
    outside = (attributes < 0) | (attributes >= header.attributes)
    if outside.any():
        number = int(attributes[outside][0])
        raise _fault(path, f"a {what} is on attribute {number}; the file says 0 to {header.attributes - 1}")


def _check_bounds(path: Path, header: Header, cells: NDArray[np.int32]) -> None:
    """Raise `TocsinError` for an unknown operator, or for bounds that contradict it."""
    _, ops, lows, highs = cells.T
    faults = (
        ((ops < 0) | (ops >= len(_OPS)), "which is no operator"),
        ((ops == 0) & (lows != highs), "but `=` has one constant"),
        ((ops == 1) & (lows != header.lowest), f"but `<=` begins at the lowest value, {header.lowest}"),
        ((ops == 2) & (highs != header.highest), f"but `>=` ends at the highest value, {header.highest}"),
    )
    for is_wrong, reason in faults:
        if is_wrong.any():
            op, low, high = cells[int(np.argmax(is_wrong)), 1:].tolist()
            raise _fault(path, f"a predicate has the operator {op} from {low} to {high}, {reason}")


def _check_once(path: Path, header: Header, events: NumberedEvents) -> None:
    owners = np.repeat(np.arange(len(events.offsets) - 1), np.diff(events.offsets))
    pairs, counts = np.unique(owners * header.attributes + events.attributes, return_counts=True)
    if len(pairs) < len(owners):
        event, attribute = divmod(int(pairs[np.argmax(counts > 1)]), header.attributes)
        raise _fault(path, f"event {event:,} has attribute {attribute} twice")


def _fault(path: Path, reason: str) -> TocsinError:
    return TocsinError(f"{path}: {reason}")
