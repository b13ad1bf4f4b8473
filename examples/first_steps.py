"""Standing questions and a few events: which question does each event answer?"""

from tocsin import check, read_event, to_dnf
from tocsin.matching import ConjunctionBatch, EventBatch, Oracle
from tocsin.model import Filter

QUESTIONS = [
    "symbol = 'IBM' and price > 100",
    "symbol in ('IBM', 'MSFT') and not (price between 20 and 60)",
    "name like 'I%' or sector is missing",
]
EVENTS = [
    {"symbol": "IBM", "price": 101.5, "sector": "tech"},
    {"symbol": "MSFT", "price": 25, "sector": "tech"},
    {"symbol": "XOM", "price": 60, "name": "Imperial"},
]

oracle = Oracle()
for number, text in enumerate(QUESTIONS):
    query = check(text).query
    if isinstance(query, Filter):
        oracle.add(ConjunctionBatch.of([(number, to_dnf(query.condition))]))

matches = oracle.match(EventBatch.of(read_event(event) for event in EVENTS))
for event, ids in zip(EVENTS, matches.to_lists(), strict=True):
    print(event)  # noqa: T201
    for number in ids:
        print("   ", QUESTIONS[number])  # noqa: T201
