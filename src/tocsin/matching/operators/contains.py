"""`contains`: automata, few of them, each several times as large as the next."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tocsin.matching.operators._kernels.automata import (
    Automaton,
    Constants,
    Forest,
    contained,
    grow,
    link,
    merge,
    strike,
)
from tocsin.matching.operators.index import Passed, Patterns, TextBytes, Texts, gathered, joined, text_bytes
from tocsin.matching.operators.registry import operator_index
from tocsin.model.conditions import Operator

__all__ = ["Contains"]

_RATIO: Final = 4  # an automaton is made part of a new one that has at least this share of it
_CELLS: Final = 1 << 20  # of the rows of an automaton, so that they stay in a cache
_NO_CODE: Final = np.zeros(0, dtype=np.int64)


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
            static.held -= strike(static.automaton, static.constants.codes, tests.attributes, texts, gone)
        thin = [static for static in self._automata if 2 * static.held < len(static.constants.codes)]
        self._automata = [static for static in self._automata if static not in thin]
        for static in thin:
            if static.held:
                self._add(static.constants)

    def passed(self, texts: Texts) -> Passed:
        """Return which of the tests of its attribute each string passes."""
        if not self._automata:
            return Passed(np.zeros(len(texts) + 1, dtype=np.int64), _NO_CODE)
        return joined([static.passed(texts) for static in self._automata])

    def _add(self, constants: Constants) -> None:
        while self._automata and self._automata[-1].held < _RATIO * len(constants.codes):
            constants = _merged(constants, self._automata.pop().constants)
        if np.any(constants.codes < 0):
            constants = _merged(constants, _room(0, 0))
        self._automata.append(_Static(constants))
        self._automata.sort(key=lambda static: -static.held)


class _Static:
    """An automaton, its constants, and how many of them are still held."""

    def __init__(self, constants: Constants) -> None:
        self.constants = constants
        self.held = len(constants.codes)
        self.automaton = _automaton(constants)

    def passed(self, texts: Texts) -> Passed:
        return gathered(
            len(texts),
            lambda start, found: contained(
                self.automaton, self.constants.codes, texts.attributes, texts.bytes, start, found
            ),
        )


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
    roots = np.full(int(attributes.max(initial=-1)) + 1, -1, dtype=np.int32)
    forest = _forest(most)
    nodes = grow(constants, forest, roots, np.empty((most, 3), dtype=np.int32))
    columns: Any = (column[:nodes].copy() for column in forest[1:])
    forest = Forest(forest.first[: nodes + 1].copy(), *columns)
    classes = np.zeros(256, dtype=np.int32)
    bytes_ = np.unique(texts.data[:size])
    classes[bytes_] = np.arange(1, len(bytes_) + 1)
    width = len(bytes_) + 1
    fewest = int(np.count_nonzero(roots >= 0))  # whoever falls back ends at a root
    automaton = Automaton(
        forest,
        roots,
        classes,
        np.zeros((min(max(_CELLS // width, fewest), nodes), width), dtype=np.int32),
        np.zeros(len(constants.codes), dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )
    link(automaton)
    return automaton


def _forest(nodes: int) -> Forest:
    def column() -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        return np.empty(nodes, dtype=np.int32)

    first = np.empty(nodes + 1, dtype=np.int32)
    return Forest(first, np.zeros(nodes, dtype=np.uint8), column(), column(), column(), column())
