"""Record batches on several threads: in order, side by side, each thread with a tool of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Lock, get_ident
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tocsin.errors import SparkError
from tocsin.index import SubscriptionIndex
from tocsin.spark import match_worker
from tocsin.spark.batch_threads import available_cores, in_threads
from tocsin.spark.event_decoding import EventLayout
from tocsin.spark.match_worker import MatchJob, free_cores, match_batches
from tocsin.spark.matching import check_threads
from tocsin.spark.session_kinds import local_tasks


@pytest.mark.parametrize("count", [1, 2, 3])
def test_results_are_in_order(count: int) -> None:
    def work(_: int, batch: int) -> Iterator[tuple[int, int]]:
        yield from ((batch, part) for part in range(batch % 3))

    expected = [(batch, part) for batch in range(50) for part in range(batch % 3)]
    assert list(in_threads(work, range(50), range(count))) == expected


def test_two_threads_work_at_the_same_time_with_a_tool_each() -> None:
    both = Barrier(2, timeout=60)  # a single thread would wait for the other in vain
    used: list[tuple[int, int]] = []

    def work(tool: Lock, batch: int) -> Iterator[int]:
        assert tool.acquire(blocking=False)  # nobody else has it
        both.wait()
        used.append((id(tool), get_ident()))
        tool.release()
        yield batch

    assert list(in_threads(work, range(6), [Lock(), Lock()])) == list(range(6))
    assert len({tool for tool, _ in used}) == 2
    assert len({thread for _, thread in used}) == 2


@pytest.mark.parametrize("count", [1, 2])
def test_an_error_ends_the_work_and_batches_are_not_read_far_ahead(count: int) -> None:
    read: list[int] = []

    def batches() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    def work(_: int, batch: int) -> Iterator[int]:
        if batch == 5:
            raise ValueError("of batch 5")
        yield batch

    found = in_threads(work, batches(), range(count))
    with pytest.raises(ValueError, match="of batch 5"):
        list(found)
    assert len(read) <= 6 + count + 1
    taken = in_threads(lambda _, batch: [batch], batches(), range(count))
    assert next(taken) == 0
    taken.close()  # type: ignore[attr-defined]  # Spark does so behind a limit


def test_the_default_is_a_task_s_share_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    assert available_cores() >= 1
    monkeypatch.setattr(match_worker, "available_cores", lambda: 8)
    assert [free_cores(tasks) for tasks in (1, 3, 8, 16, None)] == [8, 2, 1, 1, 1]
    context = SimpleNamespace(cpus=lambda: 4)
    monkeypatch.setattr(match_worker, "TaskContext", SimpleNamespace(get=lambda: context))
    assert [free_cores(tasks) for tasks in (1, 8, None)] == [8, 4, 4]


@pytest.mark.parametrize(
    ("master", "tasks"),
    [("local", 1), ("local[3]", 3), ("local[2, 4]", 2), ("local[*]", None), ("yarn", None)],
)
def test_a_local_master_tells_its_tasks(master: str, tasks: int | None) -> None:
    assert local_tasks(SimpleNamespace(conf={"spark.master": master})) == tasks


@pytest.mark.parametrize("threads", [0, -1, True, 2.0, "2"])
def test_another_number_of_threads_is_refused(threads: Any) -> None:
    with pytest.raises(SparkError, match="1 or more"):
        check_threads(threads)


@pytest.mark.parametrize("shards", [1, 2])
def test_a_worker_s_threads_give_the_same_notifications(tmp_path: Path, shards: int) -> None:
    index = SubscriptionIndex(tmp_path / "index", shards=shards)
    index.apply({f"s{number}": f"a = {number} or b < {number} + 1" for number in range(40)})
    number = index.publish()
    layout = EventLayout("event_id", "at", columns=("a", "b"))
    rows = [{"event_id": f"e{one}", "at": one, "a": one % 50, "b": one % 7} for one in range(2000)]
    batches = pa.Table.from_pylist(rows).to_batches(max_chunksize=100)

    def found(threads: int) -> list[dict[str, Any]]:
        job = MatchJob(
            index.generations.storage.uri, number, True, layout, time_type=pa.int64(), threads=threads
        )
        sent = batches if shards == 1 else list(match_worker.route_batches(job, batches))
        return [row for one in match_batches(job, sent, is_routed=shards > 1) for row in one.to_pylist()]

    alone = found(1)
    assert len(alone) > 2000
    assert found(3) == alone
