"""Matchers in folders: saved as files of arrays, opened by mapping them into memory.

A folder holds `manifest.json` and the folder of parts that it names: a `.npy` file for each array, a `.json` file
for each list of words. Parts are never written to again. Saving writes new parts beside the old ones and then
replaces the manifest, which is one step: a reader finds either the old matcher or the new one, whatever happens
meanwhile. Changes to an opened matcher stay in memory until it is saved again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager
from math import prod
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.matcher import Matcher
from tocsin.matching.registry import create_matcher, name_of
from tocsin.model.errors import MatcherError, SavedMatcherError
from tocsin.model.version import VERSION
from tocsin.structures.whole_files import replacing, sync_file, sync_folder

Nested = TypeVar("Nested", bound=tuple[Any, ...] | NDArray[Any])

FORMAT: Final = 5  # raised whenever arrays change; folders of other formats are refused
_MANIFEST: Final = "manifest.json"
_NEW_MANIFEST: Final = "manifest.json.new"  # which versions before this one left if they were killed
_PARTS: Final = "parts-"
_MAPPED: Final = 1 << 16  # a smaller file is read at once: each map keeps a file open
_INTERNED: Final = ("names", "symbols", "predicates", "patterns")  # tables of a vocabulary
_TESTS: Final = "vocabulary.tests"
_REMEDY: Final = "save the matcher again"


class MatcherParts(Struct, frozen=True):
    """The parts of a matcher.

    `options` are the keywords that create an empty one like it. `documents` are lists of JSON values.
    `vocabulary` holds the matcher's own predicates alone, even if several matchers share one.
    """

    options: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]
    documents: Mapping[str, list[Any]] = {}
    vocabulary: Vocabulary | None = None


@runtime_checkable
class Savable(Protocol):
    """A matcher that can be saved. One with a vocabulary takes it as its keyword `vocabulary`."""

    def parts(self) -> AbstractContextManager[MatcherParts]:
        """Return the matcher's parts; nothing changes them until the context is left."""

    def restore(self, parts: MatcherParts) -> None:
        """Restore a matcher from its parts; this one must be empty and have the same options.

        The arrays may be written to. Raise `SavedMatcherError` if this matcher has other ones.
        """


class _Array(Struct, frozen=True):
    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{np.dtype(self.dtype)}{list(self.shape)}"


class _Words(Struct, frozen=True):
    """The counts of a vocabulary besides the uses of its words."""

    ordered_texts: int
    timed: dict[int, int]


class _Heading(Struct, frozen=True):
    """The fields that the manifest of every version has."""

    saved: str
    format: int
    tocsin: str


class _Manifest(_Heading, frozen=True, kw_only=True):
    matcher: str
    options: dict[str, Any]
    subscriptions: int
    conjunctions: int
    predicates: int
    vocabulary: _Words | None
    parts: str
    arrays: dict[str, _Array]
    documents: list[str]


def save_matcher(matcher: Matcher, folder: str | os.PathLike[str]) -> None:
    """Save a matcher to a folder: a new one, an empty one, or one that holds a saved matcher already.

    Other threads wait with their calls to the matcher until it is written. Only one at a time may save to a
    folder; others may open it meanwhile.
    """
    name = name_of(matcher)
    if not isinstance(matcher, Savable):
        raise MatcherError(f"matcher `{name}` cannot be saved: it offers no `parts` and `restore`")
    home = Path(folder)
    _refuse_foreign(home)
    home.mkdir(parents=True, exist_ok=True)
    place = home / f"{_PARTS}{token_hex(4)}"
    place.mkdir()
    try:
        with matcher.parts() as parts:
            manifest = _write_parts(matcher, name, parts, place)
        sync_folder(place)
        with replacing(home / _MANIFEST) as file:
            file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    except BaseException:
        if not _is_named(home, place):  # else the matcher is saved, and only what follows was broken off
            shutil.rmtree(place, ignore_errors=True)
        raise
    for old in home.glob(f"{_PARTS}*"):  # the parts of the matcher before, or of a save that never ended
        if old != place:
            shutil.rmtree(old, ignore_errors=True)
    for old in (home / _NEW_MANIFEST, *home.glob(f".{_MANIFEST}.*")):
        old.unlink(missing_ok=True)


