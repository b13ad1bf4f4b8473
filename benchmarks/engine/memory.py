"""The memory of subscriptions in a process of their own: `python -m benchmarks.engine.memory KIND COUNT`."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from resource import getpagesize

from benchmarks.engine.workload import draw_alerts
from tocsin import Engine


def main(arguments: Sequence[str]) -> None:
    """Print, as JSON, the resident bytes of each subscription and those that the matcher reports."""
    kind, count = arguments[0], int(arguments[1])
    _subscribe(Engine(), kind, 2_000)  # imports and compiles everything
    alerts = draw_alerts(count)
    texts = {f"alert-{i}": text for i, text in enumerate(text for one in alerts for text in one.texts())}
    if kind == "template":
        texts.clear()
    gc.collect()
    before = _resident()
    engine = Engine()
    if kind == "template":
        for one in alerts:
            engine.subscribe_many(one.kind.text, one.rows, id=f"{'-'.join(one.kind.columns)}-{{row}}")
    else:
        engine.apply(texts)
    alerts.clear()
    gc.collect()
    after = _resident()
    print(json.dumps({"resident": (after - before) / count, "matcher": engine.stats().matcher.bytes / count}))  # noqa: T201


def _subscribe(engine: Engine, kind: str, count: int) -> None:
    for one in draw_alerts(count):
        if kind == "template":
            engine.subscribe_many(one.kind.text, one.rows)
        else:
            engine.apply({f"a{i}": text for i, text in enumerate(one.texts())})
    engine.publish({"carrier": "UA"})


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize()


if __name__ == "__main__":
    main(sys.argv[1:])
