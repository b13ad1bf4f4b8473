"""Random sequences and random streams: few names and few values, so that they meet."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from tocsin.language.parsing.parser import canonical
from tocsin.language.patterns import like
from tocsin.model import (
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
    Fold,
    From,
    Negative,
    Next,
    Not,
    Operator,
    Or,
    Predicate,
    SelectItem,
    Sequence,
    Span,
    Star,
    Step,
    Term,
    Value,
    literal,
)

STREAMS: tuple[str, ...] = ("s", "s", "s", "s", "t")
PATHS = ("g", "g", "x", "x", "x", "y", "w")
ALIASES = ("a", "b", "c", "d")
COMPUTED = ("m", "n", "x")
TIMES = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day) for day in range(2)]
TEXTS = ["", "a", "ab", "b", "2026-01-01T00:00:00Z", "2026-01-02T01:00:00+01:00"]
ODD_NUMBERS = [0.5, 1.0, 2**53 + 1, float(2**53), 2**63 - 1, -(2**63), 2**63, 2**70, -1e300, 10**320]
COMPARISONS = [Operator.GE, Operator.LE, Operator.NE, Operator.EQ, Operator.GT, Operator.LT]
TEXT_TESTS = [
    Operator.CONTAINS,
    Operator.NOT_CONTAINS,
    Operator.STARTS_WITH,
    Operator.NOT_STARTS_WITH,
    Operator.ENDS_WITH,
    Operator.NOT_ENDS_WITH,
]

_few = st.integers(0, 3)
_odd: st.SearchStrategy[Value] = st.one_of(
    st.sampled_from(ODD_NUMBERS), st.sampled_from(TEXTS), st.booleans(), st.sampled_from(TIMES)
)
_values: dict[str, st.SearchStrategy[Value]] = {
    "g": st.integers(0, 1),
    "x": st.one_of(_few, _few, st.sampled_from([0.5, 1.5, 2.0])),
    "y": st.one_of(_few, _odd),
    "w": st.sampled_from(TEXTS),
}


def values_of(path: str) -> st.SearchStrategy[Value]:
    """Values such as events have under this name; it may be of an event within."""
    return _values.get(path.rpartition(".")[2], _few)


# streams


@st.composite
def streams(draw: st.DrawFn, *, max_size: int = 12) -> list[Event]:
    """Events in the order of their end: simultaneous, overlapping, far apart, and with attributes missing."""
    events: list[Event] = []
    end = draw(st.integers(-2, 2))
    for number in range(draw(st.sampled_from(range(6, max_size + 1)))):
        end += draw(st.sampled_from([1, 1, 1, 0, 2, 4]))
        start = end - draw(st.sampled_from([0, 0, 0, 0, 0, 1, 3]))
        given = {
            path: draw(values)
            for path, values in _values.items()
            if draw(st.sampled_from(range(12))) < (9 if path == "y" else 11)
        }
        stream = draw(st.sampled_from([*"ssssssst", "t", "p"]))
        events.append(Event(f"e{number}", given, stream, start, end))
    return events


# sequences


@dataclass
class Names:
    """The names in scope: the attributes of each alias, and computed values."""

    known: dict[str, tuple[str, ...]] = field(default_factory=dict)
    computed: tuple[str, ...] = ()
    last: bool = False  # whether there is a fold around
    folded: tuple[str, ...] = ()  # what it computes: known by `last` alone

    @property
    def own(self) -> str:
        return list(self.known)[-1]

    def attributes(self, *, own: bool = False) -> st.SearchStrategy[Attribute]:
        aliases = [self.own] if own else list(self.known)
        named = [Attribute(path, alias) for alias in aliases for path in self.known[alias]]
        unknown = set(self.folded) - set(self.computed)  # refused where only this fold computes them
        bare = [Attribute(path) for path in self.known[self.own] if "." not in path and path not in unknown]
        choices = [st.sampled_from(named), st.sampled_from(bare or named)]
        if not own and self.computed:
            choices += [st.sampled_from(self.computed).map(Attribute)]
        if not own and self.last:
            paths = [*self.known[self.own], *self.computed, *self.folded]
            choices += [st.sampled_from(paths).map(lambda path: Attribute(path, "last"))] * 2
        return st.one_of(choices)


@st.composite
def terms(draw: st.DrawFn, names: Names) -> Term:
    """An attribute or a computed value, or a little arithmetic with it."""
    leaf: Term = draw(names.attributes())
    form = draw(st.sampled_from(range(8)))
    if form == 7:
        return Negative(leaf)
    if form < 4:
        return leaf
    other: Term = draw(
        st.one_of(names.attributes(), st.sampled_from([0, 1, 2, 0.5, 1.05, 2**62, 2**70]).map(literal))
    )
    operator = draw(st.sampled_from(ArithmeticOperator))
    return Arithmetic(operator, leaf, other) if form > 4 else Arithmetic(operator, other, leaf)


@st.composite
def predicates(draw: st.DrawFn, names: Names) -> Predicate:
    """Of the step's own event most often, with constants or with what came before."""
    subject = draw(st.one_of(names.attributes(own=True), names.attributes()))
    constants = values_of(subject.path).map(literal)
    form = draw(st.sampled_from(range(14)))
    if form <= 2:
        return Predicate(subject, draw(st.sampled_from(COMPARISONS)), (draw(constants),))
    if form <= 6:
        operator = draw(st.sampled_from([*COMPARISONS, Operator.EQ, Operator.GE]))
        return Predicate(subject, operator, (draw(names.attributes()),))
    if form == 7:
        return Predicate(draw(terms(names)), draw(st.sampled_from(COMPARISONS)), (draw(terms(names)),))
    if form == 8:
        limit = draw(st.one_of(st.integers(2, 9).map(literal), st.integers(2, 9).map(Span)))
        return Predicate(Elapsed(), draw(st.sampled_from([Operator.LE, *COMPARISONS])), (limit,))
    if form == 9:
        ends = (draw(st.one_of(constants, terms(names))), draw(st.one_of(constants, terms(names))))
        return Predicate(subject, draw(st.sampled_from([Operator.BETWEEN, Operator.NOT_BETWEEN])), ends)
    if form == 10:
        members = tuple(draw(st.lists(constants, min_size=1, max_size=3)))
        return Predicate(subject, draw(st.sampled_from([Operator.IN, Operator.NOT_IN])), members)
    if form == 11:
        return Predicate(subject, draw(st.sampled_from([Operator.MISSING, Operator.PRESENT])))
    known = names.known.get(subject.alias or names.own, ())
    text = replace_path(subject, "w") if draw(st.booleans()) and "w" in known else subject
    if form == 12:
        other = draw(st.one_of(st.sampled_from(TEXTS).map(literal), names.attributes()))
        return Predicate(text, draw(st.sampled_from(TEXT_TESTS)), (other,))
    negated = draw(st.booleans())
    if draw(st.booleans()):
        return like(text, draw(st.sampled_from(["a%", "%b", "_", "a_%", "%"])), negated=negated)
    pattern = (literal(draw(st.sampled_from(["^a", "b$", "a|b", "."]))),)
    return Predicate(text, Operator.NOT_REGEX if negated else Operator.REGEX, pattern)


