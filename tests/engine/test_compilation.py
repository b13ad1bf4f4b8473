"""The kernels of the default engine: each is compiled once, for all events and all sorts of subscriptions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")

USE = """
import json, logging
import pyarrow as pa
from tocsin import Engine
from tocsin.engine.compilation import compile_kernels
from tocsin.structures.compile_log import compiled
from tocsin.structures.jit import compiled_kernels

compile_kernels()
ahead = len(compiled())
engine = Engine(matcher="dynamic")
engine.table("t", key="k")
engine.subscribe_many("k = :k and v > :v", {"k": list(range(2_000)), "v": list(range(2_000))})
engine.subscribe("from s a next s b on b.k = a.k where b.v > a.v")
engine.subscribe("select min(v) from table t where k between 1 and 5")
rows = [{"k": i, "v": i * 7 % 5} for i in range(50)]
for stream in ("s", "t", "other"):
    for row in rows:
        engine.publish(row, stream=stream)
    engine.publish_many(rows, stream=stream)
    engine.publish_many(pa.Table.from_pylist(rows), stream=stream).to_arrow()
later = [one.name for one in compiled()[ahead:]]
versions = {name: count for name, count in compiled_kernels().items() if count}
print(json.dumps([versions, [[one.name, one.is_kernel] for one in compiled()], later]))
"""
SEVERAL = {  # helpers with one version for each sort of array that they are given
    "tocsin.structures.free_lists": "of different states",
    "tocsin.structures.linked_lists": "of different states",
    "tocsin.structures.marks": "of different states",
    "tocsin.structures.b_trees": "of trees with and without a second tier",
}


def use(cache: Path | None = None) -> tuple[dict[str, int], list[tuple[str, bool]], list[str]]:
    """Return each kernel's versions, all that a new process compiled, and what `compile_kernels` had left over."""
    environment = os.environ | ({} if cache is None else {"TOCSIN_CACHE_DIR": str(cache)})
    done = subprocess.run(
        [sys.executable, "-c", USE], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    versions, compiled, later = json.loads(done.stdout)
    return versions, [(name, is_kernel) for name, is_kernel in compiled], later


def test_every_kernel_of_the_default_engine_has_one_version() -> None:
    use()  # leaves compiled code behind
    versions, compiled, _ = use()
    assert {name: count for name, count in versions.items() if count > 1} == {}
    assert {"match_event", "match", "step", "reformulate"} & {name.rpartition(".")[2] for name in versions}
    assert compiled == []


@pytest.mark.long
def test_ahead_of_time_everything_is_compiled_once(tmp_path: Path) -> None:
    _, compiled, later = use(tmp_path)
    assert later == []
    # A kernel that others call may have one version for them and one for itself.
    several = [name for (name, _), versions in Counter(compiled).items() if versions > 1]
    assert [name for name in several if name.rpartition(".")[0] not in SEVERAL] == []
