"""Whole queries: filters, sequences and views."""

from __future__ import annotations

from typing import Final

from tocsin.language.parsing import clauses, conditions, terms
from tocsin.language.parsing.cursor import Cursor, NameScope, closest
from tocsin.language.parsing.foreign import ABSENCE
from tocsin.language.parsing.leftovers import SEQUENCE_WORDS, leftover_error, position_hint
from tocsin.language.parsing.tokens import END, NAME, NUMBER, PARAMETER, QUOTED, RESERVED, STRING
from tocsin.language.printer import term_text
from tocsin.model import queries
from tocsin.model.conditions import TRUE, Condition
from tocsin.model.terms import (
    Aggregate,
    Attribute,
    Literal,
    Parameter,
    Span,
    SpanUnit,
    Star,
    Term,
    operands_of,
)
from tocsin.model.values import Kind

_NOT_FIRST: Final = frozenset(("where", "on", "while", "join", *SEQUENCE_WORDS))
_NO_AGGREGATE: Final = "aggregates belong to a fold's `compute`"
_OPERATORS: Final = frozenset((*conditions.COMPARISONS, "~", "!~", "in", "like", "between", "is"))
_OF_ALL_EVENTS: Final = (
    "one event has no aggregate; over a table it is a view, as select min(price) from table stock, and over the events "
    "of a sequence a fold computes it"
)
_OF_ALL_ROWS: Final = "`where` tests each row by itself; the aggregate is a view of its own, as select max(price) from table stock"


def query_of(cursor: Cursor) -> queries.Query:
    """Read the whole text."""
    if cursor.kinds[0] == END:
        raise cursor.fail("the subscription is empty", expected=("a condition", "`select`", "`from`"))
    query = _query(cursor)
    cursor.accept(";")
    if cursor.kinds[cursor.at] != END:
        raise leftover_error(cursor)
    return query


def _query(cursor: Cursor) -> queries.Query:
    """Parse a view, a sequence or a filter; a filter may be a bare condition."""
    word = cursor.words[cursor.at]
    if word in _NOT_FIRST and cursor.words[cursor.at + 1] not in conditions.COMPARISONS:
        raise cursor.fail(f"no subscription begins with `{word}`", suggestion=position_hint(cursor, word))
    if word in ("select", "from") and cursor.words[cursor.at + 1] in _OPERATORS:
        raise cursor.keyword_as_name(cursor.at)
    if word in ("select", "from"):
        selected = _skip_select_list(cursor)
        is_view = _is_table(cursor, cursor.at + 1)
        return _view(cursor, selected) if is_view else _from(cursor, selected)
    return queries.Filter(conditions.condition(cursor, "a subscription"))


# `select` is written first but read second, since its names are resolved by the sources after `from`


def _skip_select_list(cursor: Cursor) -> int | None:
    """Move to `from`, and return the token at which the select list before it begins, if there is one."""
    if cursor.words[cursor.at] != "select":
        return None
    selected = cursor.at + 1
    cursor.at = _find_from(cursor, selected)
    return selected


def _find_from(cursor: Cursor, start: int) -> int:
    """Return the token of the `from` that belongs to the `select` before `start`, or raise if there is none."""
    depth = 0
    for at in range(start, len(cursor.words)):
        word = cursor.words[at]
        depth += (word == "(") - (word == ")")
        if word == "from" and depth == 0:
            if _is_attribute_called_from(cursor, at):
                raise cursor.keyword_as_name(at)
            return at
        if depth < 0:
            break
    cursor.at = start - 1
    slips = [at for at in range(start, len(cursor.words)) if closest(cursor.words[at], ("from",), 0.75)]
    meant = slips[0] if slips else None
    raise cursor.fail(
        "`select` without `from`",
        at=meant,
        expected=("`from` and a stream or table",),
        suggestion="did you mean `from`?"
        if meant
        else "write: select price from stock where price > 5; without a stream, the condition alone: price > 5",
    )


def _is_attribute_called_from(cursor: Cursor, at: int) -> bool:
    """Tell whether the `from` at a token is listed among what is selected, and another one follows."""
    is_listed = cursor.words[at - 1] == "," or cursor.words[at + 1] in (",", "from", "as")
    return is_listed and "from" in cursor.words[at + 1 :]


# filters and sequences


