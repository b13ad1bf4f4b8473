"""Sessions: an invalid master is reported before Java is started."""

from __future__ import annotations

import pytest

from tocsin.errors import SparkError
from tocsin.spark.session import session


@pytest.mark.parametrize("master", ["lokal", "local[two]", "http://cluster:7077"])
def test_an_invalid_master_is_refused(master: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    with pytest.raises(SparkError, match="local"):
        session(master)
