"""Automata as text."""

from __future__ import annotations

from tests.sequences.disassembly import automaton_lines
from tests.sequences.outcomes import compiled
from tests.sequences.papers import PAPERS

AUTQ = """
start: stock a
edge to node 1
  static vol > 10000
    0: a.name := name
    1: last.price := price
    2: #2 := this event
    3: $0 := 0 / 0
    4: #3 := $0
node 1: waits for stock b
  holds a.name, last.price, #2, #3
  key name = a.name
  rebind
    0: price < last.price
      0: a.name := a.name
      1: last.price := price
      2: #2 := #2
      3: $0 := first(#3, this event)
      4: #3 := $0
edge to node 2
  0: price < last.price
  1: duration >= 600000000
    0: a.name := a.name
    1: b.price := price
    2: #2 := #2
    3: $0 := first(#3, this event)
    4: #3 := $0
    5: #4 := this event
node 2: waits for stock c
  holds a.name, b.price, #2, #3, #4
  key name = a.name
edge to end
  0: $0 := 1.05 * b.price
  1: price > $0
    0: last a := #2
    1: first b := #3
    2: last b := #4
    3: last c := this event
"""


def listed(text: str, *, full: bool = False) -> list[str]:
    return automaton_lines(compiled(text, full=full).automaton)


def test_an_automaton_is_listed_line_by_line() -> None:
    assert listed(PAPERS["AutQ"]) == AUTQ.strip("\n").split("\n")


def test_all_that_a_program_can_do_has_words() -> None:
    lines = listed(
        """from s a where a.t like 'a_b' fold (from s c select c.x, c.t) b on b.x > a.x or last.t ~ 'x' and b.t is missing
        while b.x = 1 or b.x contains a.x or not b.t contains 'y' compute m = min(b.x), n = count(*), k = sum(x)
        within :w""",
        full=True,
    )
    text = "\n".join(lines)
    for words in (
        "at most :w ticks",
        "within: $(from s c select c.x, c.t)",
        "[t ~ 'x']",
        "x contains a.x",
        "t not contains 'y'",
        "t is missing",
        "else go to",
        "go to",
        "least(m, x)",
        "count(n, 1)",
        "sum(k, x)",
        "and this event",
        "all b :=",
    ):
        assert words in text, words
