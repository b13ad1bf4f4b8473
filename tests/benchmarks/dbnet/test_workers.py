"""Groups of tasks on Spark: every result is returned, and a fault stays with its group."""

from __future__ import annotations

import os

import pytest
from msgspec.structs import replace
from pyspark.sql import SparkSession

from benchmarks.dbnet.network.tasks import Done
from benchmarks.dbnet.network.workers import on_spark, one_by_one, run_groups
from tests.benchmarks.dbnet.test_network import TINY, tasks_of
from tests.spark.conftest import LEFT_OPEN, UNRAISABLE

pytestmark = [pytest.mark.filterwarnings(LEFT_OPEN), pytest.mark.filterwarnings(UNRAISABLE)]

TIMED = {"server time", "simulation"}


def reversed_payload(payload: bytes) -> bytes:
    """Return a payload backwards, unless it is one to die of."""
    if payload == b"die":
        os._exit(1)
    return payload[::-1]


def test_every_group_is_answered_in_its_own_order(spark: SparkSession) -> None:
    groups = [[b"ab", b"cd"], [b"ef"], []]
    ended = sorted(run_groups(spark, reversed_payload, groups), key=lambda one: one.group)
    assert [list(one.answers) for one in ended] == [[b"ba", b"dc"], [b"fe"], []]


def test_a_worker_that_dies_takes_only_its_group_along(spark: SparkSession) -> None:
    ended = sorted(
        run_groups(spark, reversed_payload, [[b"ab"], [b"die"], [b"cd"]]), key=lambda one: one.group
    )
    assert [list(one.answers) for one in ended] == [[b"ba"], [], [b"dc"]]
    assert [bool(one.fault) for one in ended] == [False, True, False]


def test_simulations_give_the_same_figures_on_spark(spark: SparkSession) -> None:
    tasks = tasks_of(TINY, ["S-UN", "S-CN"], None, ["database-size"])
    broken = replace(tasks[0], scenario=replace(tasks[0].scenario, rows=0))
    progress: list[str] = []
    here = {done.task: done for done in one_by_one([*tasks, broken], progress.append)}
    there = {done.task: done for done in on_spark(spark)([*tasks, broken], progress.append)}
    assert set(here) == set(there) == {*tasks, broken}
    for task in tasks:
        assert here[task].figures
        assert untimed(here[task]) == untimed(there[task])
    assert here[broken].fault == there[broken].fault == "TocsinError: rows is 0; give at least 1"
    assert "5 of 5 done" in progress[-1]


def untimed(done: Done) -> list[object]:
    return [figure for figure in done.figures if figure.name not in TIMED]
