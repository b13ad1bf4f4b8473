"""What a session tells about itself, whether it is a classic one or one of Spark Connect.

A session of Spark Connect has no context and no JVM in this process: it tells its settings, and its workers can be asked.
"""

from __future__ import annotations

from typing import Any, Final

QUERY: Final = "sql.streaming.queryId"  # local properties of a micro-batch's tasks
BATCH: Final = "streaming.sql.batchId"


def is_connect(spark: Any) -> bool:
    """Return whether this is a session of Spark Connect, which has no `sparkContext`."""
    return any(kind.__module__.startswith("pyspark.sql.connect") for kind in type(spark).__mro__)


def has_local_master(spark: Any) -> bool:
    """Return whether the workers run on the driver's machine, or on that of the Connect server."""
    return str(spark.conf.get("spark.master", "")).startswith("local")


def is_speculative(spark: Any) -> bool:
    """Return whether a task may run twice at once."""
    return str(spark.conf.get("spark.speculation", "false")).lower() == "true"


def micro_batch(spark: Any) -> tuple[str, int] | None:
    """Return the query and the number of the micro-batch whose `foreachBatch` this is, or None.

    On Spark Connect it is always None: that function runs in a process of the server, which is not told the query.
    """
    if is_connect(spark):
        return None
    context = spark.sparkContext
    query, batch = context.getLocalProperty(QUERY), context.getLocalProperty(BATCH)
    return None if query is None or batch is None else (query, int(batch))
