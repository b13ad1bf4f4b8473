"""What a session tells about itself, whether it is a classic one or one of Spark Connect.

A session of Spark Connect has no context and no JVM in this process: it tells its settings, and its workers can be asked.
"""

from __future__ import annotations

import re
from typing import Any, Final

QUERY: Final = "sql.streaming.queryId"  # local properties of a micro-batch's tasks
BATCH: Final = "streaming.sql.batchId"


def is_connect(spark: Any) -> bool:
    """Return whether this is a session of Spark Connect, which has no `sparkContext`."""
    return any(kind.__module__.startswith("pyspark.sql.connect") for kind in type(spark).__mro__)


def has_local_master(spark: Any) -> bool:
    """Return whether the workers run on the driver's machine, or on that of the Connect server."""
    return str(spark.conf.get("spark.master", "")).startswith("local")


def local_tasks(spark: Any) -> int | None:
    """Return how many tasks run at a time on a local master; None on others, and where it has as many as cores."""
    found = re.fullmatch(r"local(?:\[(\d+)(?:,\s*\d+)?\])?", str(spark.conf.get("spark.master", "")))
    return int(found[1] or 1) if found else None


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
