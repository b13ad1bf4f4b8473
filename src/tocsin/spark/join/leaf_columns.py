"""Leaf columns of a DataFrame as attributes in Spark SQL: how they compare, and which cells make a row invalid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct
from pyspark.sql import Column, functions, types

from tocsin.model.errors import SparkError
from tocsin.model.values import Kind

_EXACT: Final = 2**53  # integers up to here are doubles
_DIGITS: Final = 18  # decimal digits that every 64-bit integer has room for
_DAY: Final = 86_400_000_000  # microseconds
_FIRST: Final = -62_135_596_800_000_000  # of the year 1,
_LAST: Final = 253_402_300_799_999_999  # of the year 9999: what Python's datetimes reach
_FLOATS: Final = (types.FloatType, types.DoubleType)
_TIMES: Final = (types.TimestampType, types.TimestampNTZType, types.DateType)


class Leaf(Struct, frozen=True):
    """A column of values, of one kind."""

    path: str
    kind: Kind
    column: Column
    type: types.DataType

    @property
    def key(self) -> Column:
        """Return the hash key: equal values, or at least values that may equal the same constant, have equal keys."""
        if self.kind is Kind.NUMBER:
            return self.bounds[0] + functions.lit(0.0)  # turns -0.0 into 0.0
        return self.value

    @property
    def value(self) -> Column:
        """Return the value of a string, a boolean or a timestamp, as it is compared; 0 for an opaque one."""
        if self.kind is Kind.STRING:
            return self.column.cast("string")
        if self.kind is Kind.BOOLEAN:
            return self.column.cast("bigint")
        if self.kind is Kind.OPAQUE:  # only whether it is there is asked
            return functions.when(self.column.isNotNull(), functions.lit(0).cast("bigint"))
        return _microseconds(self.column, self.type)

    @property
    def bounds(self) -> tuple[Column, Column]:
        """Return the nearest doubles not above and not below a number; both are the number itself if it is a double."""
        if isinstance(self.type, types.LongType):
            return _bounds(self.column)
        if isinstance(self.type, types.DecimalType):
            return _decimal_bounds(self.column, self.type, self.path)
        number = self.column.cast("double")
        return number, number

    @property
    def is_exact(self) -> bool:
        """Return whether each of its numbers is a double."""
        return not isinstance(self.type, (types.LongType, types.DecimalType))


def leaves_of(columns: list[tuple[str, Column, types.DataType]]) -> dict[str, Leaf]:
    """Return the leaves by path. Raise `SparkError` if two have one path."""
    found: dict[str, Leaf] = {}
    for leaf in _leaves("", columns):
        if leaf.path in found:
            raise SparkError(
                f"two columns of the events are `{leaf.path}`, one of them inside a struct; rename one of them"
            )
        found[leaf.path] = leaf
    return found


def any_of(faults: Iterable[Column | None]) -> Column | None:
    """Return whether some fault is true, or None if there is none; the expression stays flat for many faults."""
    known = [functions.coalesce(fault, functions.lit(False)) for fault in faults if fault is not None]
    return functions.array_contains(functions.array(*known), functions.lit(True)) if known else None


def fields_of(column: Column, type_: types.StructType) -> list[tuple[str, Column, types.DataType]]:
    """Return the fields of a struct, each with its name and type."""
    names = [field.name.lower() for field in type_.fields]
    called = [field.name for field in type_.fields]
    if len(set(names)) < len(names):  # Spark may take two of them for one
        called = [f"f{place}" for place in range(len(names))]
        places = zip(called, type_.fields, strict=True)
        renamed = [types.StructField(name, field.dataType) for name, field in places]
        column = column.cast(types.StructType(renamed))
    fields = zip(called, type_.fields, strict=True)
    return [(field.name, column.getField(name), field.dataType) for name, field in fields]


def fault_of(column: Column, type_: types.DataType) -> Column | None:
    """Return whether a cell makes its row invalid, or None if no cell of the type does; null means no."""
    if isinstance(type_, types.StringType):
        return ~functions.is_valid_utf8(column)
    if isinstance(type_, _TIMES):
        return column.isNotNull() & _microseconds(column, type_).isNull()
    if isinstance(type_, types.StructType):
        return any_of(fault_of(cell, inner) for _, cell, inner in fields_of(column, type_))
    return None


def ticks_of(column: Column, type_: types.DataType) -> Column:
    """Return a time in ticks: microseconds, or an integer as it is; null if it is out of range."""
    if isinstance(type_, types.TimestampType):
        return functions.unix_micros(column)
    if isinstance(type_, types.TimestampNTZType):
        return _local_microseconds(column)
    if isinstance(type_, types.DateType):
        return functions.try_multiply(functions.unix_date(column).cast("bigint"), functions.lit(_DAY))
    return column.cast("bigint")


def _leaves(prefix: str, columns: list[tuple[str, Column, types.DataType]]) -> Iterator[Leaf]:
    for name, column, type_ in columns:
        if isinstance(type_, types.StructType):
            yield from _leaves(f"{prefix}{name}.", fields_of(column, type_))
        elif (kind := _kind(type_)) is not None:
            if isinstance(type_, _FLOATS):  # NaN is absence
                column = functions.when(~functions.isnan(column), column)  # noqa: PLW2901
            yield Leaf(f"{prefix}{name}", kind, column, type_)


def _kind(type_: types.DataType) -> Kind | None:
    """Return the kind of value that a Spark type holds; None if it holds nothing."""
    if isinstance(type_, types.StringType):
        return Kind.STRING
    if isinstance(type_, types.BooleanType):
        return Kind.BOOLEAN
    if isinstance(type_, _TIMES):
        return Kind.TIMESTAMP
    if isinstance(type_, types.NumericType):
        return Kind.NUMBER
    return None if isinstance(type_, types.NullType) else Kind.OPAQUE


def _microseconds(column: Column, type_: types.DataType) -> Column:
    """Return a timestamp, or a day's first moment, in microseconds; null beyond what Python's datetimes reach."""
    ticks = ticks_of(column, type_)
    return functions.when(ticks.between(_FIRST, _LAST), ticks)


def _local_microseconds(column: Column) -> Column:
    """Return a timestamp without a zone in microseconds, taken to be UTC whatever the session's zone."""
    days = functions.unix_date(column.cast("date")).cast("bigint")
    seconds = functions.hour(column) * 3600 + functions.minute(column) * 60
    within = (functions.date_part(functions.lit("SECOND"), column) * 1_000_000).cast("bigint")
    return functions.try_add(
        functions.try_multiply(days, functions.lit(_DAY)), seconds.cast("bigint") * 1_000_000 + within
    )


