"""How hot loops are compiled: one decorator, and a cache of compiled code that cannot go stale."""

from __future__ import annotations

import hashlib
import pickle
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, _CacheLocator
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from tocsin.structures import state_types  # noqa: F401 - tells Numba how to hand our named tuples to kernels
from tocsin.structures.compile_log import count_remaining
from tocsin.structures.folders import user_cache
from tocsin.structures.interpreted_kernels import callable_for, interpret_as, wraps_around
from tocsin.structures.kernel_archives import kernel_archives
from tocsin.structures.kernel_compiler import HelperCompiler, KernelCompiler, rebuild

Function = TypeVar("Function", bound=Callable[..., Any])

_PACKAGE: Final = Path(__file__).parent.parent
_IMPORT: Final = re.compile(rb"^from tocsin\.([\w.]+) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_KERNELS: dict[str, Any] = {}

# A kernel allocates nothing, so it needs no reference counts; left on, they cost twenty times a hash look-up.
# A state is dozens of arrays: handing it from function to function is only free where the call is inlined.
_OPTIONS: Final[dict[str, Any]] = {
    "nogil": True,
    "_nrt": False,
    "forceinline": True,
    "no_cfunc_wrapper": True,
}
_HELPER: Final[dict[str, Any]] = {"no_cpython_wrapper": True, "pipeline_class": HelperCompiler}


@cache
def kernel_sources() -> frozenset[Path]:
    """Return every source that a kernel may be compiled from: kernels, and the constants and states they use."""
    patterns = (
        "structures/**/*.py",
        "**/_kernels/*.py",
        "**/state.py",
        "**/encoding/*.py",
        "**/operators/index.py",
    )
    return frozenset(source for pattern in patterns for source in _PACKAGE.glob(pattern))


def compiled_from(source: Path) -> frozenset[Path]:
    """Return the kernel sources that a source imports, directly or not, with itself among them."""
    found: set[Path] = set()
    pending = {source}
    while pending:
        found |= pending
        pending = {imported for one in pending for imported in _read(one)[1]} - found
    return frozenset(found)


@cache
def _read(source: Path) -> tuple[bytes, frozenset[Path]]:
    """Return a digest of a source, and the kernel sources that it imports by itself."""
    content = source.read_bytes()
    imported = set()
    for module, names in _IMPORT.findall(content):
        path = _PACKAGE.joinpath(*module.decode().split("."))
        imported.add(path.with_suffix(".py"))
        imported |= {path / f"{name}.py" for name in re.findall(r"\w+", names.decode())}
    return hashlib.sha256(content).digest(), frozenset(imported & kernel_sources())


@cache
def _folder(source: Path) -> Path:
    """Return where the compiled kernels of a source file are kept.

    Numba looks only at the file that a kernel stands in; a helper edited elsewhere would leave its callers stale. The
    folder's name has a digest of all that the kernels are compiled from, and no path of this machine, so every
    checkout with the same sources shares it.
    """
    digest = hashlib.sha256(numba.__version__.encode())
    for one in sorted(compiled_from(source)):
        digest.update(one.relative_to(_PACKAGE).as_posix().encode() + _read(one)[0])
    digest.update(b"bounds checked" if numba.config.BOUNDSCHECK else b"")
    module = ".".join(source.relative_to(_PACKAGE).with_suffix("").parts)
    return user_cache() / f"{module}-{digest.hexdigest()[:16]}"


@cache
def sources_digest() -> str:
    """Return a digest of all that kernels are compiled from."""
    digest = hashlib.sha256()
    for one in sorted(kernel_sources()):
        digest.update(one.relative_to(_PACKAGE).as_posix().encode() + _read(one)[0])
    digest.update(b"bounds checked" if numba.config.BOUNDSCHECK else b"")
    return digest.hexdigest()


def compile_target() -> tuple[str, str, str]:
    """Return what this process compiles for: the platform, the processor and its features."""
    found: tuple[str, str, str] = cpu_target.target_context.codegen().magic_tuple()
    return found


def is_compiled_before(module: str) -> bool:
    """Tell whether compiled kernels of a module, as it is now, are there to load: an earlier process's, or an archive's."""
    folder = _folder(_PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".py"))
    if folder.is_dir() and next(folder.glob("*.nbc"), None) is not None:
        return True
    return any(one.names(folder.name) for one in kernel_archives(sources_digest()))


def kernel(function: Function) -> Function:
    """Compile `function` when it is first called, without the interpreter lock, and keep the code on disk.

    The engine's single events do not wait for that: see `interpreted_kernels`.
    """
    compiled = cast("Any", _compiled(function, {"pipeline_class": KernelCompiler}))
    if not numba.config.DISABLE_JIT:
        compiled._compile_for_args = partial(  # noqa: SLF001 - what Numba calls where no version fits
            callable_for,
            compiled,
            compiled._compile_for_args,  # noqa: SLF001
            partial(_is_kept, compiled),
        )
        _inline(compiled, function)
    return cast("Function", compiled)


