"""The propagation matchers: every conjunction under its most selective equality alone (Le Subscribe, 5)."""

from __future__ import annotations

from tocsin.matching.le_subscribe.matcher import ClusteredMatcher
from tocsin.matching.registry import register


@register("propagation")
class Propagation(ClusteredMatcher):
    """One equality as access predicate, and no prefetching."""

    prefetching = False


@register("propagation-wp")
class PropagationWithPrefetch(ClusteredMatcher):
    """One equality as access predicate; the next cache lines are asked for while the current ones are checked."""
