"""`contains`: automata, few of them, each several times as large as the next."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.encoding.codes import Keys
from tocsin.matching.operators._kernels.automata import (
    BIT,
    CALLS,
    FOUND,
    LANES,
    LONGEST,
    Automaton,
    Constants,
    Forest,
    contained,
    grow,
    link,
    merge,
    strike,
)
from tocsin.matching.operators.index import Passed, Patterns, TextBytes, Texts, text_bytes
from tocsin.matching.operators.registry import operator_index
from tocsin.model.conditions import Operator
from tocsin.model.errors import MatcherError

_RATIO: Final = 4  # an automaton is made part of a new one that has at least this share of it
_FEW_CELLS: Final = 1 << 18  # of an automaton's rows, however small it is,
_CELLS: Final = 8  # else for each node,
_MOST_CELLS: Final = 1 << 22  # up to so many
_MOST_NODES: Final = 1 << 29  # twice a state, and the rows besides, are below 2**31
_NOTHING: Final = np.zeros(0, dtype=np.int64)


@operator_index(Operator.CONTAINS)
class Contains:
    """The strings that are asked for inside others.

    An automaton never changes. New constants make a new one, together with those automata that are not much larger:
    so there are few, and a constant moves a few times for each doubling. A constant that is gone is passed over until half
    of its automaton is gone.
    """

    def __init__(self) -> None:
        self._automata: list[_Static] = []  # the largest first

    def insert(self, tests: Patterns) -> None:
        """Hold these tests, of which none is held."""
        if len(tests.codes):
            self._add(_sorted(tests))

    def remove(self, tests: Patterns) -> None:
        """Hold these tests, all of which are held, no longer."""
        texts = text_bytes(tests.constants)
        gone = np.zeros(len(tests.codes), dtype=np.uint8)
        for static in self._automata:
            static.held -= strike(static.automaton, static.constants, tests.attributes, texts, gone)
        thin = [static for static in self._automata if 2 * static.held < len(static.constants.codes)]
        for static in thin:
            # It may have become part of another in the meantime.
            if static in self._automata:
                self._add(static.constants, instead_of=static)

    def passed(self, texts: Texts) -> Passed:
        """Return which of the tests of its attribute each string passes."""
        parts = [static.passed(texts) for static in self._automata]
        found = np.sort(np.concatenate(parts)) if parts else _NOTHING
        offsets = np.searchsorted(found, np.arange(len(texts) + 1, dtype=np.int64) << 32)
        return Passed(offsets, found & 0xFFFFFFFF)

    def _add(self, constants: Constants, instead_of: _Static | None = None) -> None:
        automata = [static for static in self._automata if static is not instead_of]
        if np.any(constants.codes < 0):
            constants = _merged(constants, _room(0, 0))
        while automata and automata[-1].held < _RATIO * len(constants.codes):
            constants = _merged(constants, automata.pop().constants)
        if len(constants.codes):
            automata.append(_Static(constants))
        self._automata = sorted(automata, key=lambda static: -static.held)  # nothing is given up before


class _Static:
    """An automaton, its constants, and how many of them are still held."""

    def __init__(self, constants: Constants) -> None:
        self.constants = constants
        self.held = len(constants.codes)
        self.automaton = _automaton(constants)

    def passed(self, texts: Texts) -> Keys:
        """Return what the strings contain, as the number of a string above 32 bits and the code below."""
        lanes = np.zeros((LANES + 1, 5), dtype=np.int64)
        lanes[:LANES, BIT] = 1 << np.arange(LANES)
        self.automaton.counters[CALLS] += 1
        found = np.empty((2 * len(texts) + self.automaton.counters[LONGEST] + 64, 2), dtype=np.int64)
        while not contained(self.automaton, texts.attributes, texts.bytes, lanes, found):
            more = np.empty((2 * len(found), 2), dtype=np.int64)
            more[: len(found)] = found
            found = more
        told = found[: lanes[-1, 2], FOUND]
        return told[told >= 0]


def _sorted(tests: Patterns) -> Constants:
    # By code point, which is the order of the bytes.
    order = sorted(range(len(tests.codes)), key=tests.constants.__getitem__)
    order = np.array(order, dtype=np.int64)[np.argsort(tests.attributes[order], kind="stable")].tolist()
    texts = text_bytes([tests.constants[i] for i in order])
    return Constants(tests.attributes[order], tests.codes[order], texts)


def _room(constants: int, size: int) -> Constants:
    texts = TextBytes(np.zeros(constants + 1, dtype=np.int64), np.zeros(size + 1, dtype=np.uint8))
    return Constants(np.zeros(constants, dtype=np.int64), np.zeros(constants, dtype=np.int64), texts)


def _merged(one: Constants, other: Constants) -> Constants:
    """Return the constants of both that are held."""
    into = _room(len(one.codes) + len(other.codes), int(one.texts.offsets[-1]) + int(other.texts.offsets[-1]))
    count = merge(one, other, into)
    offsets = into.texts.offsets[: count + 1].copy()
    data = into.texts.data[: offsets[-1] + 1].copy()
    return Constants(into.attributes[:count].copy(), into.codes[:count].copy(), TextBytes(offsets, data))


def _automaton(constants: Constants) -> Automaton:
    attributes, texts = constants.attributes, constants.texts
    size = int(texts.offsets[-1])
    most = size + len(np.unique(attributes))
    if most > _MOST_NODES:
        raise MatcherError(
            f"`contains` is asked with {size:,} bytes of constants, more than the {_MOST_NODES:,} that an index holds; "
            "divide the subscriptions among several matchers"
        )
    roots = np.full(int(attributes.max(initial=-1)) + 1, -1, dtype=np.int32)
    stretches = np.empty((most, 4), dtype=np.int32)
    forest = Forest(np.empty((most, 4), dtype=np.int32), np.zeros(most, dtype=np.uint8))
    nodes = grow(constants, forest, roots, stretches)
    forest = Forest(forest.nodes[:nodes].copy(), forest.labels[:nodes].copy())
    classes = np.ones(256, dtype=np.int32)
    used = np.unique(texts.data[:size])
    classes[used] = np.arange(2, len(used) + 2)
    columns = len(used) + 2
    fewest = int(np.count_nonzero(roots >= 0))  # whoever falls back ends at a root
    cells = min(max(_FEW_CELLS, _CELLS * nodes), _MOST_CELLS)
    automaton = Automaton(
        forest,
        roots,
        classes,
        np.zeros(min(max(cells // columns, fewest), nodes) * columns, dtype=np.int32),
        np.zeros((len(constants.codes), 3), dtype=np.int64),
        np.array([columns, 0, 0], dtype=np.int64),
    )
    link(automaton, constants.codes, stretches)
    return automaton
