"""Arrow tables whose times have no zone, read as times of a zone that the user names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.formats.arrow_cells import plain_values, validity_bits
from tocsin.formats.arrow_leaves import with_leaves

_PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000}
_DAY: Final = 86_400  # seconds
_BIN: Final = 900  # seconds, most of which have one offset from UTC
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - without a zone, as what is read


def in_zone(table: Any, zone: tzinfo) -> Any:
    """Return a table or record batch in which times without a zone, and dates, are those of `zone`: they become times in UTC.

    The result is that of reading each as a datetime: of two moments with one name the first is taken, and digits beyond
    the microsecond are cut off. Times outside the years 1 to 9999 stay; a table with nothing to change is returned itself.
    """
    return table if zone is UTC else with_leaves(table, partial(_in_utc, zone), _is_local)


def _is_local(kind: Any) -> bool:
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_date32(inner) or (pa.types.is_timestamp(inner) and inner.tz is None))


def _in_utc(zone: tzinfo, array: Any) -> Any:
    """Return times of a zone as times in UTC."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    values, valid = plain_values(array)
    unit, times = "s", values.astype(np.int64)
    if pa.types.is_date32(array.type):
        times = times * _DAY
    elif array.type.unit == "ns":
        unit, times = "us", times // 1_000
    else:
        unit = array.type.unit
    utc = times - _offsets(times // _PER_SECOND[unit], zone) * _PER_SECOND[unit]
    bits = None if valid is None else validity_bits(valid)
    return pa.Array.from_buffers(pa.timestamp(unit, "UTC"), len(array), [bits, pa.py_buffer(utc)])


def _offsets(seconds: NDArray[np.int64], zone: tzinfo) -> NDArray[np.int64]:
    """Return the seconds by which the zone's clock is ahead of UTC when it shows so many seconds since 1970."""
    bins, which = np.unique(seconds // _BIN, return_inverse=True)
    begins = [_offset(one * _BIN, zone) for one in bins.tolist()]
    found = np.array(begins, dtype=np.int64)[which]
    ends = [_offset(one * _BIN + _BIN - 1, zone) for one in bins.tolist()]
    changing = [i for i, (begin, end) in enumerate(zip(begins, ends, strict=True)) if begin != end]
    for row in np.flatnonzero(np.isin(which, changing)).tolist():
        found[row] = _offset(seconds.item(row), zone)
    return found


def _offset(seconds: int, zone: tzinfo) -> int:
    """Return the offset at one moment; 0 outside the calendar, where the row is refused anyway."""
    try:
        offset = (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=zone).utcoffset()
    except OverflowError:
        return 0
    return 0 if offset is None else round(offset.total_seconds())
