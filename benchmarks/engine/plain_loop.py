"""A plain Python loop over compiled lambdas, from a file to a file: `python -m benchmarks.engine.plain_loop FILE CODES OUTPUT`.

The conditions are those of somebody who has no engine. The output has the notifications of `tocsin match`, without the generation.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from benchmarks.engine.workload import STREAM, compile_lambda

_TEXTS: Final = frozenset({"carrier", "tailnum", "origin", "dest", "time"})
_ROWS: Final = 10_000  # of a Parquet file, at a time


def main(arguments: Sequence[str]) -> None:
    """Write the notifications for a file's events; `CODES` is a JSON file of lambdas by name."""
    file, codes, output = map(Path, arguments)
    timestamps = file.suffix == ".parquet"
    named = json.loads(codes.read_text()).items()
    conditions = [(name, compile_lambda(code, timestamps=timestamps)) for name, code in named]
    with output.open("w") as out:
        for number, event in enumerate(_RECORDS[file.suffix](file), 1):
            for name, condition in conditions:
                if condition(event):
                    out.write(_line(name, f"{file}:{number}", event))


def _line(subscription: str, id_: str, event: dict[str, Any]) -> str:
    time = event["time"]
    ticks = int((datetime.fromisoformat(time) if isinstance(time, str) else time).timestamp() * 1_000_000)
    shown = {"id": id_, "stream": STREAM, "start": ticks, "end": ticks, "attributes": event}
    record = {
        "subscription": subscription,
        "event_ids": [id_],
        "events": [shown],
        "start": ticks,
        "end": ticks,
    }
    return json.dumps(record, default=str) + "\n"


def _json_lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open() as lines:
        for line in lines:
            yield json.loads(line)


def _csv(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(newline="") as lines:
        for row in csv.DictReader(lines):
            yield {name: field if name in _TEXTS else int(field) for name, field in row.items() if field}


def _parquet(file: Path) -> Iterator[dict[str, Any]]:
    for batch in pq.ParquetFile(file).iter_batches(_ROWS):
        for row in batch.to_pylist():
            yield {name: value for name, value in row.items() if value is not None}


_RECORDS: Final = {".jsonl": _json_lines, ".csv": _csv, ".parquet": _parquet}

if __name__ == "__main__":
    main(sys.argv[1:])
