"""Conditions: predicates, `and`, `or`, `not`."""

from __future__ import annotations

from typing import Final

from tocsin.language.parsing.cursor import closest
from tocsin.language.parsing.terms import Parsed, TermReader, is_condition
from tocsin.language.parsing.tokens import END, NAME, NUMBER, PARAMETER, QUOTED, RESERVED, STRING, offset_of
from tocsin.language.patterns import compile_regex, like
from tocsin.model.conditions import FALSE, NEGATED, TRUE, And, Condition, Not, Operator, Or, Predicate
from tocsin.model.terms import Attribute, Elapsed, Literal, Parameter, Span, Term
from tocsin.model.values import Kind

_COMPARISONS: Final = {
    "=": Operator.EQ,
    "!=": Operator.NE,
    "<>": Operator.NE,
    "<": Operator.LT,
    "<=": Operator.LE,
    ">": Operator.GT,
    ">=": Operator.GE,
}
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
    ("absent", "none", "undefined", "empty", "unknown", "gone"), "did you mean `missing`?"
)
_STARTERS: Final = ("select", "from")
_AFTER_TERM: Final = ("=", "!=", "<", "<=", ">", ">=", "between", "in", "like", "starts with", "ends with",
                      "contains", "~", "is missing", "is present")  # fmt: skip


