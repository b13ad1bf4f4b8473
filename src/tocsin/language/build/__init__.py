"""Queries built in Python, from the same operators as the text."""

from tocsin.language.build.expressions import (
    Clause,
    Expression,
    all_of,
    any_of,
    attr,
    avg,
    count,
    duration,
    maximum,
    minimum,
    param,
    span,
    total,
)
from tocsin.language.build.queries import StreamBuilder, TableBuilder, stream, table

__all__ = [
    "Clause",
    "Expression",
    "StreamBuilder",
    "TableBuilder",
    "all_of",
    "any_of",
    "attr",
    "avg",
    "count",
    "duration",
    "maximum",
    "minimum",
    "param",
    "span",
    "stream",
    "table",
    "total",
]
