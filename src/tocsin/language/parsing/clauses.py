"""The clauses that queries share: select lists, conditions, computed values, names."""

from __future__ import annotations

from typing import Final

from tocsin.language.parsing import conditions, terms
from tocsin.language.parsing.cursor import Cursor, NameScope, closest
from tocsin.language.parsing.foreign import FOREIGN_SYNTAX
from tocsin.language.parsing.tokens import END, NAME, NUMBER, PARAMETER, QUOTED, RESERVED, STRING
from tocsin.language.printer import default_name
from tocsin.model.conditions import TRUE, Condition
from tocsin.model.queries import Computation, SelectItem
from tocsin.model.terms import Span, Star, Term

CLAUSE_WORDS: Final = (
    "where",
    "next",
    "fold",
    "within",
    "select",
    "publish",
    "compute",
    "on",
    "while",
    "join",
)
_VALUES: Final = (NAME, QUOTED, NUMBER, STRING, PARAMETER)


def where(cursor: Cursor) -> Condition:
    """Read `where` and its condition; without it, `true`."""
    return condition_after(cursor, "where")


def condition_after(cursor: Cursor, word: str) -> Condition:
    """Read `word` and the condition after it; without it, `true`."""
    return conditions.condition(cursor, f"the condition of `{word}`") if cursor.accept(word) else TRUE


def items(cursor: Cursor, selected: int) -> tuple[SelectItem, ...]:
    """Read the select list that begins at token `selected`, and return to the present position."""
    back, cursor.at = cursor.at, selected
    items = select_list(cursor)
    if cursor.words[cursor.at] != "from":
        raise cursor.unexpected(
            "the select list does not end here", (",", "as", "from"), (), _select_hint(cursor)
        )
    cursor.at = back
    return items


def _select_hint(cursor: Cursor) -> str | None:
    """Return what to write instead of the next token, which no select list has."""
    at, word = cursor.at, cursor.words[cursor.at]
    before = cursor.words[at - 1]
    if word == "over":
        return FOREIGN_SYNTAX["partition"]
    if before in ("top", "case"):
        return FOREIGN_SYNTAX[before]
    if word == "." and cursor.words[at + 1] == "*":
        return "`*` alone has the attributes of all sources: select *; or name the attributes of one"
    if word in ("=", "<", ">", "<=", ">=", "!=", "<>"):
        return (
            "what is selected is a value; conditions stand after `where`: select * from stock where price > 5"
        )
    if word not in FOREIGN_SYNTAX and cursor.kinds[at] in (NAME, QUOTED):
        return f"a name stands after `as`: … as {cursor.texts[at]}"
    return None


def select_list(cursor: Cursor) -> tuple[SelectItem, ...]:
    """Read selected terms and their names; none for `*` alone."""
    items: list[SelectItem] = []
    if cursor.accept("*"):
        if not cursor.accept(","):
            return ()
        items.append(SelectItem(Star(), "*"))
    if cursor.words[cursor.at] == "from" or cursor.kinds[cursor.at] == END:
        raise cursor.fail("`select` names nothing", expected=("names", "`*`"))
    names: set[str] = set()
    while True:
        at = cursor.at
        cursor.operations = 0
        if cursor.words[at] == "*":
            raise cursor.fail(
                "`*` stands first in a select list, and once",
                suggestion="write: select *, price * 2 as twice",
            )
        term = _plain_term(cursor, "a selected item")
        name = cursor.name("a column's name") if cursor.accept("as") else default_name(term)
        if name in names:
            hint = f"name one of them: as {name}_2"
            raise cursor.fail(f"two columns are called `{name}`", at=at, suggestion=hint)
        names.add(name)
        items.append(SelectItem(term, name))
        if not cursor.accept(","):
            return tuple(items)


def compute(cursor: Cursor) -> tuple[Computation, ...]:
    """Read computed values and their names."""
    computations: list[Computation] = []
    names: set[str] = set()
    while True:
        at = cursor.at
        name = cursor.name("a computed value's name")
        if name in names:
            raise cursor.fail(f"`{name}` is computed twice", at=at)
        names.add(name)
        cursor.expect("=", "a computed value is written name = value")
        cursor.operations = 0
        computations.append(Computation(name, _plain_term(cursor, "a computed value")))
        if not cursor.accept(","):
            return tuple(computations)


def _plain_term(cursor: Cursor, what: str) -> Term:
    at = cursor.at
    term = terms.term(cursor, what)
    if isinstance(term, Span):
        raise cursor.fail("a length of time can be compared with `duration` only", at=at)
    return term


def dotted_name(cursor: Cursor, what: str) -> str:
    """Read the name of a stream or table, which may have dots."""
    at = cursor.at
    if cursor.kinds[at] == NAME:
        if cursor.words[at] in RESERVED:
            raise cursor.keyword_as_name(at)
        cursor.at += 1
        return cursor.texts[at]
    return cursor.name(what)


def alias(cursor: Cursor, scope: NameScope) -> str | None:
    """Read a source's alias, if it has one."""
    named = cursor.accept("as")
    at, kind = cursor.at, cursor.kinds[cursor.at]
    if not named and not (kind == QUOTED or (kind == NAME and cursor.words[at] not in RESERVED)):
        return None
    alias = cursor.name("an alias")
    if alias.lower() == "last":
        raise cursor.fail("`last` means the previous iteration and cannot be an alias", at=at)
    if alias in scope.aliases:
        own = "give each event its own alias"
        raise cursor.fail(f"the alias `{alias}` is given twice", at=at, suggestion=own)
    goes_on = cursor.words[cursor.at] not in RESERVED and cursor.kinds[cursor.at] in _VALUES
    if not named and kind == NAME and (goes_on or cursor.words[cursor.at] in ("join", "select", "(")):
        hint = FOREIGN_SYNTAX.get(cursor.words[at])
        if hint:
            raise cursor.fail(f"`{alias}` is not allowed here", at=at, suggestion=hint)
    # A mistyped clause reads as an alias; the value after it shows the mistake.
    meant = closest(alias, CLAUSE_WORDS, 0.75) if goes_on and kind == NAME and not named else None
    if meant:
        raise cursor.fail(f"`{alias}` is not a clause", at=at, suggestion=f"did you mean `{meant}`?")
    return alias
