"""Ways of keeping by the kind of view: a new one is one new module, entered here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tocsin.views.compiled import CompiledRowView
from tocsin.views.keeping.counts import Count
from tocsin.views.keeping.extremes import Greatest, Least
from tocsin.views.keeping.keeper import Keeper
from tocsin.views.keeping.totals import Average, Total
from tocsin.views.keeping.values import Distinct
from tocsin.views.keeping.whole_rows import WholeRows

KEEPERS: Final[Mapping[str, Callable[[CompiledRowView], Keeper[Any]]]] = {
    "rows": WholeRows,
    "min": Least,
    "max": Greatest,
    "count": Count,
    "sum": Total,
    "avg": Average,
    "distinct": Distinct,
}
"""What makes a keeper for the subscriptions of a plan, by the plan's kind."""
