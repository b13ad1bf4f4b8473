"""The engine answers while its kernels are compiled, and the same as afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tocsin.structures.answering import VARIABLE

pytestmark = pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")

FIRST = """
from tocsin import Engine
from tocsin.structures.background_compiler import compiler
from tocsin.structures.compile_log import compiled
from tocsin.structures.interpreted_kernels import _interpreting

engine = Engine()
engine.table("t", key="k")
engine.subscribe("from s a next s b on b.k = a.k where b.v > a.v", id="sequence")
engine.subscribe("select min(v) from table t where k between 1 and 5", id="view")
found = [
    [note.subscription for note in engine.publish({"k": 1, "v": v}, stream=stream, time=v)]
    for stream in ("s", "t")
    for v in (1, 2)
]
assert found == [[], ["sequence"], ["view"], ["view"]], found
unfinished = [job.name for job in _interpreting.jobs.values() if not job.is_done]
assert {"process", "reformulate"} <= set(unfinished), unfinished
assert compiler._thread is not None
"""

# The jobs of the background are done here, one after another, at random places of the script. What an earlier test has compiled
# is only loaded.
SWITCHING = """
import random
import sys
from tocsin import Engine
from tocsin.structures import interpreted_kernels, jit
from tocsin.structures.answering import compiling_first
from tocsin.structures.background_compiler import compiler

jit._KernelCache.has = lambda *_: False
jobs = []
compiler.add = jobs.append
real, calls = interpreted_kernels._timed, []
interpreted_kernels._timed = lambda kernel: (calls.append(kernel.__name__), real(kernel))[1]
chance = random.Random(sys.argv[1])


def script(engine, step):
    random_ = random.Random(sys.argv[1])
    engine.table("t", key="k")
    for i, text in enumerate((
        "from s a next s b on b.k = a.k where b.v > a.v",
        "from s a next s b where b.v = 3",
    )):
        engine.subscribe(text, id=f"sequence {i}")
    aggregates = ("min(v)", "max(v)", "count(*)", "sum(v)", "avg(v)")
    for aggregate in aggregates:
        engine.subscribe(f"select {aggregate} from table t where k between 1 and 4", id=aggregate)
    found = []
    for time in range(150):
        step()
        if time == 70:
            engine.unsubscribe("max(v)")
            engine.subscribe("from s a next s b on b.k = a.k where b.v < a.v", id="late")
        if time == 90:
            engine.unsubscribe("sequence 0")
        row = {"k": random_.randrange(6), "v": random_.randrange(8)}
        delete = random_.random() < 0.1
        notes = engine.publish(row, stream="t" if delete or random_.random() < 0.4 else "s", time=time, delete=delete)
        found.append([
            (n.subscription, n.old, n.new, [dict(e.attributes) for e in n.events]) for n in notes
        ])
    return found


def compile_some():
    while jobs and chance.random() < 0.15:
        job = jobs.pop(chance.randrange(len(jobs)))
        with compiling_first:
            job.run()
        job.end()


mixed = script(Engine(), compile_some)
assert len(calls) > 100, calls
assert {"process", "reformulate"} <= set(calls)
assert any(job.is_done for job in interpreted_kernels._interpreting.jobs.values())
with compiling_first:
    compiled = script(Engine(), lambda: None)
assert mixed == compiled
assert sum(map(len, compiled)) > 50
assert len({subscription for notes in compiled for subscription, *_ in notes}) >= 6
kernels = {name: one for name, one in jit._KERNELS.items() if "_compile_for_args" in vars(one)}
assert [name for name, one in kernels.items() if len(one.signatures) > 1] == []
"""


def run(program: str, *arguments: str, **environment: str) -> None:
    inherited = {name: value for name, value in os.environ.items() if name != VARIABLE}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=inherited | environment,
    )
    assert done.returncode == 0, done.stderr


def test_first_notifications_do_not_wait_for_the_compiler(tmp_path: Path) -> None:
    run(FIRST, TOCSIN_CACHE_DIR=str(tmp_path))


@pytest.mark.parametrize("seed", ["one", "two"])
def test_kernels_can_be_exchanged_between_any_two_calls(seed: str) -> None:
    run(SWITCHING, seed)