def _from(cursor: Cursor, selected: int | None, *, nested: bool = False) -> queries.Filter | queries.Sequence:
    """Parse a filter or a sequence from its `from`; `selected` is the first token after its `select`, if it has one."""
    start = cursor.at
    if selected is not None and cursor.words[selected] == "distinct":
        raise cursor.fail(
            "`distinct` needs a table, not a stream", at=selected, suggestion="did you mean `from table`?"
        )
    is_sequence = nested or _is_sequence(cursor, start)
    outer, cursor.scope = (
        cursor.scope,
        NameScope(sequence=is_sequence, elapsed=is_sequence, aggregates=_NO_AGGREGATE),
    )
    query = (
        _sequence(cursor, selected, cursor.scope, nested=nested)
        if is_sequence
        else _filter(cursor, selected, cursor.scope)
    )
    cursor.scope = outer
    return query


def _sequence(cursor: Cursor, selected: int | None, scope: NameScope, *, nested: bool) -> queries.Sequence:
    """Parse the steps and the last clauses of a sequence."""
    steps: list[queries.Step] = [_first(cursor, scope)]
    while cursor.words[cursor.at] in ("next", "fold"):
        steps.append(_next(cursor, scope) if cursor.words[cursor.at] == "next" else _fold(cursor, scope))
    within = _within(cursor) if cursor.accept("within") else None
    scope.elapsed = False
    select = _tail_select(cursor, selected)
    publish = _publish(cursor, nested=nested) if cursor.words[cursor.at] == "publish" else None
    return queries.Sequence(tuple(steps), within, select, publish)


def _filter(cursor: Cursor, selected: int | None, scope: NameScope) -> queries.Filter:
    """Parse a filter that names its stream."""
    scope.aggregates = _OF_ALL_EVENTS
    cursor.at += 1
    stream = clauses.dotted_name(cursor, "the name of a stream")
    scope.single, scope.renamed = clauses.alias(cursor, scope) or stream, stream
    where = clauses.where(cursor)
    select = _tail_select(cursor, selected)
    return queries.Filter(where, stream, select)


def _tail_select(cursor: Cursor, selected: int | None) -> tuple[queries.SelectItem, ...]:
    if cursor.words[cursor.at] == "select":
        if selected is not None:
            raise cursor.fail("`select` is given twice", suggestion="it stands before `from` or at the end")
        cursor.at += 1
        return clauses.select_list(cursor)
    return () if selected is None else clauses.items(cursor, selected)


def _first(cursor: Cursor, scope: NameScope) -> queries.From:
    """Parse the first step of a sequence."""
    cursor.at += 1
    source, alias = _source(cursor, scope)
    where = clauses.where(cursor)
    scope.elapsed = False
    compute = clauses.compute(cursor) if cursor.accept("compute") else ()
    scope.elapsed = True
    scope.computed.update(value.name for value in compute)
    return queries.From(source, alias, where, compute)


def _next(cursor: Cursor, scope: NameScope) -> queries.Next:
    """Parse a `next` step."""
    cursor.at += 1
    source, alias = _source(cursor, scope)
    on = clauses.condition_after(cursor, "on")
    where = clauses.where(cursor)
    if cursor.words[cursor.at] in ("compute", "while"):
        raise cursor.fail(f"`next` takes no `{cursor.words[cursor.at]}`", suggestion="did you mean `fold`?")
    return queries.Next(source, alias, on, where)


def _fold(cursor: Cursor, scope: NameScope) -> queries.Fold:
    """Parse a `fold` step; `last` is known before its `where`, and aggregates in its `compute` only."""
    cursor.at += 1
    source, alias = _source(cursor, scope)
    scope.last = True
    bare = scope.bare = {}
    on = clauses.condition_after(cursor, "on")
    while_ = clauses.condition_after(cursor, "while")
    scope.bare = None
    compute: tuple[queries.Computation, ...] = ()
    if cursor.accept("compute"):
        scope.aggregates, scope.elapsed = None, False
        compute = clauses.compute(cursor)
        scope.aggregates, scope.elapsed = _NO_AGGREGATE, True
        _check_folded(cursor, alias, compute, bare)
    scope.last = False
    where = clauses.where(cursor)
    if cursor.words[cursor.at] in ("on", "while", "compute"):
        raise cursor.fail("the clauses of `fold` have the order `on`, `while`, `compute`, `where`")
    return queries.Fold(source, alias, on, while_, compute, where)


