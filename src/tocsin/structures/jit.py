"""How hot loops are compiled: one decorator, and a cache of compiled code that cannot go stale."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from tocsin.structures.folders import user_cache

Function = TypeVar("Function", bound=Callable[..., Any])

_PACKAGE: Final = Path(__file__).parent.parent
_KERNELS: dict[str, Any] = {}

# A kernel allocates nothing, so it needs no reference counts; left on, they cost twenty times a hash look-up.
# A state is dozens of arrays: handing it from function to function is only free where the call is inlined.
_OPTIONS: Final[dict[str, Any]] = {
    "nogil": True,
    "_nrt": False,
    "forceinline": True,
    "no_cfunc_wrapper": True,
}


def kernel_sources() -> list[Path]:
    """Return every source that a kernel may be compiled from: kernels, and what constants and arrays they use."""
    patterns = (
        "structures/*.py",
        "**/_kernels/*.py",
        "**/state.py",
        "**/encoding/*.py",
        "**/operators/index.py",
    )
    return sorted({source for pattern in patterns for source in _PACKAGE.glob(pattern)})


def _sources_digest() -> str:
    """Return a digest of those sources.

    Numba knows only the file that a kernel stands in; a helper edited elsewhere would leave its callers stale.
    """
    digest = hashlib.sha256(numba.__version__.encode())
    for source in kernel_sources():
        digest.update(source.read_bytes())
    digest.update(b"bounds checked" if numba.config.BOUNDSCHECK else b"")
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Return where compiled code is kept: `TOCSIN_CACHE_DIR`, or the user's cache, one folder per version."""
    return user_cache() / _DIGEST


_DIGEST: Final = _sources_digest()
_FOLDER: Final = cache_folder()


def is_compiled_before(kernel: str = "") -> bool:
    """Tell whether an earlier process has left compiled code, of one kernel or of any, that this one can load."""
    return _FOLDER.is_dir() and next(_FOLDER.rglob(f"{kernel}*.nbc"), None) is not None


def kernel(function: Function) -> Function:
    """Compile `function` when it is first called, without the interpreter lock, and keep the code on disk."""
    return _compiled(function, {})


def helper(function: Function) -> Function:
    """Compile `function` for kernels alone: Python cannot call it, and so most of its compile time is saved."""
    return _compiled(function, {"no_cpython_wrapper": True})


def wrapping_helper(function: Function) -> Function:
    """Compile a helper whose unsigned integers are meant to wrap around: NumPy, without the JIT, would warn."""
    return helper(np.errstate(over="ignore")(function) if numba.config.DISABLE_JIT else function)


def _compiled(function: Function, options: dict[str, Any]) -> Function:
    # Numba reads the folder when a function is decorated; an application that embeds us keeps its own setting.
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(_FOLDER)
    try:
        compiled = numba.njit(cache=True, **_OPTIONS, **options)(function)
    except RuntimeError:  # nowhere to write: compile anew in each process
        compiled = numba.njit(**_OPTIONS, **options)(function)
    finally:
        numba.config.CACHE_DIR = before
    _KERNELS[f"{function.__module__}.{function.__qualname__}"] = compiled
    return cast("Function", compiled)


def compiled_kernels() -> dict[str, int]:
    """Return each kernel's number of compiled versions; more than one tells of a dtype that was not pinned."""
    return {name: len(getattr(one, "signatures", ())) for name, one in _KERNELS.items()}


if numba.config.DISABLE_JIT:

    def prefetch(array: Any, index: int) -> None:
        """Do nothing: without compilation there is no cache line to ask for."""

else:

    @intrinsic
    def prefetch(_: Any, array: Any, index: Any) -> Any:
        """Ask for the cache line of an array's element, to be read soon; `index` counts elements from the first."""

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> None:
            view = context.make_array(signature.args[0])(context, builder, arguments[0])
            pointer = builder.gep(view.data, [arguments[1]])
            byte = ir.IntType(8).as_pointer()
            number = ir.IntType(32)
            declared = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
            function = cgutils.get_or_insert_function(builder.module, declared, "llvm.prefetch.p0")
            # To read (0), wanted in every level of the cache (3), data rather than code (1).
            constants = [ir.Constant(number, n) for n in (0, 3, 1)]
            builder.call(function, [builder.bitcast(pointer, byte), *constants])

        return numba.types.void(array, index), codegen
