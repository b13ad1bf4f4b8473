"""Compiled sequences: nodes, their stored values, and the edges on which conditions are evaluated."""

from __future__ import annotations

from typing import cast

import pytest

from tests.sequences.disassembly import program_lines, slot_text
from tests.sequences.outcomes import compiled
from tests.sequences.papers import PAPERS
from tocsin.language.normal import to_dnf
from tocsin.language.printer import condition_text
from tocsin.model import FALSE, TRUE, Attribute, Condition, Operator, Predicate
from tocsin.model.conditions import Constant
from tocsin.model.errors import SubscriptionError
from tocsin.model.terms import Elapsed, Literal, Parameter
from tocsin.model.values import Kind
from tocsin.sequences.algebra import Expression, Next, Project, Rename, Select, Stream, Union
from tocsin.sequences.automaton import Automaton, Edge, Node, Test
from tocsin.sequences.compiling.compiler import compile_expression, parameters_in_programs
from tocsin.sequences.modes import MODES
from tocsin.sequences.programs import NOTHING


def automaton(text: str) -> Automaton:
    return compiled(PAPERS.get(text, text), full=False).automaton


def static(test: Test) -> str:
    return "" if test.static == TRUE else condition_text(test.static)


def statics(compiled: Automaton) -> list[tuple[str, str]]:
    """Of each node, the static parts of its guard and of the edge that leaves it."""
    edges = compiled.edges[1:]
    return [
        (static(node.guard.test), static(edge.test)) for node, edge in zip(compiled.nodes, edges, strict=True)
    ]


def stored_values(node: Node) -> list[str]:
    return [slot_text(slot, 0) for slot in node.slots if slot is not None]


def keys(node: Node) -> list[str]:
    return [f"{path} = {slot_text(node.slots[slot], 0)}" for path, slot in node.guard.keys]


def conditions_of(node: Node, edge: Edge) -> list[str]:
    return [line.split(": ")[1] for line in program_lines(edge.test.program, node.slots)]


@pytest.mark.parametrize(
    ("name", "nodes"),
    [("S1", 0), ("S2", 1), ("S3", 1), ("S4", 1), ("S5", 2), ("S6", 1), ("S7", 1), ("AutQ", 2)],
)
def test_the_papers_examples_have_as_many_nodes_as_steps_to_come(name: str, nodes: int) -> None:
    compiled = automaton(name)
    assert len(compiled.nodes) == nodes
    assert len(compiled.edges) == nodes + 1
    assert compiled.by_row is False


@pytest.mark.parametrize(
    ("name", "start", "others"),
    [
        ("S1", "name = 'IBM' and price > 100", []),
        ("S2", "name = 'IBM' and price > 100", [("name = 'MSFT'", "price < 25")]),
        ("S3", "", [("", "")]),
        ("S4", "", [("", "")]),
        ("S5", "name = 'IBM'", [("name = 'IBM'", ""), ("name = 'IBM'", "")]),
        ("S6", "site = 'military.blog.com' and category = 'US troop morale'", [("site in ('s1', 's2')", "")]),
        ("S7", "site in ('s1', 's2') and description contains 'XYZ'", [("site in ('s1', 's2')", "")]),
        ("AutQ", "vol > 10000", [("", ""), ("", "")]),
    ],
)
def test_conditions_on_the_event_alone_are_static(
    name: str, start: str, others: list[tuple[str, str]]
) -> None:
    compiled = automaton(name)
    assert (static(compiled.edges[0].test), statics(compiled)) == (start, others)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("S2", [[]]),
        ("S3", [["a.name", "a.price"]]),
        ("S4", [["a.name", "last.price"]]),
        ("S5", [['"#2.0.mean"', '"#2.1.mean"'], ["mean"]]),
        ("S6", [["a.link"]]),
        ("S7", [["last.link"]]),
        ("AutQ", [["a.name", "last.price"], ["a.name", "b.price"]]),
    ],
)
def test_an_instance_stores_the_values_needed_later(name: str, expected: list[list[str]]) -> None:
    assert [stored_values(node) for node in automaton(name).nodes] == expected


def test_equalities_with_stored_values_are_keys() -> None:
    assert [keys(node) for node in automaton("AutQ").nodes] == [["name = a.name"], ["name = a.name"]]
    both = automaton(
        "from s a compute n = a.x + 1 fold s b on a.y = b.y and b.x = last.x and b.z = n and b.w > a.w"
    )
    assert keys(both.nodes[0]) == ["y = a.y", "x = last.x", "z = n"]
    assert program_lines(both.nodes[0].guard.rest, both.nodes[0].slots) == ["0: w > a.w"]
    assert len(both.nodes[0].guard.test.program) == 4