def _check_folded(
    cursor: Cursor, alias: str | None, compute: tuple[queries.Computation, ...], bare: dict[str, int]
) -> None:
    """Refuse a name in `on` or `while` that only this fold computes: it would be an attribute of the event.

    In `compute` itself such a name is often meant, as in `price = avg(price)`; outside of aggregates it gets a warning.
    """
    scope = cursor.scope
    for value in compute:
        name = value.name
        if name in scope.computed:
            continue  # a step before computes it, so it has a value, which every iteration renews
        own = f"{alias or 'b'}.{name}"
        if name in bare:
            raise cursor.fail(
                f"`{name}` is computed after each iteration; here it would be an attribute of the event",
                at=bare[name],
                suggestion=f"the value of the iteration before is `last.{name}`; the attribute is written `{own}`"
                + ("" if alias else ", with an alias `b` after the stream"),
            )
        if _reads_itself(value.term, name):
            cursor.warnings.append(
                f"in `compute {name} = {term_text(value.term, sequence=True)}`, `{name}` is an attribute of the event; "
                f"the value of the iteration before is `last.{name}`, and the attribute is also written `{own}`"
            )
    scope.computed.update(value.name for value in compute)


def _reads_itself(term: Term, name: str) -> bool:
    """Tell whether a term names an attribute outside of aggregates."""
    if isinstance(term, Aggregate):
        return False
    return term == Attribute(name) or any(_reads_itself(operand, name) for operand in operands_of(term))


def _within(cursor: Cursor) -> Span | Parameter:
    """Parse the length after `within`; a bare integer counts ticks."""
    at = cursor.at
    if cursor.kinds[at] == PARAMETER:
        return terms.parameter(cursor, at)
    term = terms.term(cursor, "the length after `within`")
    is_unit_due = cursor.kinds[at] == NUMBER and cursor.at == at + 1 and cursor.kinds[cursor.at] == NAME
    if is_unit_due and cursor.words[cursor.at] not in RESERVED:
        raise terms.unknown_unit_error(cursor, cursor.at)
    if cursor.words[cursor.at] == "and":
        terms.refuse_second_unit(cursor, cursor.at + 1)
    if isinstance(term, Literal) and isinstance(term.value, int) and term.kind is Kind.NUMBER:
        term = Span(term.value, SpanUnit.TICKS)
    if not isinstance(term, Span) or term.amount <= 0:
        quoted = cursor.kinds[at] == STRING or cursor.kinds[cursor.at] == STRING
        raise cursor.fail(
            "`within` needs a length of time above zero, such as `10 minutes`, or ticks",
            at=at,
            suggestion="a length of time has no quotes: within 10 minutes" if quoted else None,
        )
    return term


def _publish(cursor: Cursor, *, nested: bool) -> str:
    """Parse `publish as` and return the published name."""
    if nested:
        raise cursor.fail(
            "a sequence in parentheses cannot publish", suggestion="publish it in a subscription of its own"
        )
    cursor.at += 1
    cursor.expect("as", "`publish` is followed by `as` and a name")
    return clauses.dotted_name(cursor, "the published name")


def _source(cursor: Cursor, scope: NameScope) -> tuple[queries.Source, str | None]:
    """Parse the stream or the nested sequence of a step, and its alias; add the alias to the scope."""
    if _is_table(cursor, cursor.at):
        raise cursor.fail(
            "a sequence reads streams, not tables",
            suggestion="leave out the word `table`; a view reads its table without parentheses: select * from table t",
        )
    if cursor.words[cursor.at] == "not":
        raise cursor.fail("the absence of an event is no step", suggestion=ABSENCE)
    if cursor.words[cursor.at] == "(":
        source: queries.Source = _nested_sequence(cursor)
    else:
        source = clauses.dotted_name(cursor, "the name of a stream")
    alias = clauses.alias(cursor, scope)
    if alias is not None:
        scope.aliases.append(alias)
    elif isinstance(source, str):
        scope.unnamed.append(source)
    return source, alias


def _nested_sequence(cursor: Cursor) -> queries.Sequence:
    """Parse a sequence in parentheses."""
    opening = cursor.at
    cursor.enter(opening)
    cursor.at += 1
    if cursor.words[cursor.at] not in ("select", "from"):
        raise cursor.unexpected(
            "parentheses after `from`, `next` or `fold` hold a sequence", ("from", "select")
        )
    nested = _from(cursor, _skip_select_list(cursor), nested=True)
    if cursor.words[cursor.at] != ")":
        raise (
            leftover_error(cursor)
            if cursor.kinds[cursor.at] != END
            else terms.unclosed_error(cursor, opening)
        )
    cursor.at += 1
    cursor.depth -= 1
    assert isinstance(nested, queries.Sequence)  # noqa: S101 - `nested` asks for one
    return nested