def replace_path(attribute: Attribute, path: str) -> Attribute:
    return Attribute(path) if attribute.alias is None else Attribute(path, attribute.alias)


@st.composite
def conditions(draw: st.DrawFn, names: Names) -> Condition:
    """None at all as often as not, and many that are likely to hold: else hardly a sequence is ever completed."""
    form = draw(st.sampled_from("--------~~~~~?|&!"))
    if form == "-":
        return TRUE
    if form == "~":
        return draw(_likely(names))
    one = draw(predicates(names))
    if form == "?":
        return one
    two = (one, draw(st.one_of(predicates(names), _likely(names))))
    if form == "!":
        denied: list[Condition] = [one, And(two), Or(two)]
        return Not(draw(st.sampled_from(denied)))
    return And(two) if form == "&" else Or(two)


@st.composite
def _likely(draw: st.DrawFn, names: Names) -> Predicate:
    """The step's own event beside another, or beside a constant, in ways that often hold."""
    paths = names.known[names.own]
    path = draw(st.sampled_from(paths[:5]))
    own = Attribute(path, names.own)
    others = [
        Attribute(other, alias)
        for alias, known in [*names.known.items(), *([("last", paths)] if names.last else [])]
        for other in known
        if other == path and (alias != names.own or len(names.known) == 1)
    ]
    others += [Attribute(name) for name in names.computed]
    operator = draw(st.sampled_from([Operator.GE, Operator.LE, Operator.NE, Operator.EQ]))
    beside = draw(st.booleans())
    if others and beside:
        return Predicate(own, operator, (draw(st.sampled_from(others)),))
    return Predicate(
        own, draw(st.sampled_from([Operator.GE, Operator.LE])), (literal(draw(st.sampled_from([1, 0, 2]))),)
    )


