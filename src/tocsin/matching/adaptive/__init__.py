"""The adaptive matcher: one cost model over all ways to reach a conjunction."""
