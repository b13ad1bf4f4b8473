"""Random Arrow tables: every type that is read by the column, some that are not, and cells that are refused."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from tests.strategies import TEXTS, TIMES
from tocsin.model.timestamps import microseconds

_TICKS = [*(microseconds(time) for time in TIMES), -1_000_000, 1_761_438_600_000_000, 1_761_442_200_000_000]
_LAST = microseconds(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))
_EDGES = [_LAST, _LAST + 1_000_000, -62_135_596_800_000_000, -62_135_596_801_000_000]
_ZONES = [None, "UTC", "+05:00", "-11:30", "Europe/Oslo"]
_PER = {"s": 1_000_000, "ms": 1_000, "us": 1}
_TEXTS = [*TEXTS[-3:], *TEXTS, "abcdefg", "abcdefgh", "abcdefgü", "9999-12-31T23:59:60Z", "\0", "日本"]
_INTEGERS = [0, 2, -2, 2**53, 2**53 + 1, 2**53 + 2, 2**53 + 3, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63)]
_UNSIGNED = [0, 2, 2**53 + 1, 2**63, 2**63 + 1, 2**64 - 1, 2**64 - 2048]
_FLOATS = [0.5, 2.0, -0.0, 1e300, float(2**53), float(2**60), float("inf"), float("-inf")]

# types, and cells of them
_PLAIN: list[tuple[Any, list[Any]]] = [
    (pa.int64(), _INTEGERS),
    (pa.uint64(), _UNSIGNED),
    (pa.float64(), _FLOATS),
    (pa.string(), _TEXTS),
    (pa.bool_(), [True, False]),
    (pa.large_string(), _TEXTS),
    (pa.string_view(), _TEXTS),
    (pa.date32(), [20_454, 0, -1]),
    (pa.int8(), [0, 2, -2]),
    (pa.uint16(), [0, 2, 5]),
    (pa.float32(), [0.5, 2.0, -0.0]),
    (pa.float16(), [np.float16(0.5), np.float16(2)]),
    (pa.null(), [None]),
]
_REFUSED: list[tuple[Any, list[Any]]] = [
    (pa.float64(), [*_FLOATS, float("nan")]),
    (pa.float32(), [0.5, float("nan")]),
    (pa.date32(), [0, 2_932_896, 2_932_897, -719_162, -719_163, 2**31 - 1]),
]
_LEFT_OUT: list[tuple[Any, list[Any]]] = [
    (pa.list_(pa.int8()), [[1], []]),
    (pa.large_list(pa.struct([("x", pa.string())])), [[{"x": "ü"}], [{"x": None}], [None]]),
    (pa.list_(pa.decimal128(5, 1), 1), [[Decimal("0.5")]]),
    (pa.binary(), [b"x", b""]),
]
_DECIMALS: list[tuple[Any, list[Any]]] = [
    (pa.decimal128(5, 1), [Decimal(2), Decimal(5), Decimal("-0.5")]),
    (pa.decimal128(5, 0), [Decimal(2), Decimal(-5)]),
    (pa.decimal128(38, 3), [Decimal("0.001"), Decimal("1e30"), Decimal(-2)]),
    (pa.decimal128(18, 2), [Decimal("90071992547409.93"), Decimal("90071992547409.92"), Decimal("0.1")]),
    (pa.decimal128(38, 30), [Decimal("0.1"), Decimal(2)]),
]
_BY_ROW: list[tuple[Any, list[Any]]] = [
    (pa.timestamp("ns"), [1_000, 1, -1, -(2**63) + 1]),
    (pa.list_(pa.date64()), [[86_400_000]]),
    (pa.date64(), [86_400_000]),
    *_LEFT_OUT,
    *_DECIMALS,
]


@st.composite
def tables(draw: st.DrawFn, *, odd: bool = True) -> Any:
    """A table or record batch, whole, in chunks or a slice; `odd` ones may be refused or read by the row."""
    odd = odd and draw(st.booleans())
    count = draw(st.integers(0, 9))
    columns = draw(_columns(count, odd))
    table = pa.table(columns)
    shape = draw(st.integers(0, 4))
    begin, size = draw(st.integers(0, count)), draw(st.integers(0, count))
    if shape == 1:
        return table.slice(begin, size)
    if shape == 2:
        return pa.concat_tables([table.slice(begin), table.slice(0, begin)])
    if shape >= 3:
        batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
        return batch if shape == 3 else batch.slice(begin, size)
    return table


@st.composite
def _columns(draw: st.DrawFn, count: int, odd: bool) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(["a", "b", "c", "price"]), unique=True, min_size=1, max_size=3))
    columns = {name: draw(_arrays(count, odd)) for name in names}
    if draw(st.booleans()):
        inner = {name: draw(_arrays(count, odd)) for name in ("city", "other")}
        gone = pa.array([byte > 200 for byte in draw(_bytes(count))], pa.bool_())
        columns["data"] = pa.StructArray.from_arrays(list(inner.values()), list(inner), mask=gone)
    if odd and draw(st.integers(0, 9)) == 0:
        columns["data.city"] = draw(_arrays(count, odd))
    return columns


@st.composite
def _arrays(draw: st.DrawFn, count: int, odd: bool) -> Any:
    kind, palette = draw(_leaves(odd))
    cells = [*palette, None] if draw(st.booleans()) else palette
    array = pa.array([cells[byte % len(cells)] for byte in draw(_bytes(count))], kind)
    if draw(st.integers(0, 3)) or pa.types.is_nested(kind) or kind in (pa.null(), pa.float16()):
        return array
    if pa.types.is_string_view(kind):
        return pa.DictionaryArray.from_arrays(array.dictionary_encode().indices, array.unique().drop_null())
    array = array.dictionary_encode()
    if draw(st.booleans()):  # a dictionary may repeat itself, and hold nulls and what no cell uses
        return array
    more = pa.concat_arrays([pa.array(palette[:3], kind), pa.nulls(1, kind), array.dictionary])
    places = [byte % len(more) if byte < 240 else None for byte in draw(_bytes(count))]
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.uint8()), more)


@st.composite
def _leaves(draw: st.DrawFn, odd: bool) -> tuple[Any, list[Any]]:
    if odd and draw(st.integers(0, 2)) == 0:
        kinds = _REFUSED if draw(st.integers(0, 4)) else _BY_ROW
        return kinds[draw(st.integers(0, len(kinds) - 1))]
    choice = draw(st.integers(0, len(_PLAIN) + 2))
    if choice < len(_PLAIN):
        return _PLAIN[choice]
    unit = draw(st.sampled_from(["s", "ms", "us", "ns"]))
    kind = pa.timestamp(unit, draw(st.sampled_from(_ZONES)))
    if unit == "ns":
        return kind, [1_000 * tick for tick in _TICKS]
    ticks = [tick // _PER[unit] for tick in (*_TICKS, *(_EDGES if odd else ()))]
    return kind, [*ticks, *([2**63 - 1, -(2**63) + 1] if odd else ())]


def _bytes(count: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=count, max_size=count)
