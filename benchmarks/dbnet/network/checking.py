"""Whether a strategy has told the truth: answers after a run, recomputed from the rows that there are then."""

from __future__ import annotations

from tocsin.dissemination.scenarios.definitions import definition_of, known
from tocsin.dissemination.scenarios.joins import PreparedJoin
from tocsin.dissemination.scenarios.recomputation import is_same, sampled
from tocsin.dissemination.scenarios.scenario import Prepared
from tocsin.dissemination.strategies.strategy import Strategy
from tocsin.model.errors import MatcherError


def check_answers(strategy: Strategy, prepared: Prepared | PreparedJoin, sample: int) -> None:
    """Raise `MatcherError` if a subscription of the sample knows another answer than the rows after all changes give."""
    queries = prepared.queries
    now = definition_of(prepared)
    now.change_all(prepared.changes)
    for number in sampled(len(queries), sample).tolist():
        if not is_same(found := known(strategy, number), meant := now.answer(number)):
            raise MatcherError(
                f"{strategy.name}: subscription {number}, [{queries.lows[number]}, {queries.highs[number]}], "
                f"knows {found}, and recomputing gives {meant}"
            )
