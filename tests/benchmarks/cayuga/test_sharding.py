from benchmarks.cayuga.sharding import measure


def test_sequences_on_shards_are_measured() -> None:
    lines = list(measure("Filter", 300, 2, events=400, batch=100, out_of_orderness=5))
    names = [line.split(":")[0] for line in lines if ":" in line]
    assert [name for name in ("plan", "route", "process", "snapshot") if name not in names] == []
