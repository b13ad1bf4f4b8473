"""`python -m tests.spark.kafka.client JARS send|read ADDRESS TOPIC`: lines into a topic, and messages out of it as JSON lines."""

from __future__ import annotations

import json
import sys

from tocsin.spark import local_session

__all__ = ["main"]


def main(jars: str, task: str, address: str, topic: str) -> None:
    """Send each line of standard input as a message, or print all messages with key and value."""
    spark = local_session(1, **{"spark.jars": jars})
    servers = {"kafka.bootstrap.servers": address}
    if task == "send":
        rows = spark.createDataFrame([(line.rstrip("\n"),) for line in sys.stdin], "value string")
        rows.write.format("kafka").options(**servers, topic=topic).save()
    else:
        found = spark.read.format("kafka").options(**servers, subscribe=topic).load()
        for row in found.selectExpr("cast(key as string)", "cast(value as string)").collect():
            sys.stdout.write(json.dumps([row[0], row[1]]) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
