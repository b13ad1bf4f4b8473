"""Whether somebody waits for an answer that must not wait for the compiler.

The engine says so around a single event or subscription, whose kernels are then interpreted until they are compiled. Without
that, whoever calls a kernel waits until it is compiled. This module imports nothing of the compiler.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from threading import local
from typing import Final

VARIABLE: Final = "TOCSIN_COMPILE"
FEW: Final = 100  # events or rows for which kernels are interpreted; for more of them, waiting is quicker


class _Calls(local):
    """The calls of this thread that are answered at once, and those within which all is compiled first."""

    answering = 0
    compiling = 0


calls: Final = _Calls()


class _Answering:
    def __enter__(self) -> None:
        calls.answering += 1

    def __exit__(self, *_: object) -> None:
        calls.answering -= 1


class _CompilingFirst:
    def __enter__(self) -> None:
        calls.compiling += 1

    def __exit__(self, *_: object) -> None:
        calls.compiling -= 1


compiling_first: Final = _CompilingFirst()  # within it, whoever calls a kernel waits for the compiler
_answering: Final = _Answering()
_waiting: Final[nullcontext[None]] = nullcontext()


def answering(items: int = 1) -> _Answering | nullcontext[None]:
    """Return a context within which kernels that are not compiled yet are interpreted, if there are few items."""
    return _answering if items <= FEW else _waiting


def is_answering() -> bool:
    """Tell whether this thread's caller wants an answer before kernels are compiled."""
    return calls.answering > 0 and not calls.compiling and not always_compiles_first()


def always_compiles_first() -> bool:
    """Tell whether this process always waits for the compiler: `TOCSIN_COMPILE=first`."""
    return os.environ.get(VARIABLE) == "first"


def compile_first() -> None:
    """Have this process and its children wait for the compiler, unless the user says otherwise."""
    os.environ.setdefault(VARIABLE, "first")
