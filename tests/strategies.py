"""Random models: every operator, every kind, few names and values, so that they meet."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from tocsin.language.patterns import compile_regex, like
from tocsin.model import (
    FALSE,
    TRUE,
    Aggregate,
    AggregateFunction,
    And,
    Arithmetic,
    ArithmeticOperator,
    Attribute,
    Computation,
    Condition,
    Elapsed,
    Event,
    Filter,
    Fold,
    From,
    Literal,
    Negative,
    Next,
    Not,
    Operator,
    Or,
    Predicate,
    Query,
    SelectItem,
    Sequence,
    Span,
    SpanUnit,
    Star,
    Step,
    Table,
    Term,
    Value,
    View,
    literal,
)
from tocsin.model.values import Opaque

PATHS = ["a", "b", "c", "price", "data.city"]
ODD_NAMES = [
    "my name",
    'quo"te',
    "select",
    "duration",
    "last",
    "timestamp",
    "Distinct",
    "x.y z",
    "größe",
    "table",
    "1st",
]
TIMES = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=d, microseconds=d) for d in range(3)]
TEXTS = [
    "",
    "x",
    "xy",
    "xyz",
    "yz",
    "a%b",
    "it's",
    "2026-01-01T00:00:00Z",
    "2026-01-02T01:00:00.000001+01:00",
    "ü",
]
COMPARISONS = [Operator.EQ, Operator.NE, Operator.LT, Operator.LE, Operator.GT, Operator.GE]
TEXT_TESTS = [
    Operator.STARTS_WITH,
    Operator.NOT_STARTS_WITH,
    Operator.ENDS_WITH,
    Operator.NOT_ENDS_WITH,
    Operator.CONTAINS,
    Operator.NOT_CONTAINS,
]

numbers: st.SearchStrategy[int | float] = st.one_of(
    st.integers(-2, 6),
    st.sampled_from([0.5, 2.0, 2.5, -0.0, 1e300, 2**53, 2**53 + 1, float(2**53), 2**70, -(2**63)]),
)
values: st.SearchStrategy[Value] = st.one_of(
    numbers, numbers, st.sampled_from(TEXTS), st.booleans(), st.sampled_from(TIMES)
)
literals: st.SearchStrategy[Literal] = values.map(literal)
paths = st.sampled_from(PATHS)
attributes: st.SearchStrategy[Attribute] = paths.map(Attribute)


def terms(attribute: st.SearchStrategy[Attribute]) -> st.SearchStrategy[Term]:
    """Attributes, numbers, and arithmetic over them."""
    leaf: st.SearchStrategy[Term] = st.one_of(attribute, numbers.map(literal))
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(Arithmetic, st.sampled_from(ArithmeticOperator), inner, inner),
            st.builds(Negative, inner),
        ),
        max_leaves=3,
    )


@st.composite
def predicates(
    draw: st.DrawFn,
    attribute: st.SearchStrategy[Attribute] = attributes,
    literals: st.SearchStrategy[Literal] = literals,
) -> Predicate:
    subject = draw(attribute)
    form = draw(st.integers(0, 9))
    if form <= 3:
        return Predicate(subject, draw(st.sampled_from(COMPARISONS)), (draw(literals),))
    if form == 4:
        ends = (draw(literals), draw(literals))
        return Predicate(subject, draw(st.sampled_from([Operator.BETWEEN, Operator.NOT_BETWEEN])), ends)
    if form == 5:
        members = tuple(draw(st.lists(literals, max_size=4)))
        return Predicate(subject, draw(st.sampled_from([Operator.IN, Operator.NOT_IN])), members)
    if form == 6:
        text = draw(st.one_of(st.sampled_from(TEXTS).map(literal), attribute))
        return Predicate(subject, draw(st.sampled_from(TEXT_TESTS)), (text,))
    if form == 7:
        pattern = draw(st.text(alphabet="xyz%_", max_size=4))
        return like(subject, pattern, negated=draw(st.booleans()))
    if form == 8:
        operator = draw(
            st.sampled_from([Operator.REGEX, Operator.NOT_REGEX, Operator.MISSING, Operator.PRESENT])
        )
        regex = literal(draw(st.sampled_from(["x+", "^x", "y|z", "(?i)X", "^$", "."])))
        return Predicate(
            subject, operator, () if operator in (Operator.MISSING, Operator.PRESENT) else (regex,)
        )
    left, right = draw(terms(attribute)), draw(terms(attribute))
    return Predicate(left, draw(st.sampled_from(COMPARISONS)), (right,))


# Predicates on one attribute with constants that lie close together: they overlap, touch and contradict.
_PALETTES: list[list[Value]] = [
    [0, 1, 2, 3, 4, 5],
    [*TIMES, "2026-01-01T00:00:00Z", "2026-01-02T01:00:00.000001+01:00"],
    ["x", "xy", "xyz", "y"],
]
crowded: st.SearchStrategy[Condition] = st.one_of(
    *(
        st.lists(
            predicates(st.just(Attribute("a")), st.sampled_from(palette).map(literal)), min_size=2, max_size=4
        )
        .map(tuple)
        .map(And)
        for palette in _PALETTES
    )
)

# Several tests on the strings of one attribute, of which a string passes some: constants overlap, and repeat.
_PIECES = ["", "x", "y", "xy", "yx", "xx", "xyx", "yxy", "ü", "üx", "x\0"]
OVERLAPPING = ["xyx", "xyxy", "yx", "xx", "üxy", "yü", "x\0y", ""]


@st.composite
def tests_on_strings(draw: st.DrawFn, attribute: st.SearchStrategy[Attribute]) -> Predicate:
    subject, piece = draw(attribute), draw(st.sampled_from(_PIECES))
    form = draw(st.integers(0, 3))
    if form == 0:
        pattern = draw(st.sampled_from(["{}_", "_{}%", "%{}_%", "{}%{}", "%_"])).replace("{}", piece)
        return like(subject, pattern, negated=draw(st.booleans()))
    if form == 1:
        regex = draw(st.sampled_from(["{}+y", "^{}", "{}$", "({}|yx)x", "(?i)Ü{}"])).replace("{}", piece)
        try:
            compile_regex(regex)
        except ValueError:  # nothing there to repeat
            regex = "x|y"
        return Predicate(
            subject, draw(st.sampled_from([Operator.REGEX, Operator.NOT_REGEX])), (literal(regex),)
        )
    return Predicate(subject, draw(st.sampled_from(TEXT_TESTS)), (literal(piece),))


_tested = st.one_of(
    tests_on_strings(st.sampled_from("aab").map(Attribute)),
    tests_on_strings(st.sampled_from("aab").map(Attribute)),
    st.sampled_from("ab").map(lambda path: Predicate(Attribute(path), Operator.MISSING)),
    st.sampled_from("ab").map(lambda path: Predicate(Attribute(path), Operator.EQ, (literal("xyx"),))),
)
tested: st.SearchStrategy[Condition] = st.one_of(
    st.lists(_tested, min_size=2, max_size=4).map(tuple).map(And),
    st.lists(_tested, min_size=2, max_size=4).map(tuple).map(Or),
)


def conditions(
    attribute: st.SearchStrategy[Attribute] = attributes, *, max_leaves: int = 6
) -> st.SearchStrategy[Condition]:
    leaf: st.SearchStrategy[Condition] = st.one_of(
        predicates(attribute), predicates(attribute), predicates(attribute), st.sampled_from([TRUE, FALSE])
    )

    def nested(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.one_of(several.map(And), several.map(Or), inner.map(Not))

    return st.recursive(leaf, nested, max_leaves=max_leaves)


opaque = st.sampled_from([Opaque("bytes"), Opaque("list")])
event_values: st.SearchStrategy[Value] = st.integers(0, 11).flatmap(lambda place: values if place else opaque)

_near = st.sampled_from([value for palette in _PALETTES for value in palette])
events: st.SearchStrategy[Event] = st.builds(
    Event,
    id=st.just("e"),
    attributes=st.one_of(
        st.dictionaries(paths, st.one_of(event_values, _near), max_size=5),
        st.fixed_dictionaries({"a": st.one_of(_near, opaque)}, optional={"b": event_values, "c": values}),
        st.dictionaries(st.sampled_from("ab"), st.one_of(st.sampled_from(OVERLAPPING), _near, opaque)),
    ),
)

names = st.one_of(st.sampled_from([*PATHS, *ODD_NAMES]), st.text(min_size=1, max_size=6))
any_attributes = names.map(Attribute)


def select_items(attribute: st.SearchStrategy[Attribute]) -> st.SearchStrategy[tuple[SelectItem, ...]]:
    items = st.lists(
        st.builds(SelectItem, terms(attribute), names), max_size=3, unique_by=lambda item: item.name
    )
    return st.one_of(items.map(tuple), items.filter(bool).map(lambda some: (SelectItem(Star(), "*"), *some)))


filters: st.SearchStrategy[Query] = st.one_of(
    conditions(any_attributes).map(Filter),
    st.builds(Filter, conditions(any_attributes), names, select_items(any_attributes)),
)

_aliases = st.sampled_from(["a", "b", "c", "d", "my alias", "Where"])


@st.composite
def sequences(draw: st.DrawFn, *, nesting: int = 1) -> Sequence:
    """A sequence that the language can write: at least two steps, or one that publishes."""
    count = draw(st.integers(1 if nesting == 0 else 2, 3))
    aliases = draw(st.lists(_aliases, min_size=count, max_size=count, unique=True))
    known: list[str] = []
    steps: list[Step] = []
    for i, alias in enumerate(aliases):
        source = (
            draw(sequences(nesting=nesting - 1)) if nesting and draw(st.integers(0, 5)) == 0 else draw(names)
        )
        known.append(alias)
        attribute = st.builds(Attribute, names, st.sampled_from(known))
        condition = st.one_of(conditions(attribute, max_leaves=3), _durations)
        if i == 0:
            steps.append(From(source, alias, draw(condition), draw(_computations(terms(attribute)))))
        elif draw(st.booleans()):
            steps.append(Next(source, alias, draw(condition), draw(condition)))
        else:
            last = st.builds(Attribute, names, st.sampled_from([*known, "last"]))
            inside = conditions(last, max_leaves=3)
            computed = _computations(st.one_of(terms(last), _aggregates(last)))
            steps.append(Fold(source, alias, draw(inside), draw(inside), draw(computed), draw(condition)))
    within = draw(st.one_of(st.none(), _spans.filter(lambda s: s.amount > 0)))
    select = draw(select_items(st.builds(Attribute, names, st.sampled_from(known))))
    publish = draw(st.one_of(st.none(), names)) if nesting else None
    return Sequence(tuple(steps), within, select, publish)


_spans = st.one_of(
    st.builds(Span, st.integers(0, 10**6), st.sampled_from(SpanUnit)),
    st.builds(
        Span, st.sampled_from([0.5, 1.25]), st.sampled_from([u for u in SpanUnit if u is not SpanUnit.TICKS])
    ),
)
_durations = st.builds(
    lambda operator, limit: Predicate(Elapsed(), operator, (limit,)),
    st.sampled_from(COMPARISONS),
    st.one_of(_spans, st.integers(0, 100).map(literal)),
)


def _aggregates(attribute: st.SearchStrategy[Attribute]) -> st.SearchStrategy[Term]:
    taken = st.builds(Aggregate, st.sampled_from(AggregateFunction), terms(attribute))
    return st.one_of(st.just(Aggregate(AggregateFunction.COUNT)), taken)


def _computations(term: st.SearchStrategy[Term]) -> st.SearchStrategy[tuple[Computation, ...]]:
    items = st.lists(st.builds(Computation, names, term), max_size=2, unique_by=lambda c: c.name)
    return items.map(tuple)


@st.composite
def views(draw: st.DrawFn) -> View:
    if draw(st.booleans()):
        attribute = any_attributes
        tables = (Table(draw(names)),)
        on: Condition = TRUE
    else:
        two = draw(st.lists(_aliases, min_size=2, max_size=2, unique=True))
        tables = (Table(draw(names), two[0]), Table(draw(names), two[1]))  # type: ignore[assignment]
        attribute = st.builds(Attribute, names, st.sampled_from(two))
        on = draw(conditions(attribute, max_leaves=2))
    items = st.lists(
        st.builds(SelectItem, st.one_of(_aggregates(attribute), terms(attribute)), names),
        max_size=2,
        unique_by=lambda item: item.name,
    )
    select = tuple(draw(items))
    distinct = bool(select) and draw(st.booleans())
    if select and not distinct and draw(st.booleans()):
        select = (SelectItem(Star(), "*"), *select)
    return View(select, tables, on, draw(conditions(attribute, max_leaves=3)), distinct)


queries: st.SearchStrategy[Query] = st.one_of(filters, sequences(), views())
