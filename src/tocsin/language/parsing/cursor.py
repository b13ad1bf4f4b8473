"""A cursor over tokens: the names known at its position, and the errors raised there."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from tocsin.language.parsing.foreign import BEFORE_A_STRING, FOREIGN_SYNTAX
from tocsin.language.parsing.tokens import END, NAME, PARAMETER, QUOTED, RESERVED, STRING, offset_of, tokenize
from tocsin.model.errors import LanguageError

MAX_DEPTH: Final = 64
"""The deepest nesting of parentheses, `not` and minus signs; flat lists of conditions have no limit."""

_SHORTEST: Final = 3  # letters of a word that may be another with two letters in the wrong order


def closest(word: str, candidates: list[str] | tuple[str, ...], likeness: float = 0.7) -> str | None:
    """Return the candidate nearest to `word`, or None if none is near.

    >>> closest("adn", ("and", "or"))
    'and'
    """
    lower = word.lower()
    near = get_close_matches(lower, [c.lower() for c in candidates], 1, likeness)
    if not near:  # in short words two letters that change places count for more than they are
        return next((c for c in candidates if _is_transposed(lower, c.lower())), None)
    return next((c for c in candidates if c.lower() == near[0]), None)


def _is_transposed(word: str, other: str) -> bool:
    """Tell whether two neighbouring letters of a word, which is not too short, change places in another."""
    if len(word) != len(other) or len(word) < _SHORTEST:
        return False
    differ = [at for at, (one, two) in enumerate(zip(word, other, strict=True)) if one != two]
    at = differ[0] if differ else 0
    return differ == [at, at + 1] and word[at : at + 2] == other[at + 1] + other[at]


@dataclass(slots=True)
class NameScope:
    """The names that are known at the current position."""

    aliases: list[str] = field(default_factory=list)
    sequence: bool = False
    joined: bool = False  # every name needs the alias of its table
    single: str | None = None  # the alias or name of the only source, which may precede any attribute
    renamed: str | None = None  # the name of the only source, which its alias replaces
    unnamed: list[str] = field(default_factory=list)  # streams of a sequence whose events have no alias
    last: bool = False  # `last.x` is allowed
    bare: dict[str, int] | None = (
        None  # names without an alias in a fold's `on` and `while`, with their token
    )
    computed: set[str] = field(default_factory=set)  # names that earlier steps compute
    elapsed: bool = False  # `duration` is allowed
    aggregates: str | None = "an aggregate needs a table: select min(price) from table stock"


class Cursor:
    """The tokens of one text, the position of the next one, and the names that are known there.

    `parameters` collects the names of parameters, and is None if the text is not a template.
    """

    def __init__(self, text: str, *, template: bool = False) -> None:
        self.text = text
        if not text.isascii():
            self._refuse_surrogates()
        self.kinds, self.texts, self.words = tokenize(text)
        self.at = 0
        self.depth = 0
        self.scope = NameScope()
        self.parameters: dict[str, None] | None = {} if template else None
        self.operations = 0  # arithmetic operations in the present term so far
        self.warnings: list[str] = []
        self.timed = False  # whether a length of time has been read

    def accept(self, word: str) -> bool:
        """Skip `word` if it is the next token; return whether it was."""
        if self.words[self.at] == word:
            self.at += 1
            return True
        return False

    def expect(self, word: str, context: str) -> None:
        """Skip `word`, or raise an error that begins with `context`."""
        if self.words[self.at] == word:
            self.at += 1
        else:
            raise self.unexpected(context, (word,))

    def name(self, what: str) -> str:
        """Read one undotted name, bare or in double quotes."""
        at, kind = self.at, self.kinds[self.at]
        if kind == QUOTED:
            self.at += 1
            return self.unquote(at)
        if kind != NAME:
            raise self.unexpected(f"{what} is missing", (), (what,))
        if self.words[at] in RESERVED:
            raise self.keyword_as_name(at)
        if "." in self.texts[at]:
            raise self.fail(f"{what} has no dots; write it in double quotes to keep them", at=at)
        self.at += 1
        return self.texts[at]

    def unquote(self, at: int) -> str:
        """Return the name in double quotes at token `at`."""
        name = self.texts[at][1:-1].replace('""', '"')
        if not name:
            raise self.fail("a name cannot be empty", at=at)
        return name

    def enter(self, at: int) -> None:
        """Count one more level of nesting."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail(
                f"nested more than {MAX_DEPTH} levels deep",
                at=at,
                suggestion="long lists of `and` and `or` need no parentheses between their members",
            )

    def fail(
        self,
        reason: str,
        *,
        at: int | None = None,
        expected: tuple[str, ...] = (),
        suggestion: str | None = None,
    ) -> LanguageError:
        """Return an error with its caret under token `at`, by default the next one."""
        token = self.at if at is None else at
        return LanguageError(
            reason,
            text=self.text,
            offset=offset_of(self.text, token),
            length=len(self.texts[token]),
            expected=expected,
            suggestion=suggestion,
        )

    def unexpected(
        self,
        context: str,
        words: tuple[str, ...],
        phrases: tuple[str, ...] = (),
        suggestion: str | None = None,
    ) -> LanguageError:
        """Return the error for a next token that is none of `words` (keywords, signs) nor any of `phrases`."""
        # A known counterpart from another language is a better hint than a similar word.
        word = self.words[self.at]
        near = closest(word, words, 0.6) if self.kinds[self.at] == NAME else None
        if suggestion is None:
            suggestion = self._foreign_hint() or (f"did you mean `{near}`?" if near else None)
        expected = (*phrases, *(f"`{w}`" for w in words))
        return self.fail(f"{context}, found {self.token_text()}", expected=expected, suggestion=suggestion)

    def is_foreign(self, at: int) -> bool:
        """Tell whether another language has the word or the sign at token `at`, and this one has not."""
        return self.words[at] in FOREIGN_SYNTAX

    def _foreign_hint(self) -> str | None:
        """Return what this language has instead of the next token, if another language has that."""
        word = self.words[self.at]
        if word == "not" and self.is_foreign(self.at + 1):
            word = self.words[self.at + 1]
        if word in FOREIGN_SYNTAX:
            return FOREIGN_SYNTAX[word]
        if self.kinds[self.at] == STRING and self.at:
            return BEFORE_A_STRING.get(self.words[self.at - 1])
        if self.kinds[self.at] == PARAMETER and self.parameters is None:
            return f"a comparison has a sign: name = '{self.texts[self.at][1:]}'"
        return None

    def token_text(self) -> str:
        """Return the next token as an error message shows it."""
        kind, token = self.kinds[self.at], self.texts[self.at]
        if kind == END:
            return "the end of the text"
        shown = token if len(token) <= 40 else token[:39] + "…"
        return f"the string {shown}" if kind == STRING else f"`{shown}`"

    def keyword_as_name(self, at: int) -> LanguageError:
        """Return the error for a reserved word instead of a name."""
        word = self.texts[at]
        return self.fail(
            f"`{word}` is a keyword and not allowed here",
            at=at,
            suggestion=f'if it is a name, write it in double quotes: "{word}"',
        )

    def _refuse_surrogates(self) -> None:
        try:
            self.text.encode()
        except UnicodeEncodeError as fault:
            raise LanguageError(
                "the text is not valid Unicode: a lone surrogate", text=self.text, offset=fault.start
            ) from None
