from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Template
from tocsin.language import parse_condition, to_cnf, to_dnf
from tocsin.matching import ConjunctionBatch
from tocsin.matching.statistics import candidate_groups
from tocsin.model import Conjunction


def conjunctions(*texts: str) -> list[Conjunction]:
    return [conjunction for text in texts for conjunction in to_dnf(parse_condition(text)).conjunctions]


def test_groups_are_the_attributes_of_equalities_alone() -> None:
    asked = conjunctions(
        "b = 1 and a = 2 and c > 3", "a = 1 and d in (1, 2)", "a = b and c = 1", "a = 1 or b = 2"
    )
    assert candidate_groups(asked).groups == (("a", "b"),)


def test_the_most_frequent_groups_come_first_and_the_others_are_reported() -> None:
    asked = conjunctions(*["a = 1 and b = 1"] * 3, *["b = 1 and c = 1"] * 2, "c = 1 and d = 1")
    assert candidate_groups(asked, most=2).groups == (("a", "b"), ("b", "c"))
    assert candidate_groups(asked, most=2).left_out == 1
    assert candidate_groups(asked).left_out == 0


def test_the_rows_of_a_template_count_each() -> None:
    rows = Template("a = :x and b = :y").bind_many({"x": [1, 2, 3], "y": [1, 1, 1]})
    batch = ConjunctionBatch.of_rows(np.arange(3), rows)
    single = ConjunctionBatch.of([(7, to_dnf(parse_condition("a = 1 and c = 1")))])
    both = ConjunctionBatch((*single.groups, *batch.groups))
    assert candidate_groups(both).groups == (("a", "b"), ("a", "c"))


@given(
    st.lists(st.sets(st.sampled_from("abcdefg"), min_size=1), max_size=12),
    st.integers(1, 20),
    st.integers(2, 4),
)
def test_no_excluded_group_is_more_frequent(sets: list[set[str]], most: int, width: int) -> None:
    found = candidate_groups(
        conjunctions(*(" and ".join(f"{name} = 1" for name in names) for names in sets)),
        most=most,
        width=width,
    )
    wanted: Counter[tuple[str, ...]] = Counter()
    for names in sets:
        for size in range(2, width + 1):
            wanted.update(combinations(sorted(names), size))
    ranked = sorted(wanted, key=lambda group: (-wanted[group], len(group), group))
    assert found.groups == tuple(ranked[:most])
    assert (found.left_out > 0) == (len(wanted) > most)


def test_a_clause_form_has_the_equalities_of_its_single_predicates() -> None:
    form = to_cnf(parse_condition("a = 1 and b = 2 and (c = 3 or d = 4)"))
    assert candidate_groups(ConjunctionBatch.of([(1, form)])).groups == (("a", "b"),)
