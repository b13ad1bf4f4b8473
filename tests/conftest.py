"""The profiles of random tests.

`make test` looks at the same random cases every time, so that a change is judged by itself; `make test-long`
(TOCSIN_TEST_PROFILE=long) looks at many more, and at new ones each time. `brief` is for what is run over again
where every step is slow.
"""

import os
from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

from tocsin.structures.answering import compile_first

_COMMON = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], print_blob=True
)
settings.register_profile("default", _COMMON, max_examples=200, derandomize=True)
settings.register_profile("brief", _COMMON, max_examples=15, derandomize=True)
settings.register_profile("long", _COMMON, max_examples=5_000)
settings.load_profile(os.environ.get("TOCSIN_TEST_PROFILE", "default"))

compile_first()  # tests of what is interpreted meanwhile say so

# Two workers begin with one half each, and the first that is done takes tests from the other's end. Matchers' kernels are needed
# early in the second half and late in the first, so that on a machine without compiled code they are compiled once, and not
# by both workers at a time; at the end are tests that share no costly fixture.
_FIRST_HALF: Final = ("language", "model", "formats", "dissemination", "subscriptions", "sequences", "engine")
_SECOND_HALF: Final = (
    "matching",
    "views",
    "index",
    "spark",
    "structures",
    "replay",
    "benchmarks",
    "cli",
    "docs",
    "contract",
)
_PLACES: Final = {folder: place for place, folder in enumerate((*_FIRST_HALF, *_SECOND_HALF))}


@pytest.fixture(scope="session", autouse=True)
def _files_may_stay_in_memory() -> Iterator[None]:
    """Leave it to the system when files reach the disk: no test cuts the power, and waiting for a disk took minutes.

    `tests/index/test_generations.py` tests that a file of an index reaches the disk before it has its name.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests, and skip long ones unless they are selected."""
    items.sort(key=_place)
    if os.environ.get("TOCSIN_TEST_PROFILE") != "long":
        skipped = pytest.mark.skip(reason="it takes long: `make test-long`")
        for item in items:
            if item.get_closest_marker("long") is not None:
                item.add_marker(skipped)


def _place(item: pytest.Item) -> int:
    """Return where a test's folder comes; examples within guides and sources come where tests of the docs do."""
    parts = item.path.relative_to(item.config.rootpath).parts
    return _PLACES.get(parts[1] if len(parts) > 1 else "", _PLACES["docs"])
