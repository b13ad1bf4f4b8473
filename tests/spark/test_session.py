"""Sessions: what is no place for Spark to run is told before Java is started."""

from __future__ import annotations

import pytest

from tocsin.errors import SparkError
from tocsin.spark.session import session


@pytest.mark.parametrize("master", ["lokal", "local[two]", "http://cluster:7077"])
def test_a_master_that_is_none_is_told(master: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    with pytest.raises(SparkError, match="local"):
        session(master)