def _inline(compiled: Any, function: Callable[..., Any]) -> None:
    """Have kernels that call this one use a version without machine code: most such versions are never run by themselves."""
    inlined = numba.njit(**_OPTIONS, **_HELPER)(function)
    _prepare(inlined, function, ".inlined")

    def call_template(original: Callable[..., Any], arguments: Any, keywords: Any) -> Any:
        """Return how a call with these types is compiled."""
        is_there = not keywords and tuple(map(_plain_type, arguments)) in compiled.overloads
        return original(arguments, keywords) if is_there else inlined.get_call_template(arguments, keywords)

    def overload(original: Callable[..., Any], arguments: Any) -> Any:
        """Return the version that was chosen."""
        return inlined.get_overload(arguments) if arguments in inlined.overloads else original(arguments)

    compiled.get_call_template = partial(call_template, compiled.get_call_template)
    compiled.get_overload = partial(overload, compiled.get_overload)


def helper(function: Function) -> Function:
    """Compile `function` for kernels alone: Python cannot call it, and so most of its compile time is saved."""
    return _compiled(function, _HELPER)


def wrapping_helper(function: Function) -> Function:
    """Compile a helper whose unsigned integers are meant to wrap around: NumPy, without the JIT, would warn."""
    if numba.config.DISABLE_JIT:
        return helper(np.errstate(over="ignore")(function))
    compiled = helper(function)
    wraps_around(compiled)
    return compiled


def _compiled(function: Function, options: dict[str, Any]) -> Function:
    """Return a function compiled with the project's options and cached by the content of its sources."""
    compiled = numba.njit(**_OPTIONS, **options)(function)
    if not numba.config.DISABLE_JIT:
        _prepare(compiled, function)
    _KERNELS[f"{function.__module__}.{function.__qualname__}"] = compiled
    return cast("Function", compiled)


def _prepare(compiled: Any, function: Callable[..., Any], kind: str = "") -> None:
    """Have a function compiled once for all constants, and kept."""
    compiled.compile = partial(_compile_once, compiled.compile)
    # Where nothing can be written, each process compiles again.
    with suppress(RuntimeError):
        compiled._cache = _KernelCache(function, kind)  # noqa: SLF001 - as `enable_caching` does, in our own folder


def _plain_type(type_: Any) -> Any:
    """Return an integer's type for a constant, and any other type as it is."""
    plain = numba.types.unliteral(type_)
    return plain.dtype if isinstance(plain, numba.types.IntEnumMember) else plain


def _compile_once(compile_: Callable[..., Any], signature: Any) -> Any:
    """Compile for integers where a constant is given: Numba would compile anew for each; inlined, it is constant again."""
    if isinstance(signature, tuple):
        signature = tuple(map(_plain_type, signature))
    return compile_(signature)


def _is_kept(compiled: Any, types: tuple[Any, ...]) -> bool:
    """Tell whether a version of a kernel is in the cache or an archive."""
    kept = compiled._cache  # noqa: SLF001
    return isinstance(kept, _KernelCache) and kept.has(types, compiled.targetctx)


@cache
def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


class _KernelLocator(_CacheLocator):
    """Finds compiled code by the content of its sources."""

    def __init__(self, folder: Path, line: int) -> None:
        self._path = folder
        self._line = line

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _KernelLocator | None:
        """Return the locator of a function's code, or None if nothing can be written there."""
        folder = _folder(Path(py_file))
        is_usable = _is_writable(folder) or kernel_archives(sources_digest())
        return cls(folder, py_func.__code__.co_firstlineno) if is_usable else None

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(self._path)

    def get_source_stamp(self) -> str:
        """Return the folder's name: it has the digest of the sources."""
        return self._path.name

    def get_disambiguator(self) -> str:
        """Return the line that a function begins at, since two of one file may share a name."""
        return str(self._line)


class _KernelCacheImpl(CompileResultCacheImpl):
    _locator_classes = (_KernelLocator,)

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """Return a compiled function."""
        return rebuild(target_context, payload)


