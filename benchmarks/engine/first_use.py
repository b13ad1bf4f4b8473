"""The first use of filters, a sequence and a view in an index, which compiles them: `python -m benchmarks.engine.first_use`."""

from __future__ import annotations

import pyarrow as pa

from tocsin import Engine
from tocsin.structures.answering import compile_first

if __name__ == "__main__":
    compile_first()
    engine = Engine(matcher="adaptive")
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
