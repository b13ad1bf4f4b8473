"""How thoroughly random tests look.

`make test` looks at the same random cases every time, so that a change is judged by itself; `make test-long`
(TOCSIN_TEST_PROFILE=long) looks at many more, and at new ones each time. `brief` is for what is run over again
where every step is slow.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

_COMMON = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], print_blob=True
)
settings.register_profile("default", _COMMON, max_examples=200, derandomize=True)
settings.register_profile("brief", _COMMON, max_examples=15, derandomize=True)
settings.register_profile("long", _COMMON, max_examples=5_000)
settings.load_profile(os.environ.get("TOCSIN_TEST_PROFILE", "default"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Pass over what takes long, unless it is asked for."""
    if os.environ.get("TOCSIN_TEST_PROFILE") != "long":
        skipped = pytest.mark.skip(reason="it takes long: `make test-long`")
        for item in items:
            if item.get_closest_marker("long") is not None:
                item.add_marker(skipped)
