"""Regular expressions matched many at a time: RE2's sets, few of them, each several times as large as the next.

A set is one automaton for all its patterns, which RE2 makes as texts ask for it. Three things can go wrong with it, and
none of them loses an answer. RE2 refuses to make a set for which its memory is too small: then there are several
instead. It gives up on a text, and says nothing: every set holds a pattern that all strings match, so that an
empty answer tells of it, and there are two sets instead. Its automaton has so many states that it never
ends making them: a set that stays slow is divided, too. What is left in the end is a pattern alone, of
which RE2 always gives the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Final, NamedTuple

import re2

from tocsin.language.patterns import Pattern, compile_regex
from tocsin.matching.operators.index import Passed, Patterns, Texts

_RATIO: Final = 4  # a set is made part of a new one that has at least this share of it
_MEMORY: Final = 8 << 20  # bytes that the automaton of a set may take,
_EACH: Final = 8 << 10  # and more for each of its patterns
_SPELL: Final = 50_000_000  # nanoseconds of matching after which a set's speed is looked at
_WARMING: Final = 2  # spells in which it may still be making its automaton
_SLOW: Final = 1_000  # nanoseconds for a byte
_FEW: Final = 32  # patterns that are not divided for being slow
_PARTS: Final = 4  # of a set that is
_MANY: Final = (
    8  # parts of a set that cannot be made: it takes long to find that out, so it is not tried for every size
)
_ALL: Final = -1  # in the place of a code: the pattern that all strings match


class PatternSets:
    """The patterns that are asked for, by attribute; `regex_of` makes a regular expression of a constant."""

    def __init__(self, regex_of: Callable[[str], str]) -> None:
        self._regex_of = regex_of
        self._shelves: dict[int, _Shelf] = {}

    def insert(self, tests: Patterns) -> None:
        """Hold these tests, of which none is held."""
        new: dict[int, list[_Member]] = {}
        for attribute, code, constant in tests:
            new.setdefault(attribute, []).append(_Member(code, self._regex_of(constant)))
        for attribute, members in new.items():
            self._shelves.setdefault(attribute, _Shelf()).insert(members)

    def remove(self, tests: Patterns) -> None:
        """Hold these tests, all of which are held, no longer."""
        gone: dict[int, list[int]] = {}
        for attribute, code, _ in tests:
            gone.setdefault(attribute, []).append(code)
        for attribute, codes in gone.items():
            self._shelves[attribute].remove(codes)
            if not self._shelves[attribute].sets:
                del self._shelves[attribute]

    def passed(self, texts: Texts) -> Passed:
        """Return which of the tests of its attribute each string passes."""
        return Passed.of(
            [
                self._shelves[attribute].matched(text.encode()) if attribute in self._shelves else ()
                for attribute, text in texts
            ]
        )


class _Member(NamedTuple):
    code: int
    regex: str


class _Shelf:
    """The sets of one attribute."""

    def __init__(self) -> None:
        self.sets: list[_Set] = []  # those that were divided first, then the largest
        self._where: dict[int, _Set] = {}

    def insert(self, members: list[_Member]) -> None:
        kept = list(self.sets)
        while kept and not kept[-1].divided and len(kept[-1].held) < _RATIO * len(members):
            members = kept.pop().left() + members
        self._arrange(kept, _made(members, divided=False))

    def remove(self, codes: Sequence[int]) -> None:
        thin: dict[int, _Set] = {}
        for code in codes:
            one = self._where.pop(code)
            one.held.remove(code)
            if 2 * len(one.held) < len(one.members):
                thin[id(one)] = one
        for one in thin.values():
            self._replace(one, _made(one.left(), divided=one.divided) if one.held else [])

    def matched(self, text: bytes) -> list[int]:
        """Return the codes of the patterns that match a string."""
        found: list[int] = []
        waiting = self.sets
        while waiting:
            again: list[_Set] = []
            for one in list(waiting):
                codes = one.matched(text)
                if codes is None:
                    parts = _divided(one.left(), 2)
                    self._replace(one, parts)
                    again += parts
                    continue
                found += codes
                if one.is_slow():
                    self._replace(one, _divided(one.left(), _PARTS))
            waiting = again
        return found

    def _replace(self, old: _Set, new: list[_Set]) -> None:
        self._arrange([one for one in self.sets if one is not old], new)

    def _arrange(self, kept: list[_Set], new: list[_Set]) -> None:
        """Have these sets; all patterns that others held are in the new ones."""
        for one in new:
            self._where.update(dict.fromkeys(one.held, one))
        # Those that were divided are not joined again.
        self.sets = sorted([*kept, *new], key=lambda one: (not one.divided, -len(one.members)))


class _Set:
    """Patterns that are matched at a time; those that are no longer held are passed over."""

    def __init__(self, members: list[_Member], *, divided: bool) -> None:
        self.members = members
        self.held = {member.code for member in members}
        self.divided = divided  # because it could not be made in one, or was slow
        self._codes = (_ALL, *(member.code for member in members))
        self._alone: Pattern | None = None
        self._spent = self._read = self._spells = 0
        if divided and len(members) == 1:  # a set of it may be just as hard to make
            self._alone = compile_regex(members[0].regex)
            return
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MEMORY + _EACH * len(members)
        self._set = re2.Set.SearchSet(options)
        self._set.Add("")  # which all strings match
        for member in members:
            self._set.Add(member.regex)
        try:
            self._set.Compile()
        except re2.error:
            if len(members) > 1:
                raise
            self._alone = compile_regex(members[0].regex)

    def left(self) -> list[_Member]:
        """Return the patterns that are still held."""
        return [member for member in self.members if member.code in self.held]

    def matched(self, text: bytes) -> list[int] | None:
        """Return the codes of the patterns that match a string; None if RE2 cannot tell of so many together."""
        if self._alone is not None:
            return list(self.held) if self._alone.search(text) is not None else []
        begin = perf_counter_ns()
        places = self._set.Match(text)
        self._spent += perf_counter_ns() - begin
        self._read += len(text) + 1
        if places:
            codes = self._codes
            return [codes[place] for place in places if codes[place] in self.held] if len(places) > 1 else []
        if len(self.members) > 1:
            return None
        self._alone = compile_regex(self.members[0].regex)
        return self.matched(text)

    def is_slow(self) -> bool:
        """Tell whether the set is better divided; its speed is looked at every so often."""
        if self._spent < _SPELL:
            return False
        slow = self._spells >= _WARMING and self._spent > _SLOW * self._read and len(self.members) > _FEW
        self._spent = self._read = 0
        self._spells += 1
        return slow


def _made(members: list[_Member], *, divided: bool) -> list[_Set]:
    """Return the patterns as one set, or as several if RE2 cannot make one of them."""
    try:
        return [_Set(members, divided=divided)]
    except re2.error:
        return _divided(members, _MANY)


def _divided(members: list[_Member], parts: int) -> list[_Set]:
    size = -(-len(members) // parts)
    pieces = [members[begin : begin + size] for begin in range(0, len(members), size)]
    return [one for piece in pieces for one in _made(piece, divided=True)]
