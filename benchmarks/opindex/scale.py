"""The sizes of the experiments."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Scale(Struct, frozen=True):
    """The sizes of all experiments, by default those of the paper. Other parameters are varied at the usual number."""

    name: str
    sizes: tuple[int, ...] = (1_000_000, 5_000_000, 10_000_000, 20_000_000)  # subscriptions (N)
    usual: int = 1_000_000  # subscriptions, where something else is varied
    input_a: tuple[int, ...] = (1_000_000, 10_000_000)  # subscriptions, of the input that targets are set for
    queries: tuple[int, ...] = (1_000_000, 3_000_000)  # subscriptions of keywords
    products: tuple[int, ...] = (250_000, 1_000_000)  # subscriptions to products
    product_usual: int = 1_000_000  # where their size is varied
    forms: tuple[int, ...] = (1_000_000, 3_000_000)  # subscriptions in CNF and in DNF
    form_usual: int = 1_000_000  # where their clauses are varied
    prefixes: int = 1_000_000  # subscriptions, some of them to prefixes
    attributes: tuple[int, ...] = (20_000, 40_000, 60_000)  # d
    predicates: tuple[int, ...] = (4, 8, 20)  # the largest subscription
    pairs: tuple[int, ...] = (20, 40, 60, 80, 100, 120)  # the largest event (m)
    equal_shares: tuple[int, ...] = (20, 40, 60, 80, 100)  # per cent of predicates `=`
    values: tuple[int, ...] = (50, 800, 12_800)  # sigma
    exponents: tuple[float, ...] = (0.0, 0.4, 0.8, 1.0)  # Zipf's
    clauses: tuple[int, ...] = (1, 5, 9)  # the most in a subscription
    prefix_shares: tuple[int, ...] = (20, 60, 100)  # per cent of predicates `starts with`
    prefix_lengths: tuple[int, ...] = (2, 4, 6)
    capacities: tuple[int, ...] = (5, 50, 100, 150, 200, 250)  # of a BE-Tree's leaf
    documents: int = 20_000  # of a made-up corpus,
    words: int = 50_000  # the most frequent words, of any corpus
    catalogue: int = 50_000  # products of a made-up catalogue,
    catalogue_attributes: int = 8_000  # and their attributes
    events: int = 10_000  # that a figure is taken from,
    seconds: float = 2.0  # or as many batches of them as this time allows
    warm_up: int = 500  # events before
    batch: int = 250  # events
    dicts: int = 1_000  # events that are encoded from dicts
    tried: int = 20_000  # subscriptions from which the cost of many more is estimated
    patience: float = 900.0  # seconds that one matcher may take at one place


SMALL: Final = Scale(
    "small",
    sizes=(5_000, 20_000, 50_000),
    usual=20_000,
    input_a=(20_000,),
    queries=(5_000, 20_000),
    products=(2_000, 5_000),
    product_usual=2_000,
    forms=(5_000, 20_000),
    form_usual=10_000,
    prefixes=5_000,
    pairs=(20, 60, 120),
    equal_shares=(20, 60, 100),
    exponents=(0.0, 0.6, 1.0),
    capacities=(5, 50, 250),
    documents=2_000,
    words=10_000,
    catalogue=4_000,
    catalogue_attributes=2_000,
    events=500,
    seconds=0.1,
    warm_up=100,
    batch=100,
    dicts=100,
    tried=50_000,
    patience=5.0,
)
PAPER: Final = Scale("paper")
SCALES: Final = {scale.name: scale for scale in (SMALL, PAPER)}
