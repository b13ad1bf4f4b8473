"""The router: which shards an event has to see. It is a matcher, in which a shard is a subscription."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from tocsin.index.placement import Route, Routes
from tocsin.index.shard import RowNumbers
from tocsin.language.json_form import predicate_from_json, predicate_to_json
from tocsin.matching import EventBatch, create_matcher, open_matcher, save_matcher
from tocsin.matching.starting_matcher import INDEX

_ENTRIES: Final = "entries.json"
_MATCHER: Final = "matcher"


class Router:
    """A saved router, opened for matching."""

    def __init__(self, folder: Path) -> None:
        self._matcher = open_matcher(folder / _MATCHER)

    def route(self, events: EventBatch) -> RowNumbers:
        """Return, one after another, each event's position with the number of a shard that must see it."""
        matches = self._matcher.match(events)
        return RowNumbers(matches.rows, matches.ids)


def save_router(routes: Routes, folder: Path) -> None:
    """Write a router to a folder that is not there yet."""
    folder.mkdir(parents=True)
    matcher = create_matcher(INDEX)  # however few the routes are, every event has to pass them
    matcher.add(routes.conjunctions())
    save_matcher(matcher, folder / _MATCHER)
    (folder / _ENTRIES).write_text(json.dumps(routes_to_json(routes.entries)), encoding="utf-8")


def open_routes(folder: Path) -> Routes:
    """Return the routes of a saved router, so that more can be added."""
    routes = Routes()
    for shard, access in routes_from_json(json.loads((folder / _ENTRIES).read_text(encoding="utf-8"))):
        routes.add(shard, access)
    return routes


def routes_to_json(entries: Iterable[Route]) -> list[list[Any]]:
    """Return shards with their access predicates as JSON has them."""
    return [[shard, None if access is None else predicate_to_json(access)] for shard, access in entries]


def routes_from_json(entries: Iterable[list[Any]]) -> Iterator[Route]:
    """Return shards with their access predicates that `routes_to_json` wrote."""
    return ((shard, None if access is None else predicate_from_json(access)) for shard, access in entries)