class _KernelFiles(IndexDataCacheFile):
    """One file for each compiled version of a kernel, named by its signature and target.

    Numba numbers the files and keeps the numbers in an index. Two processes that compile two versions at the same time may
    give both one number, and a third then runs code that was compiled for other types.
    """

    def save(self, key: Any, data: Any) -> None:
        """Keep a version, if there is a place for it."""
        if _is_writable(Path(self._cache_path)):
            self._save_data(self._name(key), data)

    def load(self, key: Any) -> Any:
        """Return a version, or None if there is none."""
        try:
            return self._load_data(self._name(key))
        except (
            OSError,
            EOFError,
            AttributeError,
            ImportError,
        ):  # none yet, half written, or of types that are gone
            return self._load_from_archive(key)

    def has(self, key: Any) -> bool:
        """Tell whether there is a version to load."""
        return Path(self._cache_path, self._name(key)).exists() or self._in_archive(key) is not None

    def _load_from_archive(self, key: Any) -> Any:
        """Return a version from an archive, which may be compiled for another processor than this one, or None."""
        content = self._in_archive(key)
        # as from the cache; the archive is the user's own
        return None if content is None else pickle.loads(content)  # noqa: S301

    def _in_archive(self, key: Any) -> bytes | None:
        signature, _, *rest = key
        for archive in kernel_archives(sources_digest()):
            name = self._name((signature, archive.target, *rest))
            content = archive.read(f"{Path(self._cache_path).name}/{name}")
            if content is not None:
                return content
        return None

    @property
    def prefix(self) -> str:
        """Return how the names of the files begin."""
        return str(self._index_name.removesuffix(".nbi"))

    def _name(self, key: Any) -> str:
        signature, *rest = key
        text = "\n".join([*map(_type_text, signature), *map(str, rest)])
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return f"{self.prefix}.{digest}.nbc"


def _type_text(type_: Any) -> str:
    """Return a text that tells a type from others.

    Two tuples or enums may share a name, but not a module too; a tuple's fields are read by their position.
    """
    owner = getattr(type_, "instance_class", None)
    fields = ", ".join(getattr(type_, "fields", ()))
    qualified = "" if owner is None else f"{owner.__module__}.{owner.__qualname__} {fields}"
    return f"{type_} {qualified}({', '.join(map(_type_text, getattr(type_, 'types', ())))})"


class _KernelCache(FunctionCache):
    _impl_class = _KernelCacheImpl

    def __init__(self, py_func: Callable[..., Any], kind: str) -> None:
        super().__init__(py_func)
        locator = self._impl.locator
        self._cache_file = _KernelFiles(
            locator.get_cache_path(), self._impl.filename_base + kind, locator.get_source_stamp()
        )

    @property
    def file_name(self) -> str:
        """Return how the names of all files of the function begin."""
        return str(self._cache_file.prefix)

    def has(self, signature: tuple[Any, ...], target_context: Any) -> bool:
        """Tell whether a version can be loaded."""
        return self._cache_file.has(self._index_key(signature, target_context.codegen()))


def compiled_kernels() -> dict[str, int]:
    """Return each kernel's number of compiled versions; more than one tells of a dtype that was not pinned."""
    return {name: len(getattr(one, "signatures", ())) for name, one in _KERNELS.items()}


def functions_to_compile() -> int:
    """Return how many functions of the modules that are loaded have no compiled version, here, in the cache or an archive."""
    names: dict[Path, set[str]] = {}
    count = 0
    for one in _KERNELS.values():
        kept = getattr(one, "_cache", None)
        if one.signatures or not isinstance(kept, _KernelCache):
            continue
        folder = Path(kept.cache_path)
        if folder not in names:
            names[folder] = {path.name for path in folder.glob("*.nbc")}
            for archive in kernel_archives(sources_digest()):
                names[folder] |= archive.names(folder.name)
        count += not any(name.startswith(f"{kept.file_name}.") for name in names[folder])
    return count


count_remaining(functions_to_compile)


if numba.config.DISABLE_JIT:

    def first_bit(word: Any) -> int:
        """Return the position of the lowest bit that is set, 64 if none is."""
        number = int(word)
        return (number & -number).bit_length() - 1 if number else 64

    def prefetch(array: Any, index: int) -> None:
        """Do nothing: without compilation there is no cache line to ask for."""

else:

    @intrinsic
    def first_bit(_: Any, word: Any) -> Any:  # noqa: ARG001 - its type is always the same
        """Return the position of the lowest bit that is set, 64 if none is."""

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
            """Emit LLVM's count of trailing zeros."""
            return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

        return numba.types.int64(numba.types.uint64), codegen

    @intrinsic
    def prefetch(_: Any, array: Any, index: Any) -> Any:
        """Ask for the cache line of an array's element, to be read soon; `index` counts elements from the first."""

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> None:
            """Emit LLVM's prefetch instruction for the address of the element."""
            view = context.make_array(signature.args[0])(context, builder, arguments[0])
            pointer = builder.gep(view.data, [arguments[1]])
            byte = ir.IntType(8).as_pointer()
            number = ir.IntType(32)
            declared = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
            function = cgutils.get_or_insert_function(builder.module, declared, "llvm.prefetch.p0")
            # To read (0), keep in every level of the cache (3), data rather than code (1).
            constants = [ir.Constant(number, n) for n in (0, 3, 1)]
            builder.call(function, [builder.bitcast(pointer, byte), *constants])

        return numba.types.void(array, index), codegen

    interpret_as(first_bit, lambda word: (int(word) & -int(word)).bit_length() - 1 if word else 64)
    interpret_as(prefetch, lambda _array, _index: None)
