"""Statistics as a JSON document: every value is text, beside its kind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from tocsin.matching.statistics.distribution import Distribution
from tocsin.matching.statistics.estimates import AttributeStatistics
from tocsin.matching.statistics.joint import Group, Joint
from tocsin.matching.statistics.texts import combination_of, combination_text, text_of, value_of
from tocsin.model.errors import SavedStatisticsError
from tocsin.model.values import Kind
from tocsin.model.version import VERSION
from tocsin.structures.whole_files import replacing

if TYPE_CHECKING:
    from tocsin.matching.statistics.statistics import Statistics

FORMAT: Final = 1  # raised whenever an older Tocsin could misread a document
_SAVED: Final = "tocsin statistics"

Contents: TypeAlias = tuple[int, Mapping[str, AttributeStatistics], Mapping[Group, Joint], int, int]
"""The fields of `Statistics`, in order."""


class _Heading(Struct, frozen=True):
    """The part that the documents of all versions share."""

    saved: str
    format: int
    tocsin: str


class _Distribution(Struct, frozen=True):
    count: int
    distinct: int
    frequent: list[tuple[str, int]]
    bounds: list[str]
    depths: list[int]


class _Attribute(Struct, frozen=True):
    count: int
    kinds: dict[Kind, _Distribution]
    texts: int


class _Joint(Struct, frozen=True):
    rest: int
    distinct: int
    frequent: list[tuple[str, int]]


class _Group(Struct, frozen=True):
    attributes: list[str]
    combinations: _Joint


class _Document(_Heading, frozen=True, kw_only=True):
    events: int
    refused: int
    groups_left_out: int
    attributes: dict[str, _Attribute]
    groups: list[_Group]


def encode(statistics: Statistics) -> bytes:
    """Return the document of statistics as JSON."""
    document = _Document(
        saved=_SAVED,
        format=FORMAT,
        tocsin=VERSION,
        events=statistics.events,
        refused=statistics.refused,
        groups_left_out=statistics.groups_left_out,
        attributes={
            path: _Attribute(
                one.count, {kind: _written(values) for kind, values in one.kinds.items()}, one.texts
            )
            for path, one in statistics.attributes.items()
        },
        groups=[_Group(list(group), _written_joint(one)) for group, one in statistics.groups.items()],
    )
    return msgspec.json.encode(document) + b"\n"


def encode_distribution(values: Distribution) -> bytes:
    """Return one attribute's values of one kind as JSON."""
    return msgspec.json.encode(_written(values))


def decode_distribution(kind: Kind, data: str | bytes) -> Distribution:
    """Return the distribution that `encode_distribution` wrote."""
    return _read(kind, msgspec.json.decode(data, type=_Distribution))


def encode_joint(one: Joint) -> bytes:
    """Return one group's combinations as JSON."""
    return msgspec.json.encode(_written_joint(one))


def decode_joint(data: str | bytes) -> Joint:
    """Return the combinations that `encode_joint` wrote."""
    return _read_joint(msgspec.json.decode(data, type=_Joint))


def write_file(statistics: Statistics, path: Path) -> None:
    """Write a document to a file, replacing it atomically."""
    with replacing(path) as file:
        file.write(encode(statistics))


def read_file(path: Path) -> Contents:
    """Return the contents of a file, or raise `SavedStatisticsError` if it has no readable statistics."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise SavedStatisticsError("there is no such file; `Statistics.save` writes one", str(path)) from None
    except IsADirectoryError:
        raise SavedStatisticsError("this is a folder; statistics are saved to a file", str(path)) from None
    try:
        return read_document(msgspec.json.decode(data))
    except msgspec.MsgspecError as fault:
        raise SavedStatisticsError(f"these are no statistics: {fault}", str(path)) from None
    except SavedStatisticsError as fault:
        raise SavedStatisticsError(fault.reason, str(path)) from None


def read_document(document: Any) -> Contents:
    """Return the contents of a document, or raise `SavedStatisticsError` if it is of another kind or a newer format."""
    try:
        heading = msgspec.convert(document, _Heading)
    except msgspec.ValidationError as fault:
        raise SavedStatisticsError(f"these are no statistics: {fault}") from None
    if heading.saved != _SAVED:
        raise SavedStatisticsError(f"these are no statistics, but a `{heading.saved}`")
    if heading.format > FORMAT:
        raise SavedStatisticsError(
            f"they were saved by Tocsin {heading.tocsin} in format {heading.format}, and Tocsin {VERSION} "
            f"reads formats up to {FORMAT}; update Tocsin, or compute them with this version"
        )
    try:
        return _contents(msgspec.convert(document, _Document))
    except (msgspec.ValidationError, ValueError) as fault:
        raise SavedStatisticsError(f"they cannot be read: {fault}; compute them again") from None


def _contents(document: _Document) -> Contents:
    """Return the statistics that a document contains."""
    attributes = {
        path: AttributeStatistics(
            one.count, {kind: _read(kind, values) for kind, values in one.kinds.items()}, one.texts
        )
        for path, one in document.attributes.items()
    }
    groups = {tuple(one.attributes): _read_joint(one.combinations) for one in document.groups}
    return document.events, attributes, groups, document.refused, document.groups_left_out


def _written(values: Distribution) -> _Distribution:
    """Return a distribution as it is written to a file."""
    return _Distribution(
        values.count,
        values.distinct,
        [(text_of(value), count) for value, count in values.frequent.items()],
        [text_of(bound) for bound in values.bounds],
        list(values.depths),
    )


def _read(kind: Kind, values: _Distribution) -> Distribution:
    """Return the distribution read from a file."""
    if len(values.bounds) != (len(values.depths) + 1 if values.depths else 0):
        raise ValueError(f"{len(values.depths)} bins have {len(values.bounds)} bounds")
    return Distribution(
        kind,
        values.count,
        values.distinct,
        {value_of(kind, text): count for text, count in values.frequent},
        tuple(value_of(kind, text) for text in values.bounds),
        tuple(values.depths),
    )


def _written_joint(one: Joint) -> _Joint:
    frequent = [
        (combination_text([(part.kind, part.value) for part in combination]), count)
        for combination, count in one.frequent.items()
    ]
    return _Joint(one.rest, one.distinct, frequent)


def _read_joint(one: _Joint) -> Joint:
    return Joint(one.rest, one.distinct, {combination_of(text): count for text, count in one.frequent})
