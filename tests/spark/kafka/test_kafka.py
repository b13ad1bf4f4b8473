"""From a topic of a real broker to another, killed and restarted: every notification at least once, and once by its key."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.spark.kafka.broker import Broker
from tests.spark.kafka.maven import UnreachableError, broker_jars, connector_jars
from tocsin.index import SubscriptionIndex

EVENTS, EACH = 600, 50
ROOT = Path(__file__).parents[3]
TEXTS = [
    {"every": "id >= 0", "even": "odd = 0"},
    {"every": "id >= 0", "even": "odd = 0", "odd": "odd = 1"},
    {"every": "id >= 0", "odd": "odd = 1"},
]


class Run:
    """`tocsin spark run` from Kafka to Kafka, with an index and a checkpoint in a folder."""

    def __init__(self, address: str, jars: str, home: Path) -> None:
        self._home = home
        self._commits = home / "checkpoint" / "notifications" / "commits"
        self._command = [
            *(sys.executable, "-m", "tocsin", "spark", "run", f"kafka://{address}/events"),
            *("--sink", f"kafka://{address}/notes", "--dead-letters", f"kafka://{address}/letters"),
            *("--checkpoint", str(home / "checkpoint"), "--index", str(home / "index"), "--id-field", "id"),
            *("--option", "startingOffsets=earliest", "--option", f"maxOffsetsPerTrigger={EACH}"),
            *("--master", "local[1]", "--conf", f"spark.jars={jars}", "--conf", "spark.driver.memory=1g"),
        ]

    def to_the_end(self) -> None:
        done = subprocess.run(
            [*self._command, "--once"], capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr[-3000:]

    def and_kill(self, batches: int) -> None:
        """Run until so many batches more are committed, and kill everything then."""
        before = len(self._batches())
        with (self._home / "run.log").open("w") as log:
            process = subprocess.Popen(
                self._command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                until = time.monotonic() + 200
                while len(self._batches()) < before + batches:
                    assert process.poll() is None, (self._home / "run.log").read_text()[-3000:]
                    assert time.monotonic() < until
                    time.sleep(0.02)
            finally:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def forget_a_commit(self) -> None:
        """Bring the checkpoint to where a kill between the sink's last write and its commit would have left it."""
        newest = self._batches()[-1]
        for folder, numbers in (("commits", (newest,)), ("offsets", (newest + 1,))):
            for number in numbers:
                for file in (str(number), f".{number}.crc"):
                    (self._commits.parent / folder / file).unlink(missing_ok=True)

    def _batches(self) -> list[int]:
        if not self._commits.exists():
            return []
        return sorted(int(file.name) for file in self._commits.iterdir() if file.name.isdigit())


def client(jars: str, *arguments: str, lines: Sequence[str] = ()) -> list[tuple[str, str]]:
    command = [sys.executable, "-m", "tests.spark.kafka.client", jars, *arguments]
    done = subprocess.run(
        command,
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [(key, value) for key, value in map(json.loads, done.stdout.splitlines())]


@pytest.mark.long
def test_a_pipeline_from_kafka_to_kafka_is_killed_and_restarted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    try:
        broker = Broker(broker_jars(), tmp_path)
        jars = ",".join(map(str, connector_jars()))
    except UnreachableError as fault:
        pytest.skip(f"Maven Central cannot be reached: {fault}")
    index = SubscriptionIndex(tmp_path / "index")

    def publish(number: int) -> None:
        index.apply(TEXTS[number - 1])
        assert index.publish() == number

    with broker:
        events = [json.dumps({"id": one, "odd": one % 2}) for one in range(EVENTS)]
        client(jars, "send", broker.address, "events", lines=[*events, "{oops", *events[:3]])
        run = Run(broker.address, jars, tmp_path)
        publish(1)
        run.and_kill(batches=2)
        run.forget_a_commit()
        publish(2)
        run.and_kill(batches=3)
        publish(3)
        run.and_kill(batches=2)
        run.to_the_end()
        messages = client(jars, "read", broker.address, "notes")
        letters = client(jars, "read", broker.address, "letters")
    by_key = defaultdict(set)
    for key, value in messages:
        by_key[key].add(value)
    assert len(messages) > len(by_key)  # a batch was written again, as Kafka's sink has no transactions
    generations: dict[str, set[int]] = defaultdict(set)
    for key, values in by_key.items():
        notes = [json.loads(value) for value in values]
        assert all(json.loads(key) == [note["subscription"], note["event_id"]] for note in notes)
        generations[notes[0]["event_id"]].update(note["generation"] for note in notes)
    assert sorted(map(int, generations)) == list(range(EVENTS))
    repeated = {str(one) for one in range(3)}  # sent twice by the producer, perhaps into other batches
    assert all(len(numbers) == 1 for event, numbers in generations.items() if event not in repeated)
    assert all(len(values) == 1 for key, values in by_key.items() if json.loads(key)[1] not in repeated)
    assert set.union(*generations.values()) == {1, 2, 3}  # it was killed in the midst
    assert {tuple(json.loads(key)) for key in by_key} == {
        (name, event)
        for event, numbers in generations.items()
        for number in numbers
        for name in TEXTS[number - 1]
        if name == "every" or int(event) % 2 == (name == "odd")
    }
    assert {json.loads(value)["value"] for _, value in letters} == {"{oops"}
