"""Syntax of other languages (SQL, pandas, Elasticsearch, Python), with its counterpart in this one."""

from __future__ import annotations

from typing import Final

_EVENT_BEFORE: Final = (
    "an earlier event is a step of its own: from stock a next stock b where b.price > a.price; "
    "in a fold, `last.price` is the iteration before"
)
_ABSENCE: Final = (
    "an event that must not come in between is excluded by taking it too: "
    "next s b on b.kind in ('wanted', 'unwanted') where b.kind = 'wanted'"
)
_TEST_BETWEEN: Final = (
    "a test stands between its sides: name contains 'x', name starts with 'x', name like 'x%', name ~ '^x'"
)
_SEVERAL: Final = "one of several values is `price in (1, 2)`; from one to another is `price between 1 and 2`"
_WINDOWS: Final = "there are no windows: a view is of the rows that the table has now, and `within 5 minutes` bounds a sequence"
_CASE: Final = "there is no `case`: write the alternatives as conditions: kind = 'a' and price > 1 or kind = 'b' and price > 2"
_PREFIX: Final = "a subscription is the condition alone: price > 5"
_CHANGES: Final = "a subscription asks and changes nothing; rows come by `publish` and `upsert`"

_WORDS: Final = {
    "== === equals eq is_equal": "equality is written `=`",
    "=>": "did you mean `>=`?",
    "=<": "did you mean `<=`?",
    "=~ regexp regex matches rlike similar": "a regular expression is tested with `~`: name ~ '^x'",
    "&&": "did you mean `and`?",
    "||": "did you mean `or`?",
    "xor": "there is no `xor`: write (a = 1 or b = 1) and not (a = 1 and b = 1)",
    "!": "did you mean `not`, or `!=`?",
    "gt greater above over exceeds": "did you mean `>`?",
    "gte ge": "did you mean `>=`?",
    "lt less below under": "did you mean `<`?",
    "lte le": "did you mean `<=`?",
    "ne neq": "did you mean `!=`?",
    "begins beginning begin": "did you mean `starts with`?",
    "has includes including include": "did you mean `contains`?",
    "isnull isna": "did you mean `is missing`?",
    "notnull notna": "did you mean `is present`?",
    "ilike": "`like` minds the case; for any case use a regular expression: a ~ '(?i)text'",
    "escape": "`like` escapes with a backslash: '100\\%'",
    "% ^ **": "the operations on numbers are + - * /",
    "distinct": "the different values are a view: select distinct sector from table stock",
    "having": "Tocsin has no `having`: every change of an answer is notified",
    "group": "Tocsin has no `group by`: make one subscription per group, from a template",
    "order": "Tocsin has no `order by`: notifications come in the order of events",
    "limit top fetch offset": "Tocsin has no `limit`: narrow the condition, or ask for `min` or `max`",
    "left right inner outer cross full natural": (
        "there is one kind of join, of the rows that match: from table a join table b on a.id = b.id"
    ),
    "using": "a join names both sides: from table a join table b on a.id = b.id",
    "then followed": "did you mean `next`?",
    "union intersect except": (
        "there is no `union`: make a subscription for each part; sequences may `publish as` one name, which others read"
    ),
    "when else end case": _CASE,
    "partition": "there are no window functions: make one subscription per group, from a template",
    "every window tumbling sliding hopping": _WINDOWS,
}
FOREIGN_SYNTAX: Final = {word: hint for words, hint in _WORDS.items() for word in words.split()}
"""Words and signs, in lower case."""

_CALLS: Final = {
    "lower upper lcase ucase casefold tolower toupper": (
        "to compare in any case use a regular expression: name ~ '(?i)^ibm$'"
    ),
    "len length char_length size": "the length of a string is tested by its form: name ~ '^.{5,}$' is five or more",
    "abs": "write both sides: price > 5 or price < -5",
    "round floor ceil ceiling trunc": "compare with a range: price >= 4.5 and price < 5.5",
    "sqrt pow power exp log ln mod sign greatest least": "the operations on numbers are + - * /",
    "contains startswith endswith starts_with ends_with instr charindex match matches regexp_like like": _TEST_BETWEEN,
    "concat substring substr trim replace split left right": "strings are tested, not changed: "
    "name contains 'x', name starts with 'x', name like 'x%', name ~ '^x'",
    "isin between in terms range": _SEVERAL,
    "isnull is_null ifnull nvl isna notnull notna isnan coalesce is_missing": (
        "absence is tested by `price is missing` and `price is present`"
    ),
    "exists": "absence is tested by `price is missing` and `price is present`; rows of two tables are joined: "
    "from table a join table b on a.id = b.id",
    "now current_timestamp current_date today getdate sysdate": (
        "a time is a constant: time > timestamp '2026-01-01T00:00:00Z'; what happens within a time is a sequence: "
        "from stock a next stock b within 5 minutes"
    ),
    "timestamp": "a time is written without parentheses: timestamp '2026-01-01T00:00:00Z'",
    "date year month day hour minute extract date_trunc datetime to_date to_timestamp": (
        "times are compared with constants: time between timestamp '2026-01-01T00:00:00Z' and timestamp '2026-01-31T23:59:59Z'"
    ),
    "cast int float str to_number convert try_cast": "values keep the kind that they have: write the constant in it, 5 or '5'",
    "lag lead prev previous shift first last first_value last_value nth": _EVENT_BEFORE,
    "row_number rank dense_rank ntile": "there are no window functions: make one subscription per group, from a template",
    "median mode stddev std variance var percentile mean average total approx_count_distinct nunique": (
        "the aggregates are `count`, `sum`, `avg`, `min`, `max`; the different values are `select distinct sector from table stock`"
    ),
    "any all some": _SEVERAL,
    "if iif case decode": _CASE,
    "absent not_exists without": _ABSENCE,
}
FOREIGN_CALLS: Final = {name: hint for names, hint in _CALLS.items() for name in names.split()}
"""Functions and methods, in lower case."""

STATEMENTS: Final = {
    word: hint
    for words, hint in {
        "insert update delete create drop alter truncate merge": _CHANGES,
        "with": "there are no named subqueries; a sequence in parentheses stands in the place of a stream",
        "if when alert notify": _PREFIX,
        "show describe explain": "a subscription has no commands; the command line has `tocsin explain` and `tocsin check`",
    }.items()
    for word in words.split()
}
"""Words that begin statements of other languages."""

NOT_A_VALUE: Final = frozenset(("nan", "inf", "infinity", "none", "nil", "undefined", "na"))
"""Words for values that no event has: here they are names of attributes."""

BEFORE_A_STRING: Final = {
    "date": "a time is written: timestamp '2026-01-01T00:00:00Z'",
    "time": "a time is written: timestamp '2026-01-01T00:00:00Z'",
    "datetime": "a time is written: timestamp '2026-01-01T00:00:00Z'",
    "interval": "a length of time has no quotes and no `interval`: duration < 5 minutes, within 5 minutes",
}
"""Words before a string, which makes it a time or a length of time elsewhere."""

PREVIOUS: Final = frozenset(("prev", "previous", "before", "prior", "first"))
EVENT_BEFORE: Final = _EVENT_BEFORE
ABSENCE: Final = _ABSENCE
SUBQUERY: Final = (
    "make it a subscription of its own, or join two tables: from table a join table b on a.id = b.id; a list is of "
    "constants, or a template's parameter: in :names"
)
