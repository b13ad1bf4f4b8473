"""Conditions: predicates, `and`, `or`, `not`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tocsin.language.parsing import names, terms
from tocsin.language.parsing.cursor import Cursor, closest
from tocsin.language.parsing.foreign import NOT_A_VALUE, STATEMENTS
from tocsin.language.parsing.terms import Parsed
from tocsin.language.parsing.tokens import END, NAME, NUMBER, PARAMETER, QUOTED, RESERVED, STRING, offset_of
from tocsin.language.patterns import compile_regex, like
from tocsin.language.printer import hyphenated_name
from tocsin.model.conditions import FLIPPED, NEGATED, And, Condition, Constant, Not, Operator, Or, Predicate
from tocsin.model.terms import Attribute, Elapsed, Literal, Parameter, Span, Term
from tocsin.model.values import Kind

COMPARISONS: Final = {operator.value: operator for operator in FLIPPED} | {"<>": Operator.NE}
"""The signs of comparisons."""

_WORDED: Final = {
    "between": Operator.BETWEEN,
    "in": Operator.IN,
    "like": Operator.LIKE,
    "starts": Operator.STARTS_WITH,
    "ends": Operator.ENDS_WITH,
    "contains": Operator.CONTAINS,
}
_AFTER_PREDICATE: Final = frozenset(("and", "or", ")", ""))
_ABSENT: Final = dict.fromkeys(
    ("absent", "none", "undefined", "empty", "unknown", "gone", "nan", "nil", "na"), "did you mean `missing`?"
)
_STARTERS: Final = ("select", "from")
_AFTER_TERM: Final = ("=", "!=", "<", "<=", ">", ">=", "between", "in", "like", "starts with", "ends with",
                      "contains", "~", "is missing", "is present")  # fmt: skip


def condition(cursor: Cursor, what: str) -> Condition:
    """Read a condition; `what` names it in an error."""
    at = cursor.at
    return _as_condition(cursor, disjunction(cursor), at, what)


def disjunction(cursor: Cursor) -> Parsed:
    """Read conditions joined by `or`, or a single condition or term."""
    at = cursor.at
    first = _conjunction(cursor)
    if cursor.words[cursor.at] != "or":
        return first
    return Or(_members(cursor, _as_condition(cursor, first, at, "a side of `or`"), "or", _conjunction))


def _conjunction(cursor: Cursor) -> Parsed:
    at = cursor.at
    first = _negation(cursor)
    if cursor.words[cursor.at] != "and":
        return first
    return And(_members(cursor, _as_condition(cursor, first, at, "a side of `and`"), "and", _negation))


def _members(
    cursor: Cursor, first: Condition, word: str, member: Callable[[Cursor], Parsed]
) -> tuple[Condition, ...]:
    """Read the conditions after the first that `word` joins."""
    members, what = [first], f"a side of `{word}`"
    while cursor.words[cursor.at] == word:
        cursor.at += 1
        at = cursor.at
        members.append(_as_condition(cursor, member(cursor), at, what))
    return tuple(members)


def _negation(cursor: Cursor) -> Parsed:
    """Parse a comparison after any number of `not`."""
    if cursor.words[cursor.at] != "not":
        return _comparison(cursor)
    at = cursor.at
    cursor.enter(at)
    cursor.at += 1
    inner = _as_condition(cursor, _negation(cursor), at + 1, "the operand of `not`")
    cursor.depth -= 1
    return Not(inner)


def _comparison(cursor: Cursor) -> Parsed:
    """Parse a predicate; without an operator, return the term itself."""
    at = cursor.at
    # Most filters consist of such predicates, which then skip the levels of arithmetic.
    if cursor.kinds[at] is NAME and cursor.words[at + 1] in COMPARISONS and _is_simple(cursor, at):
        return _simple(cursor, at)
    before = cursor.operations
    left = terms.additive(cursor)
    operator = COMPARISONS.get(cursor.words[cursor.at])
    if operator is not None:
        subject = terms.as_term(cursor, left, at, f"the left side of `{cursor.words[cursor.at]}`")
        cursor.at += 1
        second = cursor.at
        right = terms.term(cursor, f"the right side of `{cursor.words[second - 1]}`")
        if cursor.kinds[second] == QUOTED and cursor.at == second + 1:
            cursor.warnings.append(
                f"{cursor.texts[second]} in double quotes is the name of an attribute; "
                f"a text is written in single quotes: '{cursor.unquote(second)}'"
            )
        if cursor.words[second] in NOT_A_VALUE and cursor.at == second + 1:
            cursor.warnings.append(
                f"`{cursor.texts[second]}` is the name of an attribute here; events have no such value, and absence is "
                "tested by `is missing`"
            )
        predicate = _check(cursor, Predicate(subject, operator, (right,)), at)
    else:
        worded = _word_predicate(cursor, left, at)
        if worded is None:
            return left
        predicate = worded
    cursor.operations = before  # the limit on operations is one of terms, not of conditions
    if cursor.words[cursor.at] in COMPARISONS:
        raise cursor.fail(
            "comparisons do not chain",
            suggestion="join them with `and`: a > 1 and a < 5, or write: a between 1 and 5",
        )
    return predicate


def _is_simple(cursor: Cursor, at: int) -> bool:
    """Return whether token `at` begins `name = constant` and nothing more, the most frequent predicate."""
    return (
        (cursor.kinds[at + 2] is NUMBER or cursor.kinds[at + 2] is STRING)
        and cursor.words[at + 3] in _AFTER_PREDICATE
        and cursor.words[at] not in RESERVED
        and cursor.words[at] != "duration"
        and (cursor.words[at + 3] != "" or cursor.kinds[at + 3] is END)
    )


def _simple(cursor: Cursor, at: int) -> Predicate:
    subject = names.attribute(cursor)
    cursor.at = at + 2
    constant = terms.term(cursor, "the right side")
    return Predicate(subject, COMPARISONS[cursor.words[at + 1]], (constant,))


def _word_predicate(cursor: Cursor, left: Parsed, at: int) -> Predicate | None:
    """Read the rest of a predicate whose operator is a word or a pattern sign; None if there is none."""
    word = cursor.words[cursor.at]
    negated = word == "not" and cursor.words[cursor.at + 1] in _WORDED
    if negated:
        cursor.at += 1
        word = cursor.words[cursor.at]
    if word not in _WORDED and word not in ("~", "!~", "is"):
        return None
    subject = terms.as_term(cursor, left, at, f"the left side of `{word}`")
    cursor.at += 1
    if word == "is":
        return _presence(cursor, subject, at)
    if word in ("~", "!~"):
        return _regex(cursor, subject, negated=word == "!~")
    operator = _WORDED[word]
    if operator is Operator.BETWEEN:
        operands = _bounds(cursor)
    elif operator is Operator.IN:
        operands = _list_members(cursor)
    elif operator is Operator.LIKE:
        return _like(cursor, subject, negated=negated)
    else:
        if operator is not Operator.CONTAINS:
            cursor.expect("with", f"`{word}` is followed by `with`")
        operands = (_text_operand(cursor, operator),)
    return _check(cursor, Predicate(subject, NEGATED[operator] if negated else operator, operands), at)


def _bounds(cursor: Cursor) -> tuple[Term, ...]:
    """Parse the two ends of a `between`."""
    low = terms.term(cursor, "the lower end of `between`")
    if cursor.words[cursor.at] != "and":
        hint = "write: between 1 and 5" if cursor.words[cursor.at] in (",", "to") else None
        raise cursor.unexpected("`between` needs `and` between its two ends", ("and",), (), hint)
    cursor.at += 1
    if cursor.kinds[cursor.at] == END or cursor.words[cursor.at] in ("and", "or", ")"):
        raise cursor.unexpected("the upper end of `between` is missing", (), ("a value",))
    return low, terms.term(cursor, "the upper end of `between`")


def _list_members(cursor: Cursor) -> tuple[Term, ...]:
    """Parse the members of an `in` list, or the parameter that stands for the list."""
    if cursor.kinds[cursor.at] == PARAMETER:
        return (terms.parameter(cursor, cursor.at, many=True),)
    opening = cursor.at
    if cursor.words[opening] != "(":
        texts = cursor.kinds[opening - 2] == STRING and cursor.kinds[opening] == NAME
        part = f"did you mean: {cursor.texts[opening]} contains {cursor.texts[opening - 2]}"
        raise cursor.unexpected(
            "`in` needs a list in parentheses",
            ("(",),
            suggestion=part if texts else "write the members in parentheses: in (1, 2)",
        )
    cursor.at += 1
    members: list[Term] = []
    while cursor.words[cursor.at] != ")":
        if members:
            if cursor.kinds[cursor.at] == END:
                raise cursor.fail("the list that opens here is never closed", at=opening, expected=("`)`",))
            cursor.expect(",", "the members of a list are separated by commas")
            if cursor.words[cursor.at] == ")":
                raise cursor.fail(
                    "a member is missing after the last comma", suggestion="leave the comma out"
                )
        at = cursor.at
        member = terms.term(cursor, "a member of the list")
        if not isinstance(member, (Literal, Parameter)):
            raise cursor.fail(
                "a member of `in` must be a constant",
                at=at,
                suggestion=f"a text is written in single quotes: '{cursor.texts[at]}'"
                if isinstance(member, Attribute)
                else "compute nothing in a list; compare one by one: a = 2 * b or a = 3",
            )
        members.append(member)
    cursor.at += 1
    return tuple(members)


def _like(cursor: Cursor, subject: Term, *, negated: bool) -> Predicate:
    """Parse the pattern of a `like`, and return the predicate."""
    at = cursor.at
    pattern = _pattern(cursor, "like")
    if isinstance(pattern, Parameter):
        return Predicate(subject, Operator.NOT_LIKE if negated else Operator.LIKE, (pattern,))
    try:
        return like(subject, str(pattern.value), negated=negated)
    except ValueError as fault:
        raise cursor.fail(f"the pattern cannot be read: {fault}", at=at) from None


def _regex(cursor: Cursor, subject: Term, *, negated: bool) -> Predicate:
    """Parse the regular expression after `~`, check its syntax and return the predicate."""
    at = cursor.at
    pattern = _pattern(cursor, "~")
    if isinstance(pattern, Literal):
        try:
            compile_regex(str(pattern.value))
        except ValueError as refusal:
            raise cursor.fail(
                f"the regular expression is refused: {refusal}",
                at=at,
                suggestion="the syntax is RE2's: no look-around and no back-references",
            ) from None
    return Predicate(subject, Operator.NOT_REGEX if negated else Operator.REGEX, (pattern,))


def _pattern(cursor: Cursor, word: str) -> Literal | Parameter:
    """Parse a pattern: a string or a parameter."""
    at = cursor.at
    pattern = terms.term(cursor, f"the pattern of `{word}`")
    if isinstance(pattern, Parameter) or (isinstance(pattern, Literal) and pattern.kind is Kind.STRING):
        return pattern
    raise cursor.fail(
        f"`{word}` needs its pattern as a string", at=at, suggestion="write it in 'single quotes'"
    )


def _text_operand(cursor: Cursor, operator: Operator) -> Term:
    """Parse the operand of a text operator: a string, an attribute or a parameter."""
    at = cursor.at
    term = terms.term(cursor, f"the operand of `{operator}`")
    if isinstance(term, (Attribute, Parameter)) or (isinstance(term, Literal) and term.kind is Kind.STRING):
        return term
    raise cursor.fail(
        f"`{operator}` looks for a string", at=at, suggestion="write the text in 'single quotes'"
    )


def _presence(cursor: Cursor, subject: Term, at: int) -> Predicate:
    """Parse the words after `is`, and return the predicate that tests presence."""
    if not isinstance(subject, Attribute):
        name = hyphenated_name(subject)
        raise cursor.fail(
            "only an attribute can be missing or present",
            at=at,
            suggestion=f"did you mean the name {name}? With a `-` in it, it is written in double quotes"
            if name
            else None,
        )
    negated = cursor.accept("not")
    word = cursor.words[cursor.at]
    if word in ("missing", "null"):
        operator = Operator.MISSING
    elif word == "present":
        operator = Operator.PRESENT
    else:
        suggestion = f"a boolean is compared: = {word}" if word in ("true", "false") else _ABSENT.get(word)
        if cursor.kinds[cursor.at] in (NUMBER, STRING):
            suggestion = f"a value is compared: {'!=' if negated else '='} {cursor.texts[cursor.at]}"
        elif word in _WORDED and negated:
            suggestion = f"did you mean `not {word}`, without `is`?"
        raise cursor.unexpected("`is` tests presence only", ("missing", "present", "null"), (), suggestion)
    cursor.at += 1
    return Predicate(subject, NEGATED[operator] if negated else operator)


def _check(cursor: Cursor, predicate: Predicate, at: int) -> Predicate:
    """Return `predicate`, or raise if it compares a length of time with anything but `duration`."""
    if not cursor.timed:
        return predicate
    sides = (predicate.subject, *predicate.operands)
    has_span = any(isinstance(side, Span) for side in sides)
    has_elapsed = any(isinstance(side, Elapsed) for side in sides)
    if has_span and not has_elapsed:
        raise cursor.fail(
            "a length of time can be compared with `duration` only",
            at=at,
            suggestion=None
            if cursor.scope.sequence
            else "`duration` belongs to sequences; see `next` and `fold`",
        )
    if has_elapsed and any(isinstance(t, Literal) and t.kind is not Kind.NUMBER for t in sides):
        raise cursor.fail(
            "`duration` is compared with a length of time, such as `10 minutes`, or a number of ticks", at=at
        )
    return predicate


def _as_condition(cursor: Cursor, parsed: Parsed, at: int, what: str) -> Condition:
    if terms.is_condition(parsed):
        return parsed  # type: ignore[return-value]
    if isinstance(parsed, Literal) and parsed.kind is Kind.BOOLEAN:
        return Constant(parsed.value is True)
    raise _no_comparison(cursor, parsed, at, what)


def _no_comparison(cursor: Cursor, parsed: Parsed, at: int, what: str) -> Exception:
    """Return the error for a value instead of a condition, as after a mistyped operator."""
    kind = cursor.kinds[cursor.at]
    if at == 0 and cursor.at == 1 and cursor.words[0] in STATEMENTS and kind in (NAME, QUOTED):
        return cursor.fail(
            f"`{cursor.texts[0]}` begins no subscription", at=0, suggestion=STATEMENTS[cursor.words[0]]
        )
    if cursor.words[cursor.at] == "not" and cursor.is_foreign(cursor.at + 1):
        return cursor.unexpected("a comparison is missing", _AFTER_TERM)
    if kind == NAME and cursor.words[cursor.at] not in RESERVED and at == 0 and cursor.at == 1:
        starter = closest(cursor.words[0], _STARTERS, 0.75)
        if starter:
            return cursor.fail(
                f"`{cursor.texts[0]}` begins no subscription", at=0, suggestion=f"did you mean `{starter}`?"
            )
    if cursor.words[cursor.at] == "not" and cursor.words[cursor.at + 1] in COMPARISONS:
        return cursor.fail(
            "`not` is not allowed before a comparison sign", suggestion="write `!=`, or `not` before it all"
        )
    if cursor.words[cursor.at] == "not" and cursor.words[cursor.at + 1] in ("null", "missing", "present"):
        return cursor.fail(
            "`is` is missing before `not`", suggestion=f"write: is not {cursor.words[cursor.at + 1]}"
        )
    if kind == END or cursor.words[cursor.at] in RESERVED or cursor.words[cursor.at] in (")", ";"):
        shown = cursor.text[offset_of(cursor.text, at) : offset_of(cursor.text, cursor.at)].strip()
        flag = isinstance(parsed, Attribute)
        return cursor.fail(
            f"{what} must be a condition, but `{shown}` is only a value",
            at=at,
            expected=("a comparison after it",),
            suggestion=f"if it is a boolean, write: {shown} = true" if flag else None,
        )
    after = cursor.words[cursor.at + 1]
    if isinstance(parsed, Attribute) and kind == NAME and (after in COMPARISONS or after in _WORDED):
        both = f"{cursor.texts[cursor.at - 1]} {cursor.texts[cursor.at]}"
        hint = (
            None
            if cursor.is_foreign(cursor.at)
            else f'a name with a space is written in double quotes: "{both}"'
        )
        return cursor.unexpected("a comparison is missing", _AFTER_TERM, (), hint)
    return cursor.unexpected("a comparison is missing", _AFTER_TERM)
