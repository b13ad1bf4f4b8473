"""The time that Python's calls of compiled kernels take, of a piece of work in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from time import process_time
from typing import Any
from unittest.mock import patch


class KernelTime:
    """The processor seconds spent in kernels so far."""

    seconds = 0.0

    def timed(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls a kernel and counts its time."""

        @wraps(kernel)
        def call(*arguments: Any) -> Any:
            begun = process_time()
            try:
                return kernel(*arguments)
            finally:
                self.seconds += process_time() - begun

        return call


@contextmanager
def timed_kernels() -> Iterator[KernelTime]:
    """Count the time of kernels that are called by Python; all of them have to be compiled before.

    Kernels that other kernels call are part of these. Without Numba's compiler there are none, and the time is 0.
    """
    found = KernelTime()
    with ExitStack() as patches:
        for name, module in list(sys.modules.items()):
            if not name.startswith("tocsin."):
                continue
            for own, value in list(vars(module).items()):
                if hasattr(value, "py_func"):  # compiled by Numba
                    patches.enter_context(patch.object(module, own, found.timed(value)))
        yield found