def _bounds(column: Column) -> tuple[Column, Column]:
    """Return the doubles next below and above a 64-bit integer: its 53 highest bits, and the next such number."""
    is_exact = column.between(-_EXACT, _EXACT)
    size = functions.length(
        functions.bin(functions.when(column < 0, functions.bitwise_not(column)).otherwise(column))
    )
    step = functions.greatest(size - 53, functions.lit(0))
    low = functions.call_function("shiftleft", functions.call_function("shiftright", column, step), step)
    number = column.cast("double")
    below = low.cast("double")
    above = functions.when(low == column, below).otherwise(below + functions.pow(functions.lit(2.0), step))
    exact = functions.when(is_exact, number)
    return exact.otherwise(below), exact.otherwise(above)


def _decimal_bounds(column: Column, type_: types.DecimalType, path: str) -> tuple[Column, Column]:
    """Return the doubles next below and above a whole decimal; any other decimal is its nearest double."""
    if type_.precision - type_.scale > _DIGITS:
        raise SparkError(
            f"the plan `join` compares decimals of up to {_DIGITS} digits before the point; `{path}` is "
            f"{type_.simpleString()}: cast it to double or to a smaller decimal, or leave `plan` out"
        )
    whole = column.cast("bigint")
    below, above = _bounds(whole)
    is_whole = column == whole.cast(type_)  # not a wider type, which would have fewer digits behind the point
    number = column.cast("double")
    lower, upper = (functions.when(is_whole, bound).otherwise(number) for bound in (below, above))
    return lower, upper
