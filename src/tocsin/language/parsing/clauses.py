"""The clauses that queries share: select lists, conditions, computed values, names."""

from __future__ import annotations

from typing import Final

from tocsin.language.parsing.conditions import ConditionReader
from tocsin.language.parsing.cursor import FOREIGN_SYNTAX, closest
from tocsin.language.parsing.terms import NameScope
from tocsin.language.parsing.tokens import END, NAME, NUMBER, PARAMETER, QUOTED, RESERVED, STRING
from tocsin.language.printer import default_name
from tocsin.model.conditions import TRUE, Condition
from tocsin.model.queries import Computation, SelectItem
from tocsin.model.terms import Span, Term

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


class ClauseReader(ConditionReader):
    """Reads clauses, over the conditions that `ConditionReader` reads."""

    def where(self) -> Condition:
        """Read `where` and its condition; without it, `true`."""
        return self.condition_after("where")

    def condition_after(self, word: str) -> Condition:
        """Read `word` and the condition after it; without it, `true`."""
        return self.condition(f"the condition of `{word}`") if self.accept(word) else TRUE

    def items(self, selected: int) -> tuple[SelectItem, ...]:
        """Read the select list that begins at token `selected`, and return to the present position."""
        back, self.at = self.at, selected
        items = self.select_list()
        if self.words[self.at] != "from":
            raise self.unexpected("the select list does not end here", (",", "as", "from"))
        self.at = back
        return items

    def select_list(self) -> tuple[SelectItem, ...]:
        """Read selected terms and their names; none for `*`."""
        if self.accept("*"):
            return ()
        if self.words[self.at] == "from" or self.kinds[self.at] == END:
            raise self.fail("`select` names nothing", expected=("names", "`*`"))
        items: list[SelectItem] = []
        names: set[str] = set()
        while True:
            at = self.at
            self.operations = 0
            term = self._plain_term("a selected item")
            name = self.name("a column's name") if self.accept("as") else default_name(term)
            if name in names:
                raise self.fail(
                    f"two columns are called `{name}`", at=at, suggestion=f"name one of them: as {name}_2"
                )
            names.add(name)
            items.append(SelectItem(term, name))
            if not self.accept(","):
                return tuple(items)

    def compute(self) -> tuple[Computation, ...]:
        """Read computed values and their names."""
        computations: list[Computation] = []
        names: set[str] = set()
        while True:
            at = self.at
            name = self.name("a computed value's name")
            if name in names:
                raise self.fail(f"`{name}` is computed twice", at=at)
            names.add(name)
            self.expect("=", "a computed value is written name = value")
            self.operations = 0
            computations.append(Computation(name, self._plain_term("a computed value")))
            if not self.accept(","):
                return tuple(computations)

    def _plain_term(self, what: str) -> Term:
        at = self.at
        term = self.term(what)
        if isinstance(term, Span):
            raise self.fail("a length of time can be compared with `duration` only", at=at)
        return term

    def dotted_name(self, what: str) -> str:
        """Read the name of a stream or table, which may have dots."""
        at = self.at
        if self.kinds[at] == NAME:
            if self.words[at] in RESERVED:
                raise self.keyword_as_name(at)
            self.at += 1
            return self.texts[at]
        return self.name(what)

    def alias(self, scope: NameScope) -> str | None:
        """Read a source's alias, if it has one."""
        named = self.accept("as")
        at, kind = self.at, self.kinds[self.at]
        if not named and not (kind == QUOTED or (kind == NAME and self.words[at] not in RESERVED)):
            return None
        alias = self.name("an alias")
        if alias.lower() == "last":
            raise self.fail("`last` means the previous iteration and cannot be an alias", at=at)
        if alias in scope.aliases:
            raise self.fail(
                f"the alias `{alias}` is given twice", at=at, suggestion="give each event its own alias"
            )
        goes_on = self.words[self.at] not in RESERVED and self.kinds[self.at] in _VALUES
        if not named and kind == NAME and (goes_on or self.words[self.at] == "join"):
            hint = FOREIGN_SYNTAX.get(self.words[at])
            if hint:
                raise self.fail(f"`{alias}` is not allowed here", at=at, suggestion=hint)
        # A mistyped clause reads as an alias; the value after it shows the mistake.
        meant = closest(alias, CLAUSE_WORDS, 0.75) if goes_on and kind == NAME and not named else None
        if meant:
            raise self.fail(f"`{alias}` is not a clause", at=at, suggestion=f"did you mean `{meant}`?")
        return alias
