"""Text to tokens, in one pass of one regular expression."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final, NamedTuple

from tocsin.model.errors import LanguageError

NAME: Final = "name"
QUOTED: Final = "quoted"
NUMBER: Final = "number"
STRING: Final = "string"
PARAMETER: Final = "parameter"
SIGN: Final = "sign"
END: Final = "end"

RESERVED: Final = frozenset((
    "and", "as", "between", "compute", "distinct", "false", "fold", "from", "in", "is", "join", "like", "next",
    "not", "null", "on", "or", "publish", "select", "true", "where", "while", "within",
))  # fmt: skip
"""Keywords that are names only in double quotes; every other keyword is one only where it is expected."""

_WORD = r"[^\W\d]\w*"
BARE_NAME: Final = re.compile(rf"{_WORD}(?:\.{_WORD})*")

# One group, so that `findall` gives the tokens alone; the last is empty, at the end of the text.
_TOKEN = re.compile(
    rf"""(?:\s|--[^\n]*)*+(
     {_WORD}(?:\.{_WORD})*
    |(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?
    |'[^']*+(?:''[^']*+)*+'
    |<=|>=|<>|!=|!~|==|=>|=<|=~|&&|\|\||[=<>~(),*+\-/.;!%^]
    |:{_WORD}
    |"[^"]*+(?:""[^"]*+)*+"
    |\Z|.)""",
    re.VERBOSE | re.DOTALL,
)
_KINDS = (
    dict.fromkeys("0123456789", NUMBER)
    | dict.fromkeys("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", NAME)
    | dict.fromkeys("=<>~(),*+-/.;!%^", SIGN)
    | {"'": STRING, '"': QUOTED, ":": PARAMETER}
)  # by a token's first character
_LONE = frozenset(("'", '"', ":"))  # they begin a token and are none by themselves

_ODD_NAME = re.compile(r"[^\s\w'\"][\w.@$/#-]*\w")
_AMOUNT_BEFORE = re.compile(r"\b([0-9]+(?:\.[0-9]+)?)$")
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)")

_FAULTS = {
    "'": ("the string that begins here has no closing `'`", "inside a string, write a quote twice: 'it''s'"),
    '"': ('the name that begins here has no closing `"`', None),
    ":": ("a `:` begins a parameter and needs a name, such as `:price`", None),
    "[": ("`[` has no meaning here", "a list is written in parentheses: in (1, 2)"),
    "{": ("`{` has no meaning here", "a list is written in parentheses: in (1, 2)"),
    "`": ("a backquote has no meaning here", 'a name is quoted with double quotes: "my name"'),
    "#": ("`#` has no meaning here", "a comment begins with `--`"),
    "&": ("`&` has no meaning here", "did you mean `and`?"),
    "|": ("`|` has no meaning here", "did you mean `or`?"),
    "?": ("`?` has no meaning here", "a parameter has a name, such as `:price`, and belongs to a template"),
    "\\": ("a backslash has no meaning here", None),
    "\N{LESS-THAN OR EQUAL TO}": ("this sign has no meaning here", "did you mean `<=`?"),
    "\N{GREATER-THAN OR EQUAL TO}": ("this sign has no meaning here", "did you mean `>=`?"),
    "\N{NOT EQUAL TO}": ("this sign has no meaning here", "did you mean `!=`?"),
    "\N{EN DASH}": ("a dash has no meaning here", "did you mean `-`?"),
    "\N{MINUS SIGN}": ("this sign has no meaning here", "did you mean `-`?"),
    "\N{MULTIPLICATION SIGN}": ("this sign has no meaning here", "did you mean `*`?"),
    "\N{LOGICAL AND}": ("this sign has no meaning here", "did you mean `and`?"),
    "\N{LOGICAL OR}": ("this sign has no meaning here", "did you mean `or`?"),
} | dict.fromkeys(
    "\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}"
    "\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}",
    ("a curly quote does not begin a string", "write straight quotes: 'IBM'"),
)


class Tokens(NamedTuple):
    """Tokens as parallel lists, closed by some of kind `END`.

    `words` holds the text that keywords and signs are compared with: the sign itself, or a bare name in lower
    case. It is empty for every other token.
    """

    kinds: list[str]
    texts: list[str]
    words: list[str]


def tokenize(text: str) -> Tokens:
    """Return the tokens of `text`, or raise `LanguageError` at the first character that begins none.

    >>> tokenize("price >= 1.5 -- dear").texts
    ['price', '>=', '1.5', '', '', '', '']
    """
    texts: list[str] = _TOKEN.findall(text)
    if len(texts) > 1 and not texts[-2]:
        texts.pop()  # white space at the end makes the end match twice
    kinds: list[str] = []
    words: list[str] = []
    for token in texts:
        kind = _KINDS.get(token[:1]) or _unusual(text, token, len(kinds))
        if kind is NAME:
            words.append(token.lower())
        elif kind is SIGN:
            if token[0] == "." and len(token) > 1:
                kind = NUMBER
            words.append("" if kind is NUMBER else token)
        else:
            if token in _LONE:
                raise _fault(text, offset_of(text, len(kinds)))
            words.append("")
        kinds.append(kind)
    for column in (kinds, texts, words):  # looking three tokens ahead then needs no bound check
        column.extend(column[-1:] * 3)
    return Tokens(kinds, texts, words)


def offset_of(text: str, index: int) -> int:
    """Return the offset of token `index`. Only errors need it, so it is computed again instead of stored."""
    found = next(islice(_TOKEN.finditer(text), index, None))
    return found.start(1) if found.group(1) else len(text.rstrip())


def _unusual(text: str, token: str, index: int) -> str:
    """Return the kind of a token that no ASCII character begins, or raise `LanguageError`."""
    if not token:
        return END
    if BARE_NAME.fullmatch(token):
        return NAME
    if token in ("&&", "||"):
        return SIGN
    raise _fault(text, offset_of(text, index))


def _fault(text: str, at: int) -> LanguageError:
    character = text[at]
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    reason, suggestion = _FAULTS.get(character, (f"the character `{shown}` has no meaning here", None))
    if character == ":":
        suggestion = "a comparison has a sign: price = 5, price >= 5"
    elif character == "{" and not text[:at].strip():
        reason, suggestion = (
            "a query in JSON is no text",
            "give the object itself, as from_json does; or write: price > 5",
        )
    elif character == "[" and at and (text[at - 1].isalnum() or text[at - 1] == "_"):
        suggestion = "an attribute is its name alone, with dots if it is nested: price > 5, order.price > 5"
    elif not character.isprintable():
        suggestion = "it cannot be seen; leave it out"
    elif suggestion is None:
        name = _ODD_NAME.match(text, at)
        amount = _AMOUNT_BEFORE.search(text[:at]) or _AMOUNT.match(text, at + 1)
        if amount:
            suggestion = f"numbers have no units and no currency: {amount[1]}"
        elif name:
            suggestion = f'a name with such characters is written in double quotes: "{name[0]}"'
    return LanguageError(reason, text=text, offset=at, suggestion=suggestion)