def open_matcher(folder: str | os.PathLike[str], *, vocabulary: Vocabulary | None = None) -> Matcher:
    """Return the matcher that was saved to a folder, to be used and changed like any other.

    Arrays are mapped, not read, so that opening costs little however much there is; the folder's files never
    change with it. Matchers that shared a vocabulary when they were saved share one again if the second is
    opened with the `vocabulary` of the first.
    """
    home = Path(folder)
    manifest, arrays, documents = _read_parts(home)
    words = None
    if manifest.vocabulary is not None:
        words = _read_vocabulary(manifest.vocabulary, arrays, documents, home)
        if vocabulary is not None and not vocabulary.agrees_with(words):
            raise SavedMatcherError(
                "the vocabulary it is to share gives some codes to other words than the saved one does; "
                "open it without `vocabulary`",
                str(home),
            )
    shared = {} if words is None else {"vocabulary": words if vocabulary is None else vocabulary}
    matcher = create_matcher(manifest.matcher, **manifest.options, **shared)
    if not isinstance(matcher, Savable):
        raise MatcherError(f"matcher `{manifest.matcher}` cannot be opened: it offers no `restore`")
    try:
        matcher.restore(MatcherParts(manifest.options, arrays, documents, words))
    except SavedMatcherError as fault:
        raise SavedMatcherError(fault.reason, str(home)) from None
    if words is not None and vocabulary is not None:
        vocabulary.merge(words)
    return matcher


# writing


def _refuse_foreign(home: Path) -> None:
    """Raise `SavedMatcherError` if a folder has anything but a saved matcher in it."""
    if not home.exists():
        return
    if not home.is_dir():
        raise SavedMatcherError("this is a file; a matcher is saved to a folder", str(home))
    if (home / _MANIFEST).exists():
        _read_heading(home)
    elif any(
        not found.name.startswith((_PARTS, _NEW_MANIFEST, f".{_MANIFEST}.")) for found in home.iterdir()
    ):
        raise SavedMatcherError(
            "this folder is neither empty nor a saved matcher, and is left as it is; save to another",
            str(home),
        )


def _write_parts(matcher: Matcher, name: str, parts: MatcherParts, place: Path) -> _Manifest:
    """Write the arrays and documents of a matcher into a folder, and return their manifest."""
    arrays, documents, words = dict(parts.arrays), dict(parts.documents), None
    if parts.vocabulary is not None:
        words = _Words(parts.vocabulary.ordered_texts, parts.vocabulary.timed)
        for table in _INTERNED:
            entries, uses = getattr(parts.vocabulary, table).contents()
            documents[f"vocabulary.{table}"], arrays[f"vocabulary.{table}.uses"] = entries, uses
        arrays[_TESTS] = parts.vocabulary.tests.contents()
    for document, entries in documents.items():
        _write(place / f"{document}.json", msgspec.json.encode(entries))
    for array, values in arrays.items():
        with (place / f"{array}.npy").open("wb") as file:
            np.save(file, np.ascontiguousarray(values), allow_pickle=False)
            sync_file(file)
    stats = matcher.stats()
    return _Manifest(
        saved="tocsin matcher",
        format=FORMAT,
        tocsin=VERSION,
        matcher=name,
        options=dict(parts.options),
        subscriptions=stats.subscriptions,
        conjunctions=stats.conjunctions,
        predicates=stats.predicates,
        vocabulary=words,
        parts=place.name,
        arrays={array: _Array(values.dtype.str, values.shape) for array, values in arrays.items()},
        documents=sorted(documents),
    )


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        sync_file(file)


def _is_named(home: Path, place: Path) -> bool:
    """Tell whether the manifest names this folder of parts."""
    try:
        return _read_manifest(home).parts == place.name
    except SavedMatcherError:
        return False


# reading


def _read_parts(home: Path) -> tuple[_Manifest, dict[str, NDArray[Any]], dict[str, list[Any]]]:
    """Read the manifest and its parts; read them again if the matcher was saved meanwhile."""
    while True:
        manifest = _read_manifest(home)
        place = home / manifest.parts
        try:
            arrays = {
                name: _read_array(place / f"{name}.npy", kind) for name, kind in manifest.arrays.items()
            }
            documents = {name: _read_document(place / f"{name}.json") for name in manifest.documents}
        except SavedMatcherError:
            if _read_manifest(home).parts != manifest.parts:
                continue  # saved anew meanwhile, and the old parts are gone
            raise
        return manifest, arrays, documents


def _read_manifest(home: Path) -> _Manifest:
    """Read the manifest, or raise if another version wrote it in another format."""
    heading = _read_heading(home)
    if heading.format != FORMAT:
        remedy = (
            "update Tocsin, or save the matcher with this version" if heading.format > FORMAT else _REMEDY
        )
        raise SavedMatcherError(
            f"it was saved by Tocsin {heading.tocsin} in format {heading.format}, and Tocsin {VERSION} "
            f"reads format {FORMAT}; {remedy}",
            str(home),
        )
    try:
        return msgspec.json.decode((home / _MANIFEST).read_bytes(), type=_Manifest)
    except msgspec.MsgspecError as fault:
        raise SavedMatcherError(f"it cannot be read: {fault}; {_REMEDY}", str(home / _MANIFEST)) from None


