"""What matchers answered to the same events; they must agree."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from tocsin.matching import Matches
from tocsin.matching.encoding.codes import Keys
from tocsin.model.errors import MatcherError


class Answers:
    """For each question, how many matches each event has and the sum of their ids, by the matcher that went furthest."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[str, Keys]] = {}

    def check(self, question: Hashable, matcher: str, answers: Sequence[Keys]) -> None:
        """Compare summaries of what a matcher answered; raise `MatcherError` if another one answered something else.

        Not all have been given as many events; those that both were given are compared.
        """
        found = np.concatenate(answers, axis=1)
        other, known = self._known.get(question, (matcher, found))
        common = min(found.shape[1], known.shape[1])
        wrong = np.flatnonzero((found[:, :common] != known[:, :common]).any(axis=0))
        if len(wrong):
            event = int(wrong[0])
            one, two = int(known[0, event]), int(found[0, event])
            told = (
                f"{one:,} and {two:,} subscriptions"
                if one != two
                else f"{one:,} subscriptions each, not the same"
            )
            raise MatcherError(
                f"`{other}` and `{matcher}` disagree on {len(wrong):,} of {common:,} events of {question}:"
                f" on event {event} they find {told}"
            )
        if found.shape[1] >= known.shape[1]:
            self._known[question] = matcher, found


def summary(matches: Matches) -> Keys:
    """Return how many matches each event has, and the sum of their ids: the matches themselves may be very many."""
    sums = np.concatenate([[0], np.cumsum(matches.ids)])
    return np.stack([np.diff(matches.offsets), np.diff(sums[matches.offsets])])