def test_an_iteration_evaluates_while_on_both_edges() -> None:
    node = automaton("AutQ").nodes[0]
    assert node.rebind is not None
    assert conditions_of(node, node.rebind) == ["price < last.price"]
    assert conditions_of(node, automaton("AutQ").edges[1]) == ["price < last.price", "duration >= 600000000"]


def test_conditions_on_the_left_alone_are_evaluated_when_it_is_complete() -> None:
    compiled = automaton(
        "from s a next s b on a.x = 1 and b.x > a.y next s c where c.z = 3 and a.z > b.z and a.w = 2 and b.w is missing"
    )
    assert static(compiled.edges[0].test) == "x = 1 and w = 2"
    assert conditions_of(compiled.nodes[0], compiled.edges[1]) == ["a.z > z"]
    assert statics(compiled) == [("", "w is missing"), ("", "z = 3")]


def test_conditions_on_values_that_an_iteration_changes_are_evaluated_in_it() -> None:
    compiled = automaton(
        "from s a compute n = 0 fold s b on n < 9 and a.x > 3 while n < 5 and last.y > 2 compute n = n + 1 "
        "where n > 2 and a.y = 1"
    )
    assert static(compiled.edges[0].test) == "x > 3 and y = 1"
    node = compiled.nodes[0]
    assert program_lines(node.guard.rest, node.slots) == ["0: n < 9"]
    assert conditions_of(node, cast("Edge", node.rebind)) == ["n < 5", "last.y > 2"]
    assert conditions_of(node, compiled.edges[1]) == ["n < 5", "last.y > 2", "$0 := n + 1", "$0 > 2"]


def test_a_selection_of_the_right_does_not_make_the_next_event_another() -> None:
    compiled = automaton("from s a next s b where b.x = 1")
    assert statics(compiled) == [("", "x = 1")]


def test_a_mixed_alternative_keeps_its_static_part() -> None:
    compiled = automaton("from s a next s b on (b.x = 1 and b.y > a.y) or (b.x = 2 and b.y < a.y)")
    assert statics(compiled) == [("x = 1 or x = 2", "")]
    compiled = automaton("from s a next s b on b.x = 1 or b.y > a.y")
    assert statics(compiled) == [("", "")]


def test_a_static_part_that_would_grow_too_far_is_left_to_the_program() -> None:
    many = " and ".join(f"(b.x{n} = 1 or b.y{n} = 2)" for n in range(12))
    [node] = automaton(f"from s a next s b on b.z = 1 and {many}").nodes
    assert len(to_dnf(node.guard.test.static).conjunctions) == 32
    assert len(node.guard.rest) == 3 * 7


def test_predicates_without_a_program_are_columns() -> None:
    compiled = automaton("from s a next s b where a.t ~ 'x' and b.x > a.x or b.t like 'a_b'")
    assert program_lines(compiled.edges[0].assign, (), compiled.nodes[0].slots)[1] == "1: #1 := [t ~ 'x']"
    assert "[t like 'a_b'] is true" in conditions_of(compiled.nodes[0], compiled.edges[1])[0]


def test_a_bound_of_the_duration_frees_state_and_is_not_evaluated_again() -> None:
    compiled = automaton(
        "from s a next s b on duration < 9 and b.x > a.x fold s c where duration <= 7 within 20 ticks"
    )
    assert [node.longest for node in compiled.nodes] == [7, 7]
    assert all("duration" not in line for edge in compiled.edges for line in program_lines(edge.test.program))
    compiled = automaton("from s a fold s b while duration <= 7 next s c within 5 ticks")
    assert [node.longest for node in compiled.nodes] == [5, 5]
    compiled = automaton("from s a where duration <= 3 next s b")
    assert [node.longest for node in compiled.nodes] == [None]
    assert program_lines(compiled.edges[0].test.program) == ["0: duration <= 3"]


def test_a_bound_on_a_single_event_is_evaluated() -> None:
    assert program_lines(automaton("from s a within 5 ticks").edges[0].test.program) == ["0: duration <= 5"]


def test_a_bound_may_be_a_parameter() -> None:
    compiled = automaton("from s a next s b on duration < :d and b.x = :x within :w")
    assert compiled.nodes[0].longest == Parameter("w")
    assert program_lines(compiled.nodes[0].guard.test.program) == ["0: duration < :d"]
    assert statics(compiled) == [("x = :x", "")]
    assert compiled.by_row is False
    assert parameters_in_programs(compiled) == {"d"}


