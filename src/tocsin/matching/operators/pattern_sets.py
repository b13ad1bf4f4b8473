"""`like` and `~`: regular expressions matched many at a time by RE2's sets, each several times as large as the next.

A set is one automaton for all its patterns, which RE2 builds lazily. Three things can go wrong with it, and none loses an
answer. RE2 may refuse a set as too large for its memory: it is divided. RE2 may give up on a text without saying so: every
set holds a pattern that all strings match, so an empty answer reveals it, and the set is divided in two. The automaton may
have so many states that RE2 keeps building them: a set that stays slow is divided. A division ends with single patterns,
which RE2 always answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter_ns
from typing import Final, NamedTuple

import re2

from tocsin.language.patterns import Pattern, compile_regex, regex_of_like
from tocsin.matching.operators.index import PassedTests, Patterns, Texts
from tocsin.matching.operators.registry import operator_index
from tocsin.model.conditions import Operator

_RATIO: Final = 4  # a set joins a new one that is at least this fraction of it
_MEMORY: Final = 8 << 20  # bytes that the automaton of a set may take,
_EACH: Final = 8 << 10  # and more for each of its patterns
_SPELL: Final = 50_000_000  # nanoseconds of matching after which a set's speed is checked
_WARMING: Final = 2  # spells in which it may still be building its automaton
_SLOW: Final = 1_000  # nanoseconds for a byte
_FEW: Final = 32  # patterns up to which a slow set is not divided
_PARTS: Final = 4  # of a slow set
_MANY: Final = 8  # parts of a set that is too large: RE2 takes long to refuse one, so few sizes are tried
_ALL: Final = -1  # the code of the pattern that all strings match


class PatternSets:
    """Patterns by attribute; `regex_of` turns a constant into a regular expression."""

    def __init__(self, regex_of: Callable[[str], str]) -> None:
        self._regex_of = regex_of
        self._shelves: dict[int, _Shelf] = {}

    def insert(self, tests: Patterns) -> None:
        """Add these tests; none may be present."""
        new: dict[int, list[_Member]] = {}
        for attribute, code, constant in tests:
            new.setdefault(attribute, []).append(_Member(code, self._regex_of(constant)))
        for attribute, members in new.items():
            self._shelves.setdefault(attribute, _Shelf()).insert(members)

    def remove(self, tests: Patterns) -> None:
        """Remove these tests; each must be present."""
        gone: dict[int, list[int]] = {}
        for attribute, code, _ in tests:
            gone.setdefault(attribute, []).append(code)
        for attribute, codes in gone.items():
            self._shelves[attribute].remove(codes)
            if not self._shelves[attribute].sets:
                del self._shelves[attribute]

    def passed(self, texts: Texts) -> PassedTests:
        """Return, for each string, the tests on its attribute that it passes."""
        return PassedTests.of(
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
        self.sets: list[_Set] = []  # the divided ones first, then the largest
        self._set_of: dict[int, _Set] = {}

    def insert(self, members: list[_Member]) -> None:
        kept = list(self.sets)
        while kept and not kept[-1].divided and len(kept[-1].live) < _RATIO * len(members):
            members = kept.pop().left() + members
        self._arrange(kept, _compile_sets(members, divided=False))

    def remove(self, codes: Sequence[int]) -> None:
        """Remove patterns; a set with less than half of its patterns left is compiled again."""
        sparse: dict[int, _Set] = {}
        for code in codes:
            one = self._set_of.pop(code)
            one.live.remove(code)
            if 2 * len(one.live) < len(one.members):
                sparse[id(one)] = one
        for one in sparse.values():
            self._replace(one, _compile_sets(one.left(), divided=one.divided) if one.live else [])

    def matched(self, text: bytes) -> list[int]:
        """Return the codes of the patterns that match a string."""
        found: list[int] = []
        waiting = self.sets
        while waiting:
            again: list[_Set] = []
            for one in list(waiting):
                codes = one.matched(text)
                if codes is None:
                    parts = _divide(one.left(), 2)
                    self._replace(one, parts)
                    again += parts
                    continue
                found += codes
                if one.is_slow():
                    self._replace(one, _divide(one.left(), _PARTS))
            waiting = again
        return found

    def _replace(self, old: _Set, new: list[_Set]) -> None:
        self._arrange([one for one in self.sets if one is not old], new)

    def _arrange(self, kept: list[_Set], new: list[_Set]) -> None:
        """Replace the sets by these; the new ones have all patterns of the dropped ones."""
        for one in new:
            self._set_of.update(dict.fromkeys(one.live, one))
        # Divided sets are not joined again.
        self.sets = sorted([*kept, *new], key=lambda one: (not one.divided, -len(one.members)))


class _Set:
    """Patterns that are matched together; removed ones are skipped in the answer."""

    def __init__(self, members: list[_Member], *, divided: bool) -> None:
        self.members = members
        self.live = {member.code for member in members}
        self.divided = divided  # it was part of a set that was too large or too slow
        self._codes = (_ALL, *(member.code for member in members))
        self._alone: Pattern | None = None
        self._spent = self._read = self._spells = 0
        if divided and len(members) == 1:  # even a set of one may be too large
            self._alone = compile_regex(members[0].regex)
            return
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MEMORY + _EACH * len(members)
        self._set = re2.Set.SearchSet(options)
        self._set.Add("")  # matches all strings
        for member in members:
            self._set.Add(member.regex)
        try:
            self._set.Compile()
        except re2.error:
            if len(members) > 1:
                raise
            self._alone = compile_regex(members[0].regex)

    def left(self) -> list[_Member]:
        """Return the patterns that were not removed."""
        return [member for member in self.members if member.code in self.live]

    def matched(self, text: bytes) -> list[int] | None:
        """Return the codes of the patterns that match a string; None if RE2 gave up."""
        if self._alone is not None:
            return list(self.live) if self._alone.search(text) is not None else []
        begin = perf_counter_ns()
        places = self._set.Match(text)
        self._spent += perf_counter_ns() - begin
        self._read += len(text) + 1
        if places:
            codes = self._codes
            return [codes[place] for place in places if codes[place] in self.live] if len(places) > 1 else []
        if len(self.members) > 1:
            return None
        self._alone = compile_regex(self.members[0].regex)
        return self.matched(text)

    def is_slow(self) -> bool:
        """Tell whether the set is too slow; its speed is checked once in a spell."""
        if self._spent < _SPELL:
            return False
        slow = self._spells >= _WARMING and self._spent > _SLOW * self._read and len(self.members) > _FEW
        self._spent = self._read = 0
        self._spells += 1
        return slow


def _compile_sets(members: list[_Member], *, divided: bool) -> list[_Set]:
    """Return the patterns as one set, or as several if one is too large."""
    try:
        return [_Set(members, divided=divided)]
    except re2.error:
        return _divide(members, _MANY)


def _divide(members: list[_Member], parts: int) -> list[_Set]:
    size = -(-len(members) // parts)
    pieces = [members[begin : begin + size] for begin in range(0, len(members), size)]
    return [one for piece in pieces for one in _compile_sets(piece, divided=True)]


operator_index(Operator.LIKE)(partial(PatternSets, regex_of_like))
operator_index(Operator.REGEX)(partial(PatternSets, str))
