"""Two pipelines in a process of their own, to be killed: one writes to a Parquet sink, the other to an Arrow sink."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import functions

from tocsin.spark import Pipeline, local_session
from tocsin.spark.sinks import ArrowSink

__all__ = ["SINKS", "main"]

SINKS = ("parquet", "tocsin-arrow")


def main(home: Path, *, to_the_end: bool) -> None:
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
    queries = []
    for sink in SINKS:
        lines = (
            spark.readStream.schema("value string").option("maxFilesPerTrigger", 1).text(str(home / "events"))
        )
        pipeline = Pipeline(
            lines.withColumn("event_id", functions.get_json_object("value", "$.id").cast("long")),
            home / "index",
            {"format": sink, "path": str(home / sink)},
            home / f"{sink}-checkpoint",
            payload="value",
        )
        queries.append(pipeline.start(available_now=to_the_end))
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), to_the_end=sys.argv[2] == "to the end")
