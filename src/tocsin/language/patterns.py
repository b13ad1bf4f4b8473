"""Patterns over strings: `like`, and regular expressions in RE2's linear-time syntax."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Protocol, cast

import re2

from tocsin.model.conditions import NEGATED, Operator, Predicate
from tocsin.model.terms import Literal, Term
from tocsin.model.values import Kind

_MEMORY: Final = 8 << 20  # bytes for the program and automata of one regular expression
_SPECIAL: Final = re.compile(r"[%_]|\\.?", re.DOTALL)  # wildcards and escapes
_EQUIVALENT: Final = {
    (False, True): Operator.STARTS_WITH,
    (True, False): Operator.ENDS_WITH,
    (True, True): Operator.CONTAINS,
    (False, False): Operator.EQ,
}


class Pattern(Protocol):
    """A compiled pattern."""

    def search(self, text: str | bytes) -> object | None:
        """Return something if the pattern occurs anywhere in `text`, None if it does not."""


@lru_cache(maxsize=4096)
def compile_regex(pattern: str) -> Pattern:
    """Return `pattern` compiled; raise `ValueError` with RE2's reason if RE2 refuses it."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        return cast("Pattern", re2.compile(pattern, options))
    except re2.error as refusal:
        reason = refusal.args[0]
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(text) from None


@lru_cache(maxsize=4096)
def compile_like(pattern: str) -> Pattern:
    """Return the `like` pattern compiled; raise `ValueError` if it ends within an escape."""
    return compile_regex(regex_of_like(pattern))


def regex_of_like(pattern: str) -> str:
    r"""Return the regular expression that is equivalent to `like pattern`.

    >>> print(regex_of_like("a_c%"))
    (?s)\Aa.c.*\z
    """
    wild = {"%": ".*", "_": "."}
    body = "".join(
        wild[piece] if is_wild else cast("str", re2.escape(piece)) for piece, is_wild in _pieces(pattern)
    )
    return rf"(?s)\A{body}\z"


def plain_like(pattern: str) -> tuple[Operator, str] | None:
    """Return the simpler operator and text that are equivalent to `like pattern`, or None.

    >>> plain_like("ab%"), plain_like("%yz"), plain_like("%mid%"), plain_like("a_c")
    ((<Operator.STARTS_WITH: 'starts with'>, 'ab'), (<Operator.ENDS_WITH: 'ends with'>, 'yz'),
     (<Operator.CONTAINS: 'contains'>, 'mid'), None)
    """
    pieces = _pieces(pattern)
    wild = [piece for piece, is_wild in pieces if is_wild]
    if "_" in wild:
        return None
    first, last = 0, len(pieces)
    while first < last and pieces[first][1]:
        first += 1
    while last > first and pieces[last - 1][1]:
        last -= 1
    middle = pieces[first:last]
    if any(is_wild for _, is_wild in middle):
        return None
    fixed = "".join(piece for piece, _ in middle)
    if not middle and wild:
        return Operator.STARTS_WITH, ""
    return _EQUIVALENT[first > 0, last < len(pieces)], fixed


def like(subject: Term, pattern: str, *, negated: bool) -> Predicate:
    """Return the simplest predicate for `subject like pattern`; raise `ValueError` if the pattern is faulty."""
    plain = plain_like(pattern)
    if plain is None:
        compile_like(pattern)  # raises if the pattern is too large
    operator, text = plain or (Operator.LIKE, pattern)
    return Predicate(subject, NEGATED[operator] if negated else operator, (Literal(text, Kind.STRING),))


def _pieces(pattern: str) -> list[tuple[str, bool]]:
    """Return the parts of `pattern` and whether each is a wildcard; a backslash escapes the next character."""
    pieces: list[tuple[str, bool]] = []
    done = 0
    for special in _SPECIAL.finditer(pattern):
        if special.start() > done:
            pieces.append((pattern[done : special.start()], False))
        if special[0] == "\\":
            raise ValueError("it ends with a lone backslash; a backslash itself is written twice")
        pieces.append((special[0][-1], special[0] in "%_"))
        done = special.end()
    if done < len(pattern):
        pieces.append((pattern[done:], False))
    return pieces
