"""Whole queries: filters, sequences and views."""

from __future__ import annotations

from typing import Final

from tocsin.language.parsing.clauses import CLAUSE_WORDS, ClauseReader
from tocsin.language.parsing.cursor import closest
from tocsin.language.parsing.terms import COMPARISON_SIGNS, NameScope
from tocsin.language.parsing.tokens import END, NAME, NUMBER, PARAMETER, QUOTED, RESERVED
from tocsin.model import queries
from tocsin.model.conditions import TRUE, Condition
from tocsin.model.terms import Literal, Parameter, Span, SpanUnit
from tocsin.model.values import Kind

_SEQUENCE_WORDS: Final = frozenset(("next", "fold", "within", "publish", "compute"))
_NOT_FIRST: Final = frozenset(("where", "on", "while", "join", *_SEQUENCE_WORDS))
_NO_AGGREGATE: Final = "aggregates belong to a fold's `compute`"


class QueryReader(ClauseReader):
    """Reads one query, to the end of the text; `result` is set by `read`."""

    result: queries.Query

    def query(self) -> queries.Query:
        """Read the whole text."""
        if self.kinds[0] == END:
            raise self.fail("the subscription is empty", expected=("a condition", "`select`", "`from`"))
        query = self._query()
        self.accept(";")
        if self.kinds[self.at] != END:
            raise self._leftover()
        return query

    def _query(self) -> queries.Query:
        word = self.words[self.at]
        if word in _NOT_FIRST and self.words[self.at + 1] not in COMPARISON_SIGNS:
            raise self.fail(f"no subscription begins with `{word}`", suggestion=self._misplaced(word))
        if word == "select":
            return self._selecting()
        if word == "from":
            return self._view(None) if self._is_table(self.at + 1) else self._from(None)
        return queries.Filter(self.condition("a subscription"))

    # `select` is written first but read second, since its names are resolved by the sources after `from`

    def _selecting(self) -> queries.Query:
        selected = self.at + 1
        self.at = self._find_from(selected)
        return self._view(selected) if self._is_table(self.at + 1) else self._from(selected)

    def _find_from(self, start: int) -> int:
        depth = 0
        for at in range(start, len(self.words)):
            word = self.words[at]
            depth += (word == "(") - (word == ")")
            if word == "from" and depth == 0:
                return at
            if depth < 0:
                break
        self.at = start - 1
        slips = [at for at in range(start, len(self.words)) if closest(self.words[at], ("from",), 0.75)]
        meant = slips[0] if slips else None
        raise self.fail(
            "`select` without `from`",
            at=meant,
            expected=("`from` and a stream or table",),
            suggestion="did you mean `from`?" if meant else None,
        )

    # filters and sequences

    def _from(self, selected: int | None, *, nested: bool = False) -> queries.Filter | queries.Sequence:
        start = self.at
        if selected is not None and self.words[selected] == "distinct":
            raise self.fail(
                "`distinct` needs a table, not a stream", at=selected, suggestion="did you mean `from table`?"
            )
        is_sequence = nested or self._is_sequence(start)
        outer, self.scope = (
            self.scope,
            NameScope(sequence=is_sequence, elapsed=is_sequence, aggregates=_NO_AGGREGATE),
        )
        query = (
            self._sequence(selected, self.scope, nested=nested)
            if is_sequence
            else self._filter(selected, self.scope)
        )
        self.scope = outer
        return query

    def _sequence(self, selected: int | None, scope: NameScope, *, nested: bool) -> queries.Sequence:
        steps: list[queries.Step] = [self._first(scope)]
        while self.words[self.at] in ("next", "fold"):
            steps.append(self._next(scope) if self.words[self.at] == "next" else self._fold(scope))
        within = self._within() if self.accept("within") else None
        scope.elapsed = False
        select = self._tail_select(selected)
        publish = self._publish(nested=nested) if self.words[self.at] == "publish" else None
        return queries.Sequence(tuple(steps), within, select, publish)

    def _filter(self, selected: int | None, scope: NameScope) -> queries.Filter:
        scope.aggregates = "an aggregate needs a table: select min(price) from table stock"
        self.at += 1
        stream = self.dotted_name("the name of a stream")
        scope.single = self.alias(scope) or stream
        where = self.where()
        select = self._tail_select(selected)
        return queries.Filter(where, stream, select)

    def _tail_select(self, selected: int | None) -> tuple[queries.SelectItem, ...]:
        if self.words[self.at] == "select":
            if selected is not None:
                raise self.fail("`select` is given twice")
            self.at += 1
            return self.select_list()
        return () if selected is None else self.items(selected)

    def _first(self, scope: NameScope) -> queries.From:
        self.at += 1
        source, alias = self._source(scope)
        where = self.where()
        scope.elapsed = False
        compute = self.compute() if self.accept("compute") else ()
        scope.elapsed = True
        return queries.From(source, alias, where, compute)

    def _next(self, scope: NameScope) -> queries.Next:
        self.at += 1
        source, alias = self._source(scope)
        on = self.condition_after("on")
        where = self.where()
        if self.words[self.at] in ("compute", "while"):
            raise self.fail(f"`next` takes no `{self.words[self.at]}`", suggestion="did you mean `fold`?")
        return queries.Next(source, alias, on, where)

    def _fold(self, scope: NameScope) -> queries.Fold:
        self.at += 1
        source, alias = self._source(scope)
        scope.last = True
        on = self.condition_after("on")
        while_ = self.condition_after("while")
        compute: tuple[queries.Computation, ...] = ()
        if self.accept("compute"):
            scope.aggregates, scope.elapsed = None, False
            compute = self.compute()
            scope.aggregates, scope.elapsed = _NO_AGGREGATE, True
        scope.last = False
        where = self.where()
        if self.words[self.at] in ("on", "while", "compute"):
            raise self.fail("the clauses of `fold` have the order `on`, `while`, `compute`, `where`")
        return queries.Fold(source, alias, on, while_, compute, where)

    def _within(self) -> Span | Parameter:
        at = self.at
        if self.kinds[at] == PARAMETER:
            return self._parameter(at)
        term = self.term("the length after `within`")
        if isinstance(term, Literal) and isinstance(term.value, int) and term.kind is Kind.NUMBER:
            term = Span(term.value, SpanUnit.TICKS)
        if not isinstance(term, Span) or term.amount <= 0:
            raise self.fail(
                "`within` needs a length of time above zero, such as `10 minutes`, or ticks", at=at
            )
        return term

    def _publish(self, *, nested: bool) -> str:
        if nested:
            raise self.fail(
                "a sequence in parentheses cannot publish",
                suggestion="publish it in a subscription of its own",
            )
        self.at += 1
        self.expect("as", "`publish` is followed by `as` and a name")
        return self.dotted_name("the published name")

    def _source(self, scope: NameScope) -> tuple[queries.Source, str | None]:
        if self._is_table(self.at):
            raise self.fail("a sequence reads streams, not tables", suggestion="leave out the word `table`")
        if self.words[self.at] == "(":
            source: queries.Source = self._nested()
        else:
            source = self.dotted_name("the name of a stream")
        alias = self.alias(scope)
        if alias is not None:
            scope.aliases.append(alias)
        elif isinstance(source, str):
            scope.unnamed.append(source)
        return source, alias

    def _nested(self) -> queries.Sequence:
        opening = self.at
        self.enter(opening)
        self.at += 1
        selected = None
        if self.words[self.at] == "select":
            selected = self.at + 1
            self.at = self._find_from(selected)
        elif self.words[self.at] != "from":
            raise self.unexpected(
                "parentheses after `from`, `next` or `fold` hold a sequence", ("from", "select")
            )
        nested = self._from(selected, nested=True)
        if self.words[self.at] != ")":
            raise self._leftover() if self.kinds[self.at] != END else self._unclosed(opening)
        self.at += 1
        self.depth -= 1
        assert isinstance(nested, queries.Sequence)  # noqa: S101 - `nested` asks for one
        return nested

    def _is_sequence(self, start: int) -> bool:
        depth = 0
        for at in range(start, len(self.words)):
            word = self.words[at]
            depth += (word == "(") - (word == ")")
            if depth == 0 and word in _SEQUENCE_WORDS:
                return True
        return self.words[start + 1] == "("

    # views

    def _is_table(self, at: int) -> bool:
        return self.words[at] == "table" and (
            self.kinds[at + 1] == QUOTED
            or (self.kinds[at + 1] == NAME and self.words[at + 1] not in RESERVED)
        )

    def _view(self, selected: int | None) -> queries.View:
        if selected is None:
            raise self.fail(
                "a view needs `select`", suggestion="write: select min(price) from table …, or select *"
            )
        self.at += 1
        scope = self.scope = NameScope()
        tables = [self._table(scope)]
        on: Condition = TRUE
        if self.words[self.at] == "join":
            self.at += 1
            if not self._is_table(self.at):
                raise self.unexpected("a table is joined with a table", ("table",))
            tables.append(self._table(scope))
            on = self._join(tables, scope)
        else:
            scope.single = tables[0].alias or tables[0].name
            tables = [queries.Table(tables[0].name)]
        where = self.where()
        if self.words[self.at] in _SEQUENCE_WORDS:
            raise self.fail(
                "a view has no steps", suggestion="a sequence reads a stream: leave out the word `table`"
            )
        distinct, items = self._view_items(selected, scope)
        return queries.View(items, tuple(tables), on, where, distinct)

    def _table(self, scope: NameScope) -> queries.Table:
        self.at += 1
        name = self.dotted_name("the name of a table")
        return queries.Table(name, self.alias(scope))

    def _join(self, tables: list[queries.Table], scope: NameScope) -> Condition:
        names = [table.alias or table.name for table in tables]
        if names[0] == names[1]:
            raise self.fail(
                f"both tables are called `{names[0]}`", at=self.at - 1, suggestion="give each an alias"
            )
        scope.aliases, scope.joined = names, True
        if self.words[self.at] != "on":
            raise self.unexpected("a join needs the condition it joins on", ("on",))
        return self.condition_after("on")

    def _view_items(self, selected: int, scope: NameScope) -> tuple[bool, tuple[queries.SelectItem, ...]]:
        distinct = self.words[selected] == "distinct"
        scope.aggregates = None
        items = self.items(selected + distinct)
        if distinct and not items:
            raise self.fail("`select distinct` needs the attributes whose values it selects", at=selected + 1)
        return distinct, items

    def _leftover(self) -> Exception:
        """Return the error for text that goes on after a complete query."""
        word = self.words[self.at]
        if word == ")":
            return self.fail("this parenthesis closes nothing")
        if word == "," and self.words[0] in ("from", "select"):
            return self.fail(
                "sources are not listed with commas",
                suggestion="a sequence goes on with `next`; two tables are joined with `join table … on …`",
            )
        if word == ",":
            return self.unexpected(
                "nothing can be listed here",
                (),
                ("`and`", "`or`", "the end of the text"),
                "numbers have no thousands separators; a list needs `in (…)`",
            )
        if word in RESERVED and word not in ("and", "or"):
            return self.fail(
                f"`{word}` is not allowed here",
                expected=("the end of the text", "`and`", "`or`"),
                suggestion=self._misplaced(word),
            )
        if self.kinds[self.at - 1] == NUMBER and self.words[self.at][:1] == "_":
            return self.fail("a number ends before `_`", suggestion="numbers have no separators: 12000")
        before = "the condition" if self.words[0] not in ("from", "select") else "the query"
        error = self.unexpected(f"{before} before is complete", ("and", "or"), ("the end of the text",))
        clause = closest(word, CLAUSE_WORDS, 0.75) if self.words[0] in ("from", "select") else None
        if clause is not None:
            error.suggestion = f"did you mean `{clause}`?"
        error.suggestion = error.suggestion or "two conditions are joined with `and` or `or`"
        return error

    def _misplaced(self, word: str) -> str | None:
        if self.words[0] in ("from", "select") and word in ("where", "on", "while", "compute"):
            return "clauses have an order: `where`, `compute` in `from`; `on`, `while`, `compute`, `where` in `fold`"
        if word == "where":
            return "a bare condition needs no `where`; with it, begin with `from` and a stream"
        if word == "join":
            return "a view joins two tables, both after the word `table`: from table a join table b on …"
        if word in _SEQUENCE_WORDS:
            return "a sequence begins with `from`, and its clauses end with `within`, `select`, `publish`"
        return None