def aggregates(names: Names) -> st.SearchStrategy[Term]:
    taken = st.builds(Aggregate, st.sampled_from(AggregateFunction), terms(names))
    one: st.SearchStrategy[Term] = st.one_of(taken, taken, taken, st.just(Aggregate(AggregateFunction.COUNT)))
    return st.one_of(
        one,
        one,
        one,
        st.builds(Arithmetic, st.sampled_from(ArithmeticOperator), one, st.one_of(one, terms(names))),
    )


@st.composite
def computations(
    draw: st.DrawFn, term: st.SearchStrategy[Term], *, at_least: int = 0
) -> tuple[Computation, ...]:
    names = draw(st.lists(st.sampled_from(COMPUTED), unique=True, min_size=at_least, max_size=2))
    return tuple(Computation(name, draw(term)) for name in names)


@st.composite
def sequences(
    draw: st.DrawFn, *, sources: tuple[str, ...] = STREAMS, publish: str | None = None, nesting: int = 1
) -> Sequence:
    """A sequence as its own text is read, of one to four steps."""
    count = draw(st.sampled_from([2, 2, 2, 3, 3, 1, 4] if nesting else [1, 2, 2]))
    names = Names()
    steps: list[Step] = []
    for number in range(count):
        source: str | Sequence = draw(st.sampled_from(sources))
        paths: tuple[str, ...] = PATHS
        if nesting and draw(st.sampled_from(range(7))) == 6:
            source = draw(sequences(sources=sources, nesting=0))
            paths = _carried(source)
        names.known[ALIASES[number]] = paths
        steps.append(draw(_steps(names, source, alone=count == 1)))
    select: tuple[SelectItem, ...] = ()
    if draw(st.sampled_from(range(3))) == 2 or (publish is not None and draw(st.booleans())):
        chosen = draw(st.lists(st.sampled_from(["g", "x", "y", "w"]), min_size=1, max_size=3, unique=True))
        select = tuple(SelectItem(draw(terms(names)), name) for name in chosen)
        if draw(st.booleans()):
            select = (SelectItem(Star(), "*"), *select)
    within = draw(st.sampled_from([None, None, None, Span(3), Span(5), Span(8), Span(12)]))
    query = canonical(Sequence(tuple(steps), within, select, publish))
    assert isinstance(query, Sequence)
    return query


@st.composite
def _steps(draw: st.DrawFn, names: Names, source: str | Sequence, *, alone: bool) -> Step:
    """The next step; its computed values are in scope from then on."""
    alias = names.own
    condition = conditions(names)
    if len(names.known) == 1:
        computed = draw(computations(terms(names), at_least=1 if alone else 0))
        where = draw(condition)
        names.computed = tuple(value.name for value in computed)
        return From(source, alias, where, computed)
    if draw(st.booleans()):
        return Next(source, alias, draw(condition), draw(condition))
    inside = replace(names, last=True)
    computed = draw(computations(st.one_of(terms(inside), aggregates(inside), aggregates(inside))))
    inside.folded = tuple(value.name for value in computed)
    on, while_ = draw(conditions(inside)), draw(conditions(inside))
    names.computed = tuple(dict.fromkeys((*names.computed, *inside.folded)))
    where = draw(conditions(names))
    return Fold(source, alias, on, while_, computed, where)


def _carried(query: Sequence) -> tuple[str, ...]:
    """The attributes of what a sequence in parentheses finds."""
    chosen = tuple(item.name for item in query.select if item.term != Star())
    if chosen and len(chosen) == len(query.select):
        return chosen
    computed = [c.name for step in query.steps if not isinstance(step, Next) for c in step.compute]
    own = (
        PATHS[:3]
        if len(query.steps) == 1
        else [f"{step.alias}.{path}" for step in query.steps for path in PATHS[:3]]
    )
    return tuple(dict.fromkeys((*own, *computed, *chosen)))
