"""The errors for text that goes on after a complete query, and for clauses in the wrong position."""

from __future__ import annotations

from typing import Final

from tocsin.language.parsing.clauses import CLAUSE_WORDS
from tocsin.language.parsing.cursor import Cursor, closest
from tocsin.language.parsing.foreign import ABSENCE
from tocsin.language.parsing.tokens import NAME, NUMBER, QUOTED, RESERVED

SEQUENCE_WORDS: Final = frozenset(("next", "fold", "within", "publish", "compute"))
_CONDITION_WORDS: Final = ("where", "on", "while")


def leftover_error(cursor: Cursor) -> Exception:
    """Return the error for text that goes on after a complete query."""
    word = cursor.words[cursor.at]
    if cursor.words[cursor.at - 1] == ";":
        return cursor.fail(
            "one text is one subscription, which ends at `;`",
            suggestion="make each a subscription of its own",
        )
    if word == ")":
        return cursor.fail("this parenthesis closes nothing")
    begun = cursor.words[0] in ("from", "select")
    if word == "," and begun:
        return cursor.fail(
            "sources are not listed with commas",
            suggestion="a sequence goes on with `next`; two tables are joined with `join table … on …`",
        )
    if word == ",":
        return cursor.unexpected(
            "nothing can be listed here",
            (),
            ("`and`", "`or`", "the end of the text"),
            "numbers have no thousands separators; a list needs `in (…)`",
        )
    has_condition = not begun or any(one in _CONDITION_WORDS for one in cursor.words[: cursor.at])
    if word in ("and", "or"):
        return _joined_sources(cursor, word)
    if word == "-" and cursor.words[cursor.at + 1] == ">" and begun:
        return cursor.fail(
            "`->` has no meaning here",
            suggestion="did you mean `next`? A sequence is: from stock a next stock b",
        )
    goes_on = ("and", "or") if has_condition else ("where",)
    if word in RESERVED:
        return cursor.fail(
            f"`{word}` is not allowed here",
            expected=("the end of the text", *(f"`{one}`" for one in goes_on if one != word)),
            suggestion=position_hint(cursor, word),
        )
    if cursor.kinds[cursor.at - 1] == NUMBER and cursor.words[cursor.at][:1] == "_":
        return cursor.fail("a number ends before `_`", suggestion="numbers have no separators: 12000")
    error = cursor.unexpected(
        f"{'the query' if begun else 'the condition'} before is complete", goes_on, ("the end of the text",)
    )
    if error.suggestion is None or not cursor.is_foreign(cursor.at):
        clause = closest(word, CLAUSE_WORDS, 0.75) if begun else None
        if clause is not None:
            error.suggestion = f"did you mean `{clause}`?"
    error.suggestion = error.suggestion or (
        "two conditions are joined with `and` or `or`"
        if has_condition
        else "a condition stands after `where`"
    )
    return error


def _joined_sources(cursor: Cursor, word: str) -> Exception:
    """Return the error for `and` or `or` where no condition stands before it."""
    if cursor.kinds[cursor.at + 1] not in (NAME, QUOTED):
        return cursor.fail(f"`{word}` joins conditions, and none stands before it", expected=("`where`",))
    both = "events that follow each other are steps: from A a next B b"
    either = "make a subscription for each stream; sequences may `publish as` one name, which others read"
    return cursor.fail(
        f"`{word}` joins conditions, not sources",
        suggestion=f"{both}; conditions stand after `where`" if word == "and" else either,
    )


def position_hint(cursor: Cursor, word: str) -> str | None:
    """Return a suggestion for a clause in the wrong position, if there is one."""
    if word == "not" and cursor.words[cursor.at + 1] in ("next", "fold"):
        return ABSENCE
    if cursor.words[0] in ("from", "select") and word in ("where", "on", "while", "compute"):
        return (
            "clauses have an order: `where`, `compute` in `from`; `on`, `while`, `compute`, `where` in `fold`"
        )
    if word == "where":
        return "a bare condition needs no `where`; with it, begin with `from` and a stream"
    if word == "join":
        return "a view joins two tables, both after the word `table`: from table a join table b on …"
    if word in SEQUENCE_WORDS:
        return "a sequence begins with `from`, and its clauses end with `within`, `select`, `publish`"
    return None