@pytest.mark.parametrize(
    "text",
    [
        "from s a next s b where a.t like :p and b.x > a.x or b.y = 1",
        "from s a next s b on b.x > a.x or b.y in :many",
        "from s a next s b on b.x > a.x or b.y not in (:one, 2)",
        "from s a next (from s c where c.x = :x) b",
        "from s a next (from s c compute m = :m select c.x) b",
    ],
)
def test_a_parameter_that_no_program_can_take_is_bound_before_compiling(text: str) -> None:
    assert automaton(text).by_row is True


def test_parameters_among_static_conditions_stay_there() -> None:
    compiled = automaton("from s a where a.x in :xs and a.t like :t next s b on b.y between :low and :high")
    assert compiled.by_row is False
    assert static(compiled.edges[0].test) == "x in :xs and t like :t"


def test_a_condition_that_never_holds_compiles_and_never_starts() -> None:
    compiled = automaton("from s a next s b where false")
    assert compiled.edges[0].test.static == FALSE
    without = compile_expression(Select(Rename(Stream("s"), "a"), Constant(False)), mode=MODES["no mqo"])
    assert without.edges[0].test.static == TRUE
    assert program_lines(without.edges[0].test.program) == ["0: 0 < 0"]


def test_without_indexes_programs_evaluate_everything() -> None:
    expression = compiled("from s a where a.x = 1 next s b on b.y in (1, 2) where b.z = 3").expression
    made = compile_expression(expression, mode=MODES["no fr-index"])
    assert (static(made.edges[0].test), statics(made)) == ("", [("y in (1, 2)", "")])
    made = compile_expression(expression, mode=MODES["no instance index"])
    assert (static(made.edges[0].test), statics(made)) == ("x = 1", [("", "z = 3")])
    assert program_lines(made.nodes[0].guard.rest) == ["0: y = 1, else go to 2", "1: go to 3", "2: y = 2"]


def test_a_sequence_in_parentheses_is_an_automaton_of_its_own() -> None:
    compiled = automaton('from s a next (from s c next s d on d.x = c.x) b on b."c.x" = a.x')
    [(name, inner)] = compiled.inner
    assert compiled.nodes[0].stream == name == inner.publish
    assert keys(compiled.nodes[0]) == ["c.x = a.x"]
    assert keys(inner.nodes[0]) == ["x = c.x"]


def test_equal_parts_of_sequences_are_equal() -> None:
    one = automaton("from s a where a.x = 1 next s b on b.x = a.x and b.y > a.y")
    other = automaton("from s a where 1 = a.x next s b on a.y < b.y and a.x = b.x")
    assert one.nodes[0].slots == other.nodes[0].slots
    assert one.edges[0].test.static == other.edges[0].test.static


def test_witnesses_have_the_first_and_last_event_of_each_step() -> None:
    output = automaton("AutQ").output
    assert [(part.alias, part.source, part.first == part.last) for part in output.parts] == [
        ("a", "stock", True),
        ("b", "stock", False),
        ("c", "stock", True),
    ]
    assert all(part.chain is None for part in output.parts)
    full = compiled(PAPERS["AutQ"], full=True).automaton.output
    assert all(part.chain is not None for part in full.parts)


def test_hidden_values_are_not_returned() -> None:
    assert [name for name, _ in automaton("S5").output.values] == ["mean"]
    assert automaton("S5").output.selected is False


def test_an_edge_without_dynamic_conditions_has_no_program() -> None:
    assert automaton("S2").edges[1].test.program is NOTHING


def test_a_chain_of_many_steps_compiles() -> None:
    text = "from s a0 " + " ".join(
        f"next s a{n} on a{n}.x = a{n - 1}.x where a{n}.y = 1" for n in range(1, 120)
    )
    assert len(automaton(text).nodes) == 119


_A: Expression = Rename(Stream("s"), "a")
_LONG: Condition = Predicate(Elapsed(), Operator.GE, (Literal(2, Kind.NUMBER),))


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (Union((_A, _A)), "`publish as` one name"),
        (Stream("s"), "a stream without an alias"),
        (Next(Project(_A, ()), _A), "`select` cannot stand here"),
        (Next(_A, Next(_A, _A)), "in parentheses"),
        (Next(_A, Select(Rename(Stream("s"), "b"), _LONG)), "`duration` of an event of `b` alone"),
        (Select(_A, Predicate(Attribute("x", "c"), Operator.PRESENT)), "`c.x` is of no step so far"),
    ],
)
def test_sequences_without_a_text_are_refused(expression: Expression, words: str) -> None:
    with pytest.raises(SubscriptionError, match=words):
        compile_expression(expression)


def test_a_selection_of_the_right_operand_is_part_of_next() -> None:
    right = Select(
        Rename(Stream("s"), "b"), Predicate(Attribute("x", "b"), Operator.EQ, (Literal(1, Kind.NUMBER),))
    )
    assert statics(compile_expression(Next(_A, right))) == [("x = 1", "")]
