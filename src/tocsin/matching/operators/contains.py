"""`contains`: a few automata, each several times as large as the next."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.encoding.codes import Keys
from tocsin.matching.operators._kernels import automata
from tocsin.matching.operators.index import PassedTests, Patterns, TextBytes, Texts, text_bytes
from tocsin.matching.operators.registry import operator_index
from tocsin.model.conditions import Operator
from tocsin.model.errors import MatcherError

_RATIO: Final = 4  # an automaton joins a new one that is at least this fraction of it
_FEW_CELLS: Final = 1 << 18  # of an automaton's rows, at least
_CELLS: Final = 8  # for each node
_MOST_CELLS: Final = 1 << 22
_MOST_NODES: Final = 1 << 29  # so that a doubled state, plus the rows, is below 2**31
_NOTHING: Final = np.zeros(0, dtype=np.int64)


@operator_index(Operator.CONTAINS)
class Contains:
    """The constants of `contains`.

    An automaton is never changed. New constants are built into a new one, together with the automata that are not much
    larger: so there are few, and a constant moves a few times for each doubling. Removed constants are skipped until half
    of an automaton is removed; then it is rebuilt.
    """

    def __init__(self) -> None:
        self._automata: list[_Static] = []  # the largest first

    def insert(self, tests: Patterns) -> None:
        """Add these tests; none may be present."""
        if len(tests.codes):
            self._add(_sorted(tests))

    def remove(self, tests: Patterns) -> None:
        """Remove these tests; each must be present."""
        texts = text_bytes(tests.constants)
        gone = np.zeros(len(tests.codes), dtype=np.uint8)
        for static in self._automata:
            static.live -= automata.remove_constants(
                static.automaton, static.constants, tests.attributes, texts, gone
            )
        thin = [static for static in self._automata if 2 * static.live < len(static.constants.codes)]
        for static in thin:
            # An earlier one may have absorbed it.
            if static in self._automata:
                self._add(static.constants, instead_of=static)

    def passed(self, texts: Texts) -> PassedTests:
        """Return, for each string, the tests on its attribute that it passes."""
        parts = [static.passed(texts) for static in self._automata]
        found = np.sort(np.concatenate(parts)) if parts else _NOTHING
        offsets = np.searchsorted(found, np.arange(len(texts) + 1, dtype=np.int64) << 32)
        return PassedTests(offsets, found & 0xFFFFFFFF)

    def _add(self, constants: automata.Constants, instead_of: _Static | None = None) -> None:
        """Build an automaton for these constants, merged with automata that are not much larger."""
        kept = [static for static in self._automata if static is not instead_of]
        if np.any(constants.codes < 0):
            constants = _merged(constants, _room(0, 0))
        while kept and kept[-1].live < _RATIO * len(constants.codes):
            constants = _merged(constants, kept.pop().constants)
        if len(constants.codes):
            kept.append(_Static(constants))
        # Assigned last: an exception loses nothing
        self._automata = sorted(kept, key=lambda static: -static.live)


class _Static:
    """An automaton, its constants, and the number of those not removed."""

    def __init__(self, constants: automata.Constants) -> None:
        self.constants = constants
        self.live = len(constants.codes)
        self.automaton = _automaton(constants)

    def passed(self, texts: Texts) -> Keys:
        """Return the constants in the strings: the number of a string above 32 bits, the code below."""
        lanes = np.zeros((automata.LANES + 1, len(automata.Lane)), dtype=np.int64)
        lanes[: automata.LANES, automata.Lane.BIT] = 1 << np.arange(automata.LANES)
        self.automaton.counters[automata.Counter.CALLS] += 1
        room = 2 * len(texts) + int(self.automaton.counters[automata.Counter.LONGEST]) + 64
        found = np.empty((room, len(automata.Hit)), dtype=np.int64)
        while not automata.find_contained(self.automaton, texts.attributes, texts.bytes, lanes, found):
            more = np.empty((2 * len(found), len(automata.Hit)), dtype=np.int64)
            more[: len(found)] = found
            found = more
        hits = found[: lanes[-1, automata.Total.WRITTEN], automata.Hit.FOUND]
        return hits[hits >= 0]


def _sorted(tests: Patterns) -> automata.Constants:
    # By code point, which is the order of the bytes.
    order = sorted(range(len(tests.codes)), key=tests.constants.__getitem__)
    order = np.array(order, dtype=np.int64)[np.argsort(tests.attributes[order], kind="stable")].tolist()
    texts = text_bytes([tests.constants[i] for i in order])
    return automata.Constants(tests.attributes[order], tests.codes[order], texts)


def _room(constants: int, size: int) -> automata.Constants:
    texts = TextBytes(np.zeros(constants + 1, dtype=np.int64), np.zeros(size + 1, dtype=np.uint8))
    return automata.Constants(np.zeros(constants, dtype=np.int64), np.zeros(constants, dtype=np.int64), texts)


def _merged(one: automata.Constants, other: automata.Constants) -> automata.Constants:
    """Return the constants of both, without the removed ones."""
    into = _room(len(one.codes) + len(other.codes), int(one.texts.offsets[-1]) + int(other.texts.offsets[-1]))
    count = automata.merge(one, other, into)
    offsets = into.texts.offsets[: count + 1].copy()
    data = into.texts.data[: offsets[-1] + 1].copy()
    return automata.Constants(
        into.attributes[:count].copy(), into.codes[:count].copy(), TextBytes(offsets, data)
    )


def _automaton(constants: automata.Constants) -> automata.Automaton:
    """Return an Aho-Corasick automaton for these constants."""
    attributes, texts = constants.attributes, constants.texts
    size = int(texts.offsets[-1])
    most = size + len(np.unique(attributes))
    if most > _MOST_NODES:
        raise MatcherError(
            f"`contains` has {size:,} bytes of constants, more than the {_MOST_NODES:,} that an index can take; "
            "divide the subscriptions among several matchers"
        )
    roots = np.full(int(attributes.max(initial=-1)) + 1, -1, dtype=np.int32)
    stretches = np.empty((most, len(automata.Stretch)), dtype=np.int32)
    forest = automata.Forest(
        np.empty((most, len(automata.Node)), dtype=np.int32), np.zeros(most, dtype=np.uint8)
    )
    nodes = automata.grow(constants, forest, roots, stretches)
    forest = automata.Forest(forest.nodes[:nodes].copy(), forest.labels[:nodes].copy())
    classes = np.ones(256, dtype=np.int32)
    used = np.unique(texts.data[:size])
    classes[used] = np.arange(2, len(used) + 2)
    columns = len(used) + 2
    fewest = int(np.count_nonzero(roots >= 0))  # at least the roots need rows: every fallback ends there
    cells = min(max(_FEW_CELLS, _CELLS * nodes), _MOST_CELLS)
    automaton = automata.Automaton(
        forest,
        roots,
        classes,
        np.zeros(min(max(cells // columns, fewest), nodes) * columns, dtype=np.int32),
        np.zeros((len(constants.codes), len(automata.End)), dtype=np.int64),
        np.array([columns, 0, 0], dtype=np.int64),
    )
    automata.link(automaton, constants.codes, stretches)
    return automaton
