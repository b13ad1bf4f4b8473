"""A pipeline in a process of its own, to be killed: reads JSON lines, and writes to a Parquet or an Arrow sink."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import functions

from tocsin.spark import Pipeline, local_session
from tocsin.spark.sinks.arrow import ArrowSink

__all__ = ["main"]


def main(home: Path, sink: str, *, to_the_end: bool) -> None:
    """Run until killed, or until what there is has been matched."""
    spark = local_session(
        1,
        **{
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.local.dir": str(home / "local"),
        },
    )
    spark.dataSource.register(ArrowSink)
    lines = spark.readStream.schema("value string").option("maxFilesPerTrigger", 1).text(str(home / "events"))
    source = lines.withColumn("event_id", functions.get_json_object("value", "$.id").cast("long"))
    pipeline = Pipeline(
        source,
        home / "index",
        {"format": sink, "path": str(home / "notes")},
        home / "checkpoint",
        payload="value",
    )
    pipeline.run(available_now=to_the_end)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], to_the_end=sys.argv[3] == "to the end")
