"""A stream with state in a process of its own, to be killed."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.spark.stateful.workload import COLUMNS
from tocsin.spark import Pipeline, local_session

__all__ = ["main"]


def main(home: Path, *, to_the_end: bool) -> None:
    """Run until killed, or until the present events have been matched."""
    spark = local_session(
        1,
        **{
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.local.dir": str(home / "local"),
        },
    )
    source = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).csv(str(home / "events"))
    pipeline = Pipeline(
        source,
        home / "index",
        home / "notes",
        home / "checkpoint",
        time="t",
        stream_column="of",
        values=True,
        late=True,
        out_of_orderness=4,
        state_shards=3,
    )
    pipeline.start(available_now=to_the_end).awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), to_the_end=sys.argv[2] == "to the end")
