"""An archive of compiled kernels that Spark ships to its executors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tocsin
from tests.cli.running import tocsin as command

# Spark's workers of a cluster run in a folder of the installation, which is removed again.
PROGRAM = """
import json, os, shutil, sys
from pathlib import Path
import pyspark
from pyspark.sql import SparkSession
from tocsin.spark.session import _prepare_environment

archive, cache, source = sys.argv[1:]
_prepare_environment()
settings = {
    "spark.archives": f"{archive}#kernels",
    "spark.executorEnv.TOCSIN_KERNELS": "kernels",
    "spark.executorEnv.TOCSIN_CACHE_DIR": cache,
    "spark.executorEnv.TOCSIN_COMPILE": "first",
    "spark.executorEnv.PYTHONPATH": source,
    "spark.executor.memory": "512m",
    "spark.driver.memory": "512m",
    "spark.ui.enabled": "false",
}
builder = SparkSession.builder.master("local-cluster[1,1,1024]").appName("kernels")
for name, value in settings.items():
    builder = builder.config(name, value)
session = builder.getOrCreate()

def use(_):
    from tocsin import Engine
    from tocsin.structures.compile_log import compiled
    engine = Engine(matcher="dynamic")
    engine.subscribe("a > 1")
    engine.subscribe("from s a next s b where b.v > a.v")
    found = [len(engine.publish(row, stream="s")) for row in ({"a": 2, "v": 1}, {"a": 0, "v": 2})]
    yield found, [one.name for one in compiled()], os.getcwd()

[(found, compiled, folder)] = session.sparkContext.parallelize([0], 1).mapPartitions(use).collect()
session.stop()
shutil.rmtree(Path(folder).parent, ignore_errors=True)
print(json.dumps([found, compiled]))
"""


@pytest.mark.long
@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_executors_with_an_archive_compile_nothing(tmp_path: Path) -> None:
    archive = tmp_path / "kernels.tar"
    made = command("compile", "--output", archive, "--target", "native")
    assert made.returncode == 0, made.stderr
    source = Path(tocsin.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(archive), str(tmp_path / "cache"), str(source)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [[1, 1], []]
