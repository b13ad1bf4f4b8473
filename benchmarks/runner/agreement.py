"""A check that matchers find the same matches of the same events."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from tocsin.matching import Matches
from tocsin.matching.encoding.codes import Keys
from tocsin.model.errors import MatcherError


class Agreement:
    """Per question, the matches of each event in short: their number and the sum of their ids."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[str, Keys]] = {}

    def check(self, question: Hashable, matcher: str, answers: Sequence[Keys]) -> None:
        """Raise `MatcherError` if a matcher's summaries differ from those of one before it.

        Matchers may have been given different numbers of events; those that both were given are compared.
        """
        found = np.concatenate(answers, axis=1)
        other, known = self._known.get(question, (matcher, found))
        common = min(found.shape[1], known.shape[1])
        wrong = np.flatnonzero((found[:, :common] != known[:, :common]).any(axis=0))
        if len(wrong):
            event = int(wrong[0])
            one, two = int(known[0, event]), int(found[0, event])
            found_each = f"{one:,} subscriptions each, not the same"
            told = f"{one:,} and {two:,} subscriptions" if one != two else found_each
            raise MatcherError(
                f"`{other}` and `{matcher}` disagree on {len(wrong):,} of {common:,} events of {question}:"
                f" on event {event} they find {told}"
            )
        if found.shape[1] >= known.shape[1]:
            self._known[question] = matcher, found


def summary(matches: Matches) -> Keys:
    """Return the number of matches of each event and the sum of their ids; the matches themselves may be very many."""
    sums = np.concatenate([[0], np.cumsum(matches.ids)])
    return np.stack([np.diff(matches.offsets), np.diff(sums[matches.offsets])])
