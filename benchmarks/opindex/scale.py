"""The sizes of the experiments: for a try, and as in the paper."""

from __future__ import annotations

from typing import Final

from benchmarks.runner.scale import scales

SCALES: Final = scales(
    sizes=((5_000, 20_000, 50_000), (1_000_000, 5_000_000, 10_000_000, 20_000_000)),  # subscriptions (N)
    usual=(20_000, 1_000_000),  # subscriptions, where something else is varied
    input_a=((20_000,), (1_000_000, 10_000_000)),  # subscriptions, of the input that targets are set for
    queries=((5_000, 20_000), (1_000_000, 3_000_000)),  # subscriptions of keywords
    products=((2_000, 5_000), (250_000, 1_000_000)),  # subscriptions to products
    product_usual=(2_000, 1_000_000),  # where their size is varied
    forms=((5_000, 20_000), (1_000_000, 3_000_000)),  # subscriptions in CNF and in DNF
    form_usual=(10_000, 1_000_000),  # where their clauses are varied
    prefixes=(5_000, 1_000_000),  # subscriptions, some of them to prefixes
    attributes=((20_000, 40_000, 60_000), (20_000, 40_000, 60_000)),  # d
    predicates=((4, 8, 20), (4, 8, 20)),  # the largest subscription
    pairs=((20, 60, 120), (20, 40, 60, 80, 100, 120)),  # the largest event (m)
    equal_shares=((20, 60, 100), (20, 40, 60, 80, 100)),  # per cent of predicates `=`
    values=((50, 800, 12_800), (50, 800, 12_800)),  # sigma
    exponents=((0.0, 0.6, 1.0), (0.0, 0.4, 0.8, 1.0)),  # Zipf's
    clauses=((1, 5, 9), (1, 5, 9)),  # the most in a subscription
    prefix_shares=((20, 60, 100), (20, 60, 100)),  # per cent of predicates `starts with`
    prefix_lengths=((2, 4, 6), (2, 4, 6)),
    capacities=((5, 50, 250), (5, 50, 100, 150, 200, 250)),  # of a BE-Tree's leaf
    documents=(2_000, 20_000),  # of a made-up corpus,
    words=(10_000, 50_000),  # the most frequent words, of any corpus
    catalogue=(4_000, 50_000),  # products of a made-up catalogue,
    catalogue_attributes=(2_000, 8_000),  # and their attributes
    events=(500, 10_000),  # that a figure is taken from,
    seconds=(0.1, 2.0),  # or as many batches of them as this time allows
    warm_up=(100, 500),  # events before
    batch=(100, 250),  # events
    dicts=(100, 1_000),  # events that are encoded from dicts
    tried=(50_000, 20_000),  # subscriptions from which the cost of many more is estimated
    patience=(5.0, 900.0),  # seconds that one matcher may take at one place
)
