"""Translation: a sequence as it was written becomes an expression of the algebra."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tocsin.language.parsing.cursor import closest
from tocsin.language.printer import source_text, term_text
from tocsin.model import queries, terms
from tocsin.model.conditions import TRUE, Condition, Operator, Predicate
from tocsin.model.errors import SubscriptionError
from tocsin.model.event import STREAM
from tocsin.model.values import Kind
from tocsin.sequences import algebra
from tocsin.sequences.substitution import has_aggregate, replace_condition_leaves, replace_leaves
from tocsin.sequences.ticks import LONGEST, common_tick, ticks_in

_ONE: Final = terms.Literal(1, Kind.NUMBER)


def expression_of(query: queries.Sequence, ticks: Mapping[str, int]) -> algebra.Expression:
    """Return a sequence as an expression, or raise `SubscriptionError` naming the part that has no meaning.

    `ticks` has the microseconds of a tick of each declared stream. Parameters stay where they are; one beside `duration` or after `within` counts ticks.

    >>> from tocsin.language import parse
    >>> expression_of(parse("from stock a next stock b on b.price > a.price within 5 ticks"), {})
    Select(of=Next(left=Rename(of=Stream(name='stock', of=None), alias='a'), ...
    """
    expression = _sequence(query, common_tick(ticks, _sources(query)))
    if query.publish is not None:
        _check_names(algebra.output_values(expression))
    return expression


def nested_stream_name(query: queries.Sequence) -> str:
    """Return the name of the internal stream of a nested sequence; equal sequences have equal names.

    The `$` keeps it apart from the names of declared streams.

    >>> from tocsin.language import parse
    >>> nested_stream_name(parse("from stock a next stock b"))
    '$(from stock a next stock b)'
    """
    return f"${source_text(query)}"


def _sequence(query: queries.Sequence, tick: int) -> algebra.Expression:
    """Return a sequence as an expression, without checking the names of its outputs."""
    scope = StepScope(tick)
    names = _aliases(query.steps)
    expression: algebra.Expression | None = None
    for step, alias in zip(query.steps, names, strict=True):
        scope.aliases.append(alias)
        source = algebra.Rename(_source(step.source, alias, scope), alias)
        if expression is None or isinstance(step, queries.From):
            expression = _first(step, source, scope)
        elif isinstance(step, queries.Next):
            expression = algebra.Next(expression, source, scope.condition(step.on))
        else:
            expression = _iteration(expression, source, step, scope)
        if not isinstance(step, queries.From):
            expression = _select(expression, scope.condition(step.where))
    assert expression is not None  # noqa: S101 - a sequence has a step
    if query.within is not None:
        limit = Predicate(terms.Elapsed(), Operator.LE, (_within(query.within, tick),))
        expression = algebra.Select(expression, limit)
    if query.select:
        whole = isinstance(query.select[0].term, terms.Star)
        selected = query.select[1:] if whole else query.select
        items = tuple(algebra.Computed(item.name, scope.term(item.term)) for item in selected)
        expression = algebra.Compute(expression, items) if whole else algebra.Project(expression, items)
    return expression


def _first(step: queries.Step, source: algebra.Expression, scope: StepScope) -> algebra.Expression:
    expression = _select(source, scope.condition(step.where))
    if not isinstance(step, queries.From) or not step.compute:
        return expression
    values = tuple(algebra.Computed(value.name, scope.term(value.term)) for value in step.compute)
    scope.compute(step.compute)
    return algebra.Compute(expression, values)


def _select(expression: algebra.Expression, where: Condition) -> algebra.Expression:
    return expression if where == TRUE else algebra.Select(expression, where)


def _source(source: queries.Source, alias: str, scope: StepScope) -> algebra.Stream:
    """Return the stream that a step reads, and note which attributes its events can have, if that is known."""
    if isinstance(source, str):
        return algebra.Stream(source)
    inner = _sequence(source, scope.tick)
    outputs = algebra.output_values(inner)
    _check_names(outputs)
    if (
        outputs.selected or len(source.steps) > 1
    ):  # the events of a single step keep their names, which are not known
        aliases = () if outputs.selected else tuple(_aliases(source.steps))
        scope.carried[alias] = Carried(outputs.names, aliases)
    return algebra.Stream(nested_stream_name(source), inner)


def _check_names(outputs: algebra.OutputValues) -> None:
    """Refuse a name that no attribute of an event can have."""
    if STREAM in outputs.names:
        raise SubscriptionError(
            f"its matches become events, which cannot have an attribute `{STREAM}`; select it under another name"
        )


def _aliases(steps: tuple[queries.Step, ...]) -> list[str]:
    """Return the name of each step's event: its alias, or else the name of its stream.

    If that is taken, the step's number is appended.
    """
    taken = {step.alias for step in steps if step.alias is not None}
    names: list[str] = []
    for number, step in enumerate(steps, start=1):
        name = step.alias
        if name is None:
            plain = step.source if isinstance(step.source, str) else "step"
            name, count = plain, number
            while name in taken:
                name, count = f"{plain}{algebra.HIDDEN}{count}", count + 1
            taken.add(name)
        names.append(name)
    return names


def _within(length: terms.Span | terms.Parameter, tick: int) -> terms.Literal | terms.Parameter:
    """Return the length of a `within` in ticks."""
    if isinstance(length, terms.Parameter):
        return length
    ticks = ticks_in(length, tick)
    if ticks > LONGEST:
        raise SubscriptionError(
            f"`within {length.amount} {length.unit}` is {ticks:,} ticks, more than the {LONGEST:,} that a duration "
            "can have; leave it out"
        )
    return terms.Literal(ticks, Kind.NUMBER)


def _sources(query: queries.Sequence) -> Iterator[str]:
    for sequence in queries.sequences_in(query):
        yield from (step.source for step in sequence.steps if isinstance(step.source, str))


def _iteration(
    left: algebra.Expression, right: algebra.Rename, step: queries.Fold, scope: StepScope
) -> algebra.Expression:
    """Return a fold over `right`, with its computed values but without its `where`.

    A single aggregate keeps its own name. A term that contains aggregates, also `avg`, is kept in hidden parts, and a
    `Compute` around the iteration combines them; inside the fold, the parts of the iteration before are combined.
    """
    parts = _Parts(len(scope.aliases))
    finished = {value.name: parts.split(value) for value in step.compute}
    compute = tuple(
        part.after(scope.term(part.term, finished), terms.Attribute(part.name)) for part in parts.all
    )
    begin = tuple(part.after(scope.beginning(part.term, finished), None) for part in parts.all if part.begins)
    on, while_ = scope.condition(step.on, finished), scope.condition(step.while_, finished)
    lefts = tuple(reversed(scope.aliases[:-1]))
    iterated = algebra.Iterate(left, right, right.alias, lefts, on, while_, compute, begin)
    combined = [(name, term) for name, term in finished.items() if term != terms.Attribute(name)]
    scope.compute(step.compute)
    finishers = tuple(algebra.Computed(name, term) for name, term in combined)
    return algebra.Compute(iterated, finishers) if finishers else iterated


@dataclass
class _Part:
    """One value that an iteration keeps: a term of the fold, or an aggregate of a term."""

    name: str
    term: terms.Term
    function: terms.AggregateFunction | None
    begins: bool

    def after(self, term: terms.Term, old: terms.Term | None) -> algebra.Computed:
        """Return its value after one more `term`; `old` is its value before, if it has begun."""
        item = term if self.function is None else algebra.Accumulated(self.function, old, term)
        return algebra.Computed(self.name, item)


@dataclass
class _Parts:
    """The parts of all computed values of one fold."""

    step: int
    all: list[_Part] = field(default_factory=list)

    def split(self, value: queries.Computation) -> terms.Term:
        """Add the parts of a computed value, and return the term that combines them."""
        term = value.term
        if isinstance(term, terms.Aggregate) and term.function is not terms.AggregateFunction.AVG:
            return self._add(value.name, term.argument, term.function, begins=True)
        if has_aggregate(term):
            return self._add_hidden(value.name, term)
        return self._add(value.name, term, None, begins=False)

    def _add_hidden(self, name: str, term: terms.Term) -> terms.Term:
        """Add the parts of a term with aggregates under hidden names, and return the term that combines them."""
        if isinstance(term, (terms.Literal, terms.Parameter)):
            return term
        if not has_aggregate(term):
            return self._add(self._name(name), term, None, begins=True)
        if isinstance(term, terms.Arithmetic):
            left, right = self._add_hidden(name, term.left), self._add_hidden(name, term.right)
            return terms.Arithmetic(term.operator, left, right)
        if isinstance(term, terms.Negative):
            return terms.Negative(self._add_hidden(name, term.term))
        assert isinstance(term, terms.Aggregate)  # noqa: S101 - nothing else has one
        if term.function is not terms.AggregateFunction.AVG:
            return self._add(self._name(name), term.argument, term.function, begins=True)
        assert term.argument is not None  # noqa: S101 - only count(*) has none
        total = self._add(self._name(name), term.argument, terms.AggregateFunction.SUM, begins=True)
        # Only numbers are counted: the product of anything else is absent.
        number = terms.Arithmetic(terms.ArithmeticOperator.MULTIPLY, term.argument, _ONE)
        count = self._add(self._name(name), number, terms.AggregateFunction.COUNT, begins=True)
        return terms.Arithmetic(terms.ArithmeticOperator.DIVIDE, total, count)

    def _name(self, name: str) -> str:
        return f"{algebra.HIDDEN}{self.step}.{len(self.all)}.{name}"

    def _add(
        self, name: str, term: terms.Term | None, function: terms.AggregateFunction | None, *, begins: bool
    ) -> terms.Attribute:
        self.all.append(_Part(name, _ONE if term is None else term, function, begins))
        return terms.Attribute(name)


@dataclass(frozen=True)
class Carried:
    """The attributes that the events of a sequence in parentheses can have: these names, and any of these aliases."""

    names: tuple[str, ...]
    aliases: tuple[str, ...]

    def has(self, path: str) -> bool:
        """Tell whether an event can have this attribute."""
        return path in self.names or any(path.startswith(f"{alias}.") for alias in self.aliases)


@dataclass
class StepScope:
    """The names that are visible at the step being translated."""

    tick: int
    aliases: list[str] = field(default_factory=list)  # of the steps so far, this one's the last
    computed: dict[str, None] = field(default_factory=dict)  # the names computed to the left
    carried: dict[str, Carried] = field(default_factory=dict)  # by alias, where that is known

    def condition(self, condition: Condition, so_far: Mapping[str, terms.Term] | None = None) -> Condition:
        """Return a condition whose names all have an alias; `so_far` as in `term`."""
        return replace_condition_leaves(condition, lambda leaf: self._leaf(leaf, so_far))

    def term(self, term: terms.Term, so_far: Mapping[str, terms.Term] | None = None) -> terms.Term:
        """Return a term whose names all have an alias.

        In a fold, `so_far` are the terms of its computed values before this iteration.
        """
        return replace_leaves(term, lambda leaf: self._leaf(leaf, so_far))

    def beginning(self, term: terms.Term, folded: Iterable[str]) -> terms.Term:
        """Return a fold's term before the first iteration, with `last` for the alias of the fold.

        `folded` are the names that the fold computes; at this point they have their values from the left, if any.
        """
        so_far = {name: terms.Attribute(name) for name in folded}

        def leaf(term: terms.Term) -> terms.Term:
            found = self._leaf(term, so_far)
            if isinstance(found, terms.Attribute) and found.alias == self.aliases[-1]:
                return terms.Attribute(found.path, algebra.LAST)
            return found

        return replace_leaves(term, leaf)

    def compute(self, values: tuple[queries.Computation, ...]) -> None:
        """Make computed values visible to later steps."""
        for value in values:
            if value.name.startswith(algebra.HIDDEN):
                raise SubscriptionError(
                    f"the computed value `{value.name}` needs another name: those that begin with `{algebra.HIDDEN}` are "
                    "Tocsin's own"
                )
            self.computed[value.name] = None

    def _leaf(self, term: terms.Term, so_far: Mapping[str, terms.Term] | None) -> terms.Term:
        if isinstance(term, terms.Attribute):
            return self._attribute(term, so_far)
        return terms.Literal(ticks_in(term, self.tick), Kind.NUMBER) if isinstance(term, terms.Span) else term

    def _attribute(self, name: terms.Attribute, so_far: Mapping[str, terms.Term] | None) -> terms.Term:
        """Return the attribute with the alias of its step, or the computed value of this name."""
        path, alias = name.path, name.alias
        if alias in (None, algebra.LAST):
            folded = so_far if so_far is not None else {}
            if path in self.computed or (alias == algebra.LAST and path in folded):
                return folded.get(path, terms.Attribute(path))
        if alias == algebra.LAST:
            if not any(self._may_have(left, path) for left in self.aliases):
                raise self._unknown(name, self.aliases[-1])
            return name
        owner = self.aliases[-1] if alias is None else alias
        if not self._may_have(owner, path):
            raise self._unknown(name, owner)
        return terms.Attribute(path, owner)

    def _may_have(self, alias: str, path: str) -> bool:
        return alias not in self.carried or self.carried[alias].has(path)

    def _unknown(self, name: terms.Attribute, owner: str) -> SubscriptionError:
        """Return the error for an attribute that the events of `owner` cannot have."""
        carried = self.carried[owner]
        known = (*carried.names, *(f"{alias}.…" for alias in carried.aliases), *self.computed)
        near = closest(name.path, known)
        hint = f"; did you mean `{near}`?" if near else ""
        listed = ", ".join(f"`{path}`" for path in known) or "nothing"
        return SubscriptionError(
            f"there is no `{term_text(name, sequence=True)}`: the events of the sequence in parentheses have {listed}{hint}"
        )
