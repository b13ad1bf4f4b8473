"""Distinct values: the margins around a point, and what subscribers begin with."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.views.aggregates.every_range import Change, Following, matched_ranges, point_changes
from tocsin.views.aggregates.base import PointError, Reformulator
from tocsin.views.aggregates.registry import range_aggregate
from tocsin.views.messages import Messages

A, B = 0.0, 1.0


def changed_answers_of(server: Reformulator, change: Change) -> list[tuple[float, ...]]:
    messages = server.reformulate(point_changes([change]))
    columns = (messages.inner_l, messages.inner_r, messages.outer_l, messages.outer_r)
    payload = (messages.payload["removed"], messages.payload["added"])
    return list(zip(*(column.tolist() for column in (*columns, *payload)), strict=True))


def reaches(messages: Messages, low: float, high: float) -> bool:
    return len(matched_ranges(messages, np.array([low]), np.array([high])).ids) == 1


def test_the_margins_of_an_arrival_and_a_departure() -> None:
    server = range_aggregate("distinct").reformulator()
    server.load(np.array([10.0, 20.0, 30.0]), np.array([A, B, A]))
    messages = server.reformulate(point_changes([(None, (25.0, A))]))
    assert (messages.outer_l.tolist(), messages.outer_r.tolist()) == ([10.0], [30.0])
    assert messages.payload["added"].tolist() == [0]
    assert reaches(messages, 12.0, 28.0)
    assert not reaches(messages, 5.0, 27.0)
    assert not reaches(messages, 25.0, 30.0)
    assert changed_answers_of(server, ((10.0, A), None)) == [(10.0, 10.0, -math.inf, 25.0, 0, -1)]


def test_another_row_with_the_same_place_and_value_makes_a_change_silent() -> None:
    server = range_aggregate("distinct").reformulator()
    server.load(np.array([10.0]), np.array([A]))
    assert changed_answers_of(server, (None, (10.0, A))) == []
    assert changed_answers_of(server, ((10.0, A), None)) == []
    assert changed_answers_of(server, ((10.0, A), (10.0, A))) == []


def test_a_change_of_value_is_reported_once_with_both_values() -> None:
    server = range_aggregate("distinct").reformulator()
    server.load(np.array([10.0]), np.array([A]))
    assert changed_answers_of(server, ((10.0, A), (10.0, B))) == [(10.0, 10.0, -math.inf, math.inf, 0, 1)]


def test_ranges_of_very_many_points_begin_with_their_codes() -> None:
    # The first holds so many points that its codes are searched for rather than met one by one.
    rng = np.random.default_rng(3)
    points = [(float(x), float(code)) for x, code in rng.integers(0, [9_000, 4], size=(6_000, 2)).tolist()]
    points += [(20_000.0 + code, float(code)) for code in range(40, 60)]
    following = Following("distinct", [0.0, 1.0, 10_000.0, 20_041.0, 30_000.0], points)
    following.follow(
        [((20_050.0, 50.0), (5.0, 50.0)), ((20_051.0, 51.0), None), ((20_052.0, 52.0), (0.0, 1.0))]
    )
    following.check()


def test_more_codes_than_there_is_room_for_at_first() -> None:
    server, answers = range_aggregate("distinct").reformulator(), range_aggregate("distinct").answers()
    codes = np.random.default_rng(1).permutation(500).astype(float)
    server.load(np.arange(500.0), codes)
    answers.begin(np.array([1, 0]), server.present(np.array([0.0, 0.0]), np.array([499.0, 9.0])))
    assert answers.answer(1) == tuple(range(500))
    assert answers.answer(0) == tuple(sorted(int(code) for code in codes[:10]))
    assert answers.nbytes > 8 * 500
    answers.end(np.array([1]))
    assert answers.nbytes < 500 * (8 + 32 + 8)


def test_a_point_that_is_not_there_cannot_go() -> None:
    server = range_aggregate("distinct").reformulator()
    with pytest.raises(PointError, match="change 0: its old point"):
        server.reformulate(point_changes([((1.0, 2.0), None)]))
