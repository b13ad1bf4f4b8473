"""How thoroughly random tests look: `make test` by default, `make test-long` with TOCSIN_TEST_PROFILE=long."""

import os

from hypothesis import HealthCheck, settings

_COMMON = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], print_blob=True
)
settings.register_profile("default", _COMMON, max_examples=200)
settings.register_profile("long", _COMMON, max_examples=5_000)
settings.load_profile(os.environ.get("TOCSIN_TEST_PROFILE", "default"))