class ConditionReader(TermReader):
    """Reads conditions, over the terms that `TermReader` reads."""

    def condition(self, what: str) -> Condition:
        """Read a condition; `what` names it in an error."""
        at = self.at
        return self._as_condition(self.disjunction(), at, what)

    def disjunction(self) -> Parsed:
        """Read conditions joined by `or`, or a single condition or term."""
        at = self.at
        first = self._conjunction()
        if self.words[self.at] != "or":
            return first
        members = [self._as_condition(first, at, "a side of `or`")]
        while self.words[self.at] == "or":
            self.at += 1
            at = self.at
            members.append(self._as_condition(self._conjunction(), at, "a side of `or`"))
        return Or(tuple(members))

    def _conjunction(self) -> Parsed:
        at = self.at
        first = self._negation()
        if self.words[self.at] != "and":
            return first
        members = [self._as_condition(first, at, "a side of `and`")]
        while self.words[self.at] == "and":
            self.at += 1
            at = self.at
            members.append(self._as_condition(self._negation(), at, "a side of `and`"))
        return And(tuple(members))

    def _negation(self) -> Parsed:
        if self.words[self.at] != "not":
            return self._comparison()
        at = self.at
        self.enter(at)
        self.at += 1
        inner = self._as_condition(self._negation(), at + 1, "the operand of `not`")
        self.depth -= 1
        return Not(inner)

    def _comparison(self) -> Parsed:
        at = self.at
        # Most filters consist of such predicates, which then skip the levels of arithmetic.
        if self.kinds[at] is NAME and self.words[at + 1] in _COMPARISONS and self._is_simple(at):
            return self._simple(at)
        before = self.operations
        left = self.sum()
        operator = _COMPARISONS.get(self.words[self.at])
        if operator is not None:
            subject = self.as_term(left, at, f"the left side of `{self.words[self.at]}`")
            self.at += 1
            second = self.at
            right = self.term(f"the right side of `{self.words[second - 1]}`")
            if self.kinds[second] == QUOTED and self.at == second + 1:
                self.warnings.append(
                    f"{self.texts[second]} in double quotes is the name of an attribute; "
                    f"a text is written in single quotes: '{self.unquoted(second)}'"
                )
            predicate = self._checked(Predicate(subject, operator, (right,)), at)
        else:
            worded = self._worded(left, at)
            if worded is None:
                return left
            predicate = worded
        self.operations = before  # the limit on operations is one of terms, not of conditions
        if self.words[self.at] in _COMPARISONS:
            raise self.fail(
                "comparisons do not chain",
                suggestion="join them with `and`: a > 1 and a < 5, or write: a between 1 and 5",
            )
        return predicate

    def _is_simple(self, at: int) -> bool:
        """Return whether token `at` begins `name = constant` and nothing more, the most frequent predicate."""
        return (
            (self.kinds[at + 2] is NUMBER or self.kinds[at + 2] is STRING)
            and self.words[at + 3] in _AFTER_PREDICATE
            and self.words[at] not in RESERVED
            and self.words[at] != "duration"
            and (self.words[at + 3] != "" or self.kinds[at + 3] is END)
        )

    def _simple(self, at: int) -> Predicate:
        subject = self.attribute()
        self.at = at + 2
        constant = self.term("the right side")
        return Predicate(subject, _COMPARISONS[self.words[at + 1]], (constant,))

    def _worded(self, left: Parsed, at: int) -> Predicate | None:
        """Read the rest of a predicate whose operator is a word or a pattern sign; None if there is none."""
        word = self.words[self.at]
        negated = word == "not" and self.words[self.at + 1] in _WORDED
        if negated:
            self.at += 1
            word = self.words[self.at]
        if word not in _WORDED and word not in ("~", "!~", "is"):
            return None
        subject = self.as_term(left, at, f"the left side of `{word}`")
        self.at += 1
        if word == "is":
            return self._presence(subject, at)
        if word in ("~", "!~"):
            return self._regex(subject, negated=word == "!~")
        operator = _WORDED[word]
        if operator is Operator.BETWEEN:
            operands = self._bounds()
        elif operator is Operator.IN:
            operands = self._members()
        elif operator is Operator.LIKE:
            return self._like(subject, negated=negated)
        else:
            if operator is not Operator.CONTAINS:
                self.expect("with", f"`{word}` is followed by `with`")
            operands = (self._text_operand(operator),)
        return self._checked(Predicate(subject, NEGATED[operator] if negated else operator, operands), at)

    def _bounds(self) -> tuple[Term, ...]:
        low = self.term("the lower end of `between`")
        if self.words[self.at] != "and":
            raise self.unexpected("`between` needs `and` between its two ends", ("and",))
        self.at += 1
        if self.kinds[self.at] == END or self.words[self.at] in ("and", "or", ")"):
            raise self.unexpected("the upper end of `between` is missing", (), ("a value",))
        return low, self.term("the upper end of `between`")

    def _members(self) -> tuple[Term, ...]:
        if self.kinds[self.at] == PARAMETER:
            return (self._parameter(self.at, many=True),)
        opening = self.at
        if self.words[opening] != "(":
            raise self.unexpected(
                "`in` needs a list in parentheses",
                ("(",),
                suggestion="write the members in parentheses: in (1, 2)",
            )
        self.at += 1
        members: list[Term] = []
        while self.words[self.at] != ")":
            if members:
                if self.kinds[self.at] == END:
                    raise self.fail("the list that opens here is never closed", at=opening, expected=("`)`",))
                self.expect(",", "the members of a list are separated by commas")
            at = self.at
            member = self.term("a member of the list")
            if not isinstance(member, (Literal, Parameter)):
                raise self.fail(
                    "a member of `in` must be a constant",
                    at=at,
                    suggestion=f"a text is written in single quotes: '{self.texts[at]}'"
                    if isinstance(member, Attribute)
                    else "compute nothing in a list; compare one by one: a = 2 * b or a = 3",
                )
            members.append(member)
        self.at += 1
        return tuple(members)

    def _like(self, subject: Term, *, negated: bool) -> Predicate:
        at = self.at
        pattern = self._pattern("like")
        if isinstance(pattern, Parameter):
            return Predicate(subject, Operator.NOT_LIKE if negated else Operator.LIKE, (pattern,))
        try:
            return like(subject, str(pattern.value), negated=negated)
        except ValueError as fault:
            raise self.fail(f"the pattern cannot be read: {fault}", at=at) from None

    def _regex(self, subject: Term, *, negated: bool) -> Predicate:
        at = self.at
        pattern = self._pattern("~")
        if isinstance(pattern, Literal):
            try:
                compile_regex(str(pattern.value))
            except ValueError as refusal:
                raise self.fail(
                    f"the regular expression is refused: {refusal}",
                    at=at,
                    suggestion="the syntax is RE2's: no look-around and no back-references",
                ) from None
        return Predicate(subject, Operator.NOT_REGEX if negated else Operator.REGEX, (pattern,))

    def _pattern(self, word: str) -> Literal | Parameter:
        at = self.at
        pattern = self.term(f"the pattern of `{word}`")
        if isinstance(pattern, Parameter) or (isinstance(pattern, Literal) and pattern.kind is Kind.STRING):
            return pattern
        raise self.fail(
            f"`{word}` needs its pattern as a string", at=at, suggestion="write it in 'single quotes'"
        )

    def _text_operand(self, operator: Operator) -> Term:
        at = self.at
        term = self.term(f"the operand of `{operator}`")
        if isinstance(term, (Attribute, Parameter)) or (
            isinstance(term, Literal) and term.kind is Kind.STRING
        ):
            return term
        raise self.fail(
            f"`{operator}` looks for a string", at=at, suggestion="write the text in 'single quotes'"
        )

    def _presence(self, subject: Term, at: int) -> Predicate:
        if not isinstance(subject, Attribute):
            raise self.fail("only an attribute can be missing or present", at=at)
        negated = self.accept("not")
        word = self.words[self.at]
        if word in ("missing", "null"):
            operator = Operator.MISSING
        elif word == "present":
            operator = Operator.PRESENT
        else:
            suggestion = (
                f"a boolean is compared: = {word}" if word in ("true", "false") else _ABSENT.get(word)
            )
            raise self.unexpected("`is` tests presence only", ("missing", "present", "null"), (), suggestion)
        self.at += 1
        return Predicate(subject, NEGATED[operator] if negated else operator)

    def _checked(self, predicate: Predicate, at: int) -> Predicate:
        """Return `predicate`, or raise if it compares a length of time with anything but `duration`."""
        if not self.timed:
            return predicate
        terms = (predicate.subject, *predicate.operands)
        has_span = any(isinstance(term, Span) for term in terms)
        has_elapsed = any(isinstance(term, Elapsed) for term in terms)
        if has_span and not has_elapsed:
            raise self.fail(
                "a length of time can be compared with `duration` only",
                at=at,
                suggestion=None
                if self.scope.sequence
                else "`duration` belongs to sequences; see `next` and `fold`",
            )
        if has_elapsed and any(isinstance(t, Literal) and t.kind is not Kind.NUMBER for t in terms):
            raise self.fail(
                "`duration` is compared with a length of time, such as `10 minutes`, or a number of ticks",
                at=at,
            )
        return predicate

    def _as_condition(self, parsed: Parsed, at: int, what: str) -> Condition:
        if is_condition(parsed):
            return parsed  # type: ignore[return-value]
        if isinstance(parsed, Literal) and parsed.kind is Kind.BOOLEAN:
            return TRUE if parsed.value else FALSE
        raise self._no_comparison(parsed, at, what)

    def _no_comparison(self, parsed: Parsed, at: int, what: str) -> Exception:
        """Return the error for a value in the place of a condition, as after a mistyped operator."""
        kind = self.kinds[self.at]
        if kind == NAME and self.words[self.at] not in RESERVED and at == 0 and self.at == 1:
            starter = closest(self.words[0], _STARTERS, 0.75)
            if starter:
                return self.fail(
                    f"`{self.texts[0]}` begins no subscription", at=0, suggestion=f"did you mean `{starter}`?"
                )
        if self.words[self.at] == "not" and self.words[self.at + 1] in _COMPARISONS:
            return self.fail(
                "`not` is not allowed before a comparison sign",
                suggestion="write `!=`, or `not` before it all",
            )
        if kind == END or self.words[self.at] in RESERVED or self.words[self.at] in (")", ";"):
            shown = self.text[offset_of(self.text, at) : offset_of(self.text, self.at)].strip()
            flag = isinstance(parsed, Attribute)
            return self.fail(
                f"{what} must be a condition, but `{shown}` is only a value",
                at=at,
                expected=("a comparison after it",),
                suggestion=f"if it is a boolean, write: {shown} = true" if flag else None,
            )
        return self.unexpected("a comparison is missing", _AFTER_TERM)