def _read_heading(home: Path) -> _Heading:
    """Return the heading of a manifest of any version, or raise `SavedMatcherError` if there is none."""
    if not home.is_dir():
        raise SavedMatcherError("there is no such folder; `save_matcher` makes one", str(home))
    try:
        heading = msgspec.json.decode((home / _MANIFEST).read_bytes(), type=_Heading)
    except FileNotFoundError:
        raise SavedMatcherError(f"this is not a saved matcher: it has no {_MANIFEST}", str(home)) from None
    except msgspec.MsgspecError as fault:
        raise SavedMatcherError(
            f"this is not a saved matcher: its {_MANIFEST} says something else ({fault})", str(home)
        ) from None
    if heading.saved != "tocsin matcher":
        raise SavedMatcherError(
            f"this is not a saved matcher: its {_MANIFEST} is of a `{heading.saved}`", str(home)
        )
    return heading


def _read_array(path: Path, kind: _Array) -> NDArray[Any]:
    """Return an array whose changes stay in memory."""
    try:
        if prod(kind.shape) * np.dtype(kind.dtype).itemsize < _MAPPED:
            with path.open("rb") as file:
                array = np.lib.format.read_array(file, allow_pickle=False)
        else:
            # As a plain array: kernels would be compiled once more for a subclass.
            array = np.asarray(np.lib.format.open_memmap(path, mode="c"))
    except FileNotFoundError:
        raise SavedMatcherError(f"the file is missing; {_REMEDY}", str(path)) from None
    except (OSError, ValueError, EOFError):
        raise SavedMatcherError(f"the file is cut short, or is no array; {_REMEDY}", str(path)) from None
    found = _Array(array.dtype.str, array.shape)
    if found != kind:
        raise SavedMatcherError(f"the file holds {found}, but the manifest says {kind}; {_REMEDY}", str(path))
    return array


def _read_document(path: Path) -> list[Any]:
    """Read a list from a JSON file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise SavedMatcherError(f"the file is missing; {_REMEDY}", str(path)) from None
    try:
        return msgspec.json.decode(data, type=list)
    except msgspec.MsgspecError:
        pass  # it refuses the longest of integers
    try:
        return list(json.loads(data))
    except (TypeError, ValueError):
        raise SavedMatcherError(f"the file is cut short, or is no list; {_REMEDY}", str(path)) from None


def _read_vocabulary(
    counts: _Words, arrays: dict[str, NDArray[Any]], documents: dict[str, list[Any]], home: Path
) -> Vocabulary:
    """Return the vocabulary, and take its parts away from the matcher's."""
    words = Vocabulary()
    words.ordered_texts, words.timed = counts.ordered_texts, counts.timed
    try:
        for table in _INTERNED:
            name = f"vocabulary.{table}"
            getattr(words, table).restore(documents.pop(name), arrays.pop(f"{name}.uses"))
        words.tests.restore(arrays.pop(_TESTS))
    except KeyError as fault:
        raise SavedMatcherError(f"it has no `{fault.args[0]}`; {_REMEDY}", str(home)) from None
    return words


# states as arrays by name


def arrays_of(state: tuple[Any, ...] | NDArray[Any], name: str = "") -> dict[str, NDArray[Any]]:
    """Return every array of a state by its dotted name; an array alone is a state too."""
    if isinstance(state, np.ndarray):
        return {name: state}
    found: dict[str, NDArray[Any]] = {}
    for field, part in zip(state._fields, state, strict=True):  # type: ignore[attr-defined]
        found |= arrays_of(part, f"{name}.{field}" if name else field)
    return found


def rebuilt(like: Nested, arrays: Mapping[str, NDArray[Any]], name: str = "") -> Nested:
    """Return a state made of the arrays that `arrays_of` named.

    `like` is a state of the same kind, which has the dtype and all but the first length of each array.
    """
    if isinstance(like, np.ndarray):
        array = arrays.get(name)
        if array is None:
            raise SavedMatcherError(f"it has no array `{name}`; save the matcher again")
        if array.dtype != like.dtype or array.shape[1:] != like.shape[1:]:
            raise SavedMatcherError(
                f"its array `{name}` is {array.dtype}{list(array.shape)}, which is not what this version of "
                "Tocsin keeps there; save the matcher again"
            )
        return array  # type: ignore[return-value]
    parts = {
        field: rebuilt(part, arrays, f"{name}.{field}" if name else field)
        for field, part in zip(like._fields, like, strict=True)  # type: ignore[attr-defined]
    }
    return type(like)(**parts)
