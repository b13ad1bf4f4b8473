"""Rules that rewrite one predicate to an equivalent one: it is true for exactly the same events."""

from __future__ import annotations

from tocsin.language.patterns import like
from tocsin.language.printer import condition_text, hyphenated_name
from tocsin.language.semantics import arithmetic, truth
from tocsin.model.conditions import FALSE, FLIPPED, NEGATED, TRUE, Constant, Operator, Predicate
from tocsin.model.terms import Arithmetic, Attribute, Literal, Negative, Parameter, Term, literal, operands_of
from tocsin.model.values import Kind

_PRINTABLE = 10**300  # a larger result stays an operation, since its digits cannot be printed
_LISTS = (Operator.IN, Operator.NOT_IN)
_RANGES = (Operator.BETWEEN, Operator.NOT_BETWEEN)
_PATTERNS = (Operator.LIKE, Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.CONTAINS, Operator.REGEX)
_TEXT_TESTS = frozenset((*_PATTERNS, *(NEGATED[operator] for operator in _PATTERNS)))


def rewrite(predicate: Predicate) -> Predicate | Constant:
    """Return `predicate` with constants folded, its attribute on the left, and short lists as comparisons."""
    operands = predicate.operands
    if (
        len(operands) == 1
        and isinstance(predicate.subject, Attribute)
        and isinstance(operands[0], Literal)
        and predicate.operator not in _LISTS
    ):
        return predicate
    folded = _fold_constants(predicate)
    if isinstance(folded, Constant):
        return folded
    return _decide(_narrow(_orient(folded)))


def kind_conflict(predicate: Predicate) -> str | None:
    r"""Return why a predicate over arithmetic can never be true, None if it can: arithmetic gives numbers only.

    >>> from tocsin.language.parsing.parser import parse_condition
    >>> kind_conflict(parse_condition("content-type = 'x'"))
    '`content - type = \'x\'` compares a number with a string; did you mean the name `"content-type"`, in double quotes?'
    """
    subject, operands = predicate.subject, predicate.operands
    if (
        type(subject) is Attribute
        and (not operands or type(operands[0]) is not Arithmetic)
        and len(operands) != 2
    ):
        return None  # most predicates
    terms = (subject, *operands)
    computed = next((term for term in terms if isinstance(term, (Arithmetic, Negative))), None)
    if computed is None:
        return None
    others = [term.kind for term in terms if isinstance(term, Literal) and term.kind is not Kind.NUMBER]
    shown = condition_text(predicate)
    if predicate.operator in _TEXT_TESTS:
        reason = f"`{shown}` tests a number as if it were a string"
    elif not others or (predicate.operator in _LISTS and len(others) < len(operands)):
        return None
    else:
        reason = f"`{shown}` compares a number with a {others[0]}"
    name = hyphenated_name(computed)
    return reason if name is None else f"{reason}; did you mean the name `{name}`, in double quotes?"


def attributes_of(predicate: Predicate) -> set[Attribute]:
    """Return all attributes of `predicate`."""
    found: set[Attribute] = set()
    waiting: list[Term] = [predicate.subject, *predicate.operands]
    while waiting:
        term = waiting.pop()
        if isinstance(term, Attribute):
            found.add(term)
        elif not isinstance(term, Literal):
            waiting += operands_of(term)
    return found


def members(operands: tuple[Term, ...]) -> tuple[Literal, ...]:
    """Return the constants of a list without repeats, ascending within each kind."""
    unique = {operand for operand in operands if isinstance(operand, Literal)}
    kinds = list(Kind)
    return tuple(
        constant
        for kind in kinds
        for constant in sorted((c for c in unique if c.kind is kind), key=lambda c: c.value)  # type: ignore[arg-type, return-value]
    )


def membership(subject: Term, constants: tuple[Literal, ...], *, negated: bool = False) -> Predicate:
    """Return the predicate that `subject` is, or is not, one of `constants`, of which there is at least one."""
    if len(constants) == 1:
        return Predicate(subject, Operator.NE if negated else Operator.EQ, constants)
    return Predicate(subject, Operator.NOT_IN if negated else Operator.IN, constants)


def _fold_constants(predicate: Predicate) -> Predicate | Constant:
    """Compute arithmetic over constants; a predicate with an operation that has no result is false."""
    terms = [_fold_term(term) for term in (predicate.subject, *predicate.operands)]
    if None in terms:
        return FALSE
    return Predicate(terms[0], predicate.operator, tuple(terms[1:]))  # type: ignore[arg-type]


def _fold_term(term: Term) -> Term | None:
    """Return the term with its constant parts computed, or None if it has no value."""
    if isinstance(term, Negative):
        inner = _fold_term(term.term)
        if isinstance(inner, Literal):
            return literal(-inner.value)  # type: ignore[operator]
        return None if inner is None else Negative(inner)
    if not isinstance(term, Arithmetic):
        return term
    left, right = _fold_term(term.left), _fold_term(term.right)
    if left is None or right is None:
        return None
    if isinstance(left, Literal) and isinstance(right, Literal):
        value = arithmetic(term.operator, left.value, right.value)
        if value is None:
            return None
        if abs(value) < _PRINTABLE:
            return literal(value)
    return Arithmetic(term.operator, left, right)


def _orient(predicate: Predicate) -> Predicate:
    """Put the attribute on the left: `100 < price` becomes `price > 100`."""
    flipped = FLIPPED.get(predicate.operator)
    if flipped is None or not isinstance(predicate.subject, (Literal, Parameter)):
        return predicate
    return Predicate(predicate.operands[0], flipped, (predicate.subject,))


def _narrow(predicate: Predicate) -> Predicate | Constant:
    """Rewrite lists of at most one member, and ranges of one value, as comparisons."""
    operands = predicate.operands
    if predicate.operator in _LISTS and all(isinstance(operand, Literal) for operand in operands):
        constants = members(operands)
        # `in ()` and `not in ()` are both false: no member is of the value's kind, so neither can be true.
        return (
            membership(predicate.subject, constants, negated=predicate.operator is Operator.NOT_IN)
            if constants
            else FALSE
        )
    if predicate.operator in _RANGES and isinstance(operands[0], Literal) and operands[0] == operands[1]:
        return membership(predicate.subject, operands[:1], negated=predicate.operator is Operator.NOT_BETWEEN)  # type: ignore[arg-type]
    if predicate.operator in (Operator.LIKE, Operator.NOT_LIKE) and isinstance(operands[0], Literal):
        return like(
            predicate.subject, str(operands[0].value), negated=predicate.operator is Operator.NOT_LIKE
        )
    return predicate


def _decide(predicate: Predicate | Constant) -> Predicate | Constant:
    """Evaluate a predicate over constants only."""
    if isinstance(predicate, Constant):
        return predicate
    if any(not isinstance(term, Literal) for term in (predicate.subject, *predicate.operands)):
        return predicate
    return TRUE if truth(predicate, {}) else FALSE