def _is_sequence(cursor: Cursor, start: int) -> bool:
    """Tell whether the `from` at `start` begins a sequence: a step or a clause of sequences follows."""
    depth = 0
    for at in range(start, len(cursor.words)):
        word = cursor.words[at]
        depth += (word == "(") - (word == ")")
        if depth == 0 and word in SEQUENCE_WORDS:
            return True
    return cursor.words[start + 1] == "("


# views


def _is_table(cursor: Cursor, at: int) -> bool:
    return cursor.words[at] == "table" and (
        cursor.kinds[at + 1] == QUOTED
        or (cursor.kinds[at + 1] == NAME and cursor.words[at + 1] not in RESERVED)
    )


def _view(cursor: Cursor, selected: int | None) -> queries.View:
    """Parse a view from its `from table`."""
    if selected is None:
        raise cursor.fail(
            "a view needs `select`", suggestion="write: select min(price) from table …, or select *"
        )
    cursor.at += 1
    scope = cursor.scope = NameScope(aggregates=_OF_ALL_ROWS)
    _refuse_third_table(cursor)
    tables = [_table(cursor, scope)]
    on: Condition = TRUE
    if cursor.words[cursor.at] == "join":
        cursor.at += 1
        if not _is_table(cursor, cursor.at):
            raise cursor.unexpected("a table is joined with a table", ("table",))
        tables.append(_table(cursor, scope))
        on = _join(cursor, tables, scope)
    else:
        scope.single, scope.renamed = tables[0].alias or tables[0].name, tables[0].name
        tables = [queries.Table(tables[0].name)]
    where = clauses.where(cursor)
    if cursor.words[cursor.at] == "publish":
        raise cursor.fail(
            "a view does not publish: its answer is notified whenever it changes",
            suggestion="leave out `publish as`; what reads its changes subscribes, and a sequence publishes: "
            "select * from stock where price > 5 publish as high",
        )
    if cursor.words[cursor.at] in SEQUENCE_WORDS:
        raise cursor.fail(
            "a view has no steps", suggestion="a sequence reads a stream: leave out the word `table`"
        )
    distinct, items = _view_items(cursor, selected, scope)
    return queries.View(items, tuple(tables), on, where, distinct)


def _refuse_third_table(cursor: Cursor) -> None:
    """Refuse a view of three tables, before an alias that only the third one has seems unknown."""
    joins = [at for at in range(cursor.at, len(cursor.words)) if cursor.words[at] == "join"]
    if len(joins) > 1:
        raise cursor.fail(
            "a view reads one table or joins two, and this is a third",
            at=joins[1],
            suggestion="join two of them, or keep the attributes of both in the rows of one table",
        )


def _table(cursor: Cursor, scope: NameScope) -> queries.Table:
    cursor.at += 1
    name = clauses.dotted_name(cursor, "the name of a table")
    return queries.Table(name, clauses.alias(cursor, scope))


def _join(cursor: Cursor, tables: list[queries.Table], scope: NameScope) -> Condition:
    """Parse the condition of a join, and add the names of both tables to the scope."""
    names = [table.alias or table.name for table in tables]
    if names[0] == names[1]:
        raise cursor.fail(
            f"both tables are called `{names[0]}`", at=cursor.at - 1, suggestion="give each an alias"
        )
    scope.aliases, scope.joined = names, True
    if cursor.words[cursor.at] != "on":
        raise cursor.unexpected("a join needs the condition it joins on", ("on",))
    return clauses.condition_after(cursor, "on")


def _view_items(
    cursor: Cursor, selected: int, scope: NameScope
) -> tuple[bool, tuple[queries.SelectItem, ...]]:
    """Parse the select list of a view; return whether it is distinct, and its items."""
    distinct = cursor.words[selected] == "distinct"
    scope.aggregates = None
    items = clauses.items(cursor, selected + distinct)
    if distinct and (not items or isinstance(items[0].term, Star)):
        raise cursor.fail("`select distinct` needs the attributes whose values it selects", at=selected + 1)
    return distinct, items
