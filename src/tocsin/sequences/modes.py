"""The optimisations that can be switched off: the five modes of Cayuga's experiments."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Optimisations(Struct, frozen=True):
    """The optimisations of an automaton matcher.

    `merging` shares the equal prefixes of automata. `edges` is the FR-index, a matcher over the static parts of forward
    and rebind edges. `instances` are the AN-index, a matcher over the static parts of filters, and the AI-index, a
    hash table of the values that instances wait for.
    """

    merging: bool = True
    edges: bool = True
    instances: bool = True


MODES: Final = {
    "cayuga": Optimisations(),
    "no merging": Optimisations(merging=False),
    "no fr-index": Optimisations(edges=False),
    "no instance index": Optimisations(instances=False),
    "no mqo": Optimisations(merging=False, edges=False, instances=False),
}
"""Cayuga's five modes by name."""
