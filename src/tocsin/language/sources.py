"""A query in whatever form it comes: text, JSON, built in Python, or the model itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tocsin.language.build import Clause, StreamBuilder, TableBuilder
from tocsin.language.check import Checked, check, check_query
from tocsin.language.json_form import from_json
from tocsin.language.parsing.parser import canonical
from tocsin.model.conditions import And, Condition, Constant, Not, Or, Predicate
from tocsin.model.errors import SubscriptionError
from tocsin.model.queries import Filter, Query, Sequence, View

QuerySource: TypeAlias = (
    str | Mapping[str, object] | Query | Condition | Clause | StreamBuilder | TableBuilder
)


def read_query(source: QuerySource) -> Checked:
    """Return the query that `source` says, with what its writer should be warned of.

    >>> read_query({"=": [{"attribute": ["symbol"]}, "IBM"]}).query == read_query("symbol = 'IBM'").query
    True
    """
    if isinstance(source, str):
        return check(source)
    if isinstance(source, Mapping):
        query = from_json(source)
    elif isinstance(source, (Clause, StreamBuilder, TableBuilder)):
        query = source.build()
    elif isinstance(source, (Predicate, And, Or, Not, Constant)):
        query = canonical(Filter(source))
    elif isinstance(source, (Filter, Sequence, View)):
        query = canonical(source)
    else:
        raise SubscriptionError(
            f"a subscription is a text, a JSON form or a built query, not {type(source).__name__}"
        )
    return check_query(query)
