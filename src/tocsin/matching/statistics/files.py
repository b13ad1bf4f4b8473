"""Statistics as a document of what JSON can say: every value is text, beside its kind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from tocsin.matching.statistics.distribution import Distribution
from tocsin.matching.statistics.estimates import AttributeStatistics
from tocsin.matching.statistics.joint import Group, Joint
from tocsin.matching.statistics.texts import combination_of, combination_text, text_of, value_of
from tocsin.model.errors import SavedStatisticsError
from tocsin.model.values import Kind
from tocsin.model.version import VERSION

FORMAT: Final = 1  # raised whenever an older Tocsin could misread what this one writes
_SAVED: Final = "tocsin statistics"


class Contents(NamedTuple):
    """What statistics hold."""

    events: int
    attributes: Mapping[str, AttributeStatistics]
    groups: Mapping[Group, Joint]
    refused: int
    groups_left_out: int


class _Heading(Struct, frozen=True):
    """What every version's document says."""

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


def encode(contents: Contents) -> bytes:
    """Return the document as JSON."""
    document = _Document(
        saved=_SAVED,
        format=FORMAT,
        tocsin=VERSION,
        events=contents.events,
        refused=contents.refused,
        groups_left_out=contents.groups_left_out,
        attributes={
            path: _Attribute(
                one.count, {kind: _written(values) for kind, values in one.kinds.items()}, one.texts
            )
            for path, one in contents.attributes.items()
        },
        groups=[_Group(list(group), _written_joint(one)) for group, one in contents.groups.items()],
    )
    return msgspec.json.encode(document) + b"\n"


def encode_distribution(values: Distribution) -> bytes:
    """Return one attribute's values of one kind as JSON."""
    return msgspec.json.encode(_written(values))


def decode_distribution(kind: Kind, data: str | bytes) -> Distribution:
    """Return what `encode_distribution` wrote."""
    return _read(kind, msgspec.json.decode(data, type=_Distribution))


def encode_joint(one: Joint) -> bytes:
    """Return one group's combinations as JSON."""
    return msgspec.json.encode(_written_joint(one))


def decode_joint(data: str | bytes) -> Joint:
    """Return what `encode_joint` wrote."""
    return _read_joint(msgspec.json.decode(data, type=_Joint))


def write_file(contents: Contents, path: Path) -> None:
    """Write a document to a file, which is replaced in one step."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_bytes(encode(contents))
    fresh.replace(path)


def read_file(path: Path) -> Contents:
    """Return what a file holds, or raise `SavedStatisticsError` if it holds no statistics that can be read."""
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
    """Return what a document holds, or raise `SavedStatisticsError` if it is another's or a newer one's."""
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
        raise SavedStatisticsError(f"they cannot be read: {fault}; compute them anew") from None


def _contents(document: _Document) -> Contents:
    return Contents(
        document.events,
        {
            path: AttributeStatistics(
                one.count, {kind: _read(kind, values) for kind, values in one.kinds.items()}, one.texts
            )
            for path, one in document.attributes.items()
        },
        {tuple(one.attributes): _read_joint(one.combinations) for one in document.groups},
        document.refused,
        document.groups_left_out,
    )


def _written(values: Distribution) -> _Distribution:
    return _Distribution(
        values.count,
        values.distinct,
        [(text_of(value), count) for value, count in values.frequent.items()],
        [text_of(bound) for bound in values.bounds],
        list(values.depths),
    )


def _read(kind: Kind, values: _Distribution) -> Distribution:
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
