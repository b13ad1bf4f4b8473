# ruff: noqa: SLF001 - the parts of Numba that are replaced here are private
"""A shorter way through Numba's compiler for our kernels and helpers; the code that comes out is the same.

Numba's own way is made for any function. Ours are known: no objects, no closures, no reference counts, no fallback. What is
left out was measured, in processor seconds for the kernels of the default engine (decision 0041):

- A helper is inlined into kernels and never called by itself. It becomes LLVM code that was simplified once, but no machine
  code, and is not optimised in full before the kernel that it ends up in is.
- Passes over closures, `with` blocks, array expressions and branches on constants find nothing in a kernel.
- Numba asks again for each `+` and `[]` which of some fifty implementations fits; the same types have the same answer.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, Final

import llvmlite.binding as llvm
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, CompileResult, Flags
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import (
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    TranslateByteCode,
)

from tocsin.structures.background_compiler import compiler
from tocsin.structures.compile_log import compiling


class _KernelLibrary(JITCodeLibrary):
    """The code of a kernel: optimised once, with all helpers in it. Numba's first round is for reference counts."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        builder = self._codegen._pass_builder()
        builder.getModulePassManager().run(self._final_module, builder)


class _HelperLibrary(JITCodeLibrary):
    """The code of a helper, to be linked into kernels: nobody runs it as it is."""

    def _optimize_functions(self, module: Any) -> None:
        """Simplify once what would otherwise be simplified in each kernel."""
        module.data_layout = self._codegen._data_layout
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.add_instruction_combine_pass()
        passes.run(module, self._codegen._pass_builder(opt=1))

    def _optimize_final_module(self) -> None:
        """Leave it to the kernels."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    @property
    def codegen(self) -> Any:
        """Return the code generator as far as Numba asks for it here: to set what only a function that runs has."""
        return _WithoutEnvironment

    def get_pointer_to_function(self, _: str) -> int:
        """Return null: there is no machine code."""
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        """Return what the cache keeps."""
        return self.name, "bitcode", self._get_module_for_linking().as_bitcode()


class _WithoutEnvironment:
    @staticmethod
    def set_env(_: str, __: Any) -> None:
        """Do nothing: an environment is written into machine code."""


def rebuild(context: Any, payload: Any) -> Any:
    """Return a compiled function that the cache kept."""
    (name, kind, data), *rest = payload
    if kind != "bitcode":
        return CompileResult._rebuild(context, *payload)
    library = _HelperLibrary(context.codegen(), name)
    library._final_module = llvm.parse_bitcode(data)
    library._finalize_final_module()
    return CompileResult._rebuild(_Rebuilding(context, library), payload[0], *rest)


class _Rebuilding:
    """A target context that has a library read already."""

    def __init__(self, context: Any, library: _HelperLibrary) -> None:
        self._context = context
        self.unserialize_library = lambda _: library

    def codegen(self) -> _Rebuilding:
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


@register_pass(mutates_CFG=True, analysis_only=False)
class _KernelLowering(NativeLowering):
    _name = "tocsin_kernel_lowering"
    library: ClassVar[type[Any]] = _KernelLibrary

    def run_pass(self, state: Any) -> bool:
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


@register_pass(mutates_CFG=True, analysis_only=False)
class _HelperLowering(_KernelLowering):
    _name = "tocsin_helper_lowering"
    library = _HelperLibrary


class KernelCompiler(CompilerBase):
    """Compiles a kernel."""

    passes: ClassVar[tuple[type[Any], ...]] = (
        TranslateByteCode,
        FixupArgs,
        IRProcessing,
        GenericRewrites,
        ReconstructSSA,
        NopythonTypeInference,
        PreLowerStripPhis,
        IRLegalization,
    )
    lowering: ClassVar[type[Any]] = _KernelLowering
    is_kernel: ClassVar[bool] = True

    def __init__(
        self,
        typing: Any,
        target: Any,
        library: Any,
        args: Any,
        return_type: Any,
        flags: Any,
        variables: Any,
    ) -> None:
        super().__init__(typing, target, library, args, return_type, _Flags(flags), variables)
        # Numba imports all that it knows again wherever it misses an implementation, as for each constant index.
        self.state.targetctx.refresh = partial(_install_new, self.state.targetctx)

    def define_pipelines(self) -> list[Any]:
        """Return the passes."""
        manager = PassManager("kernel")
        for one in (*self.passes, self.lowering, NoPythonBackend):
            manager.add_pass(one, one._name)
        manager.finalize()
        return [manager]

    def _compile_core(self) -> Any:
        compiler.give_way()
        function, args = self.state.func_id, ", ".join(map(str, self.state.args))
        with (
            compiling(f"{function.modname}.{function.func_qualname}", args, is_kernel=self.is_kernel),
            _remembered_calls(),
            _rare_collections(),
        ):
            return super()._compile_core()


class HelperCompiler(KernelCompiler):
    """Compiles a helper."""

    lowering = _HelperLowering
    is_kernel = False


def _install_new(context: Any) -> None:
    """Install what was registered since: intrinsics are registered when they are first used."""
    for registry in list(context._registries):
        context.install_registry(registry)


class _Flags(Flags):
    """Options whose copies, by which Numba looks things up all the time, are shared and compared by identity first."""

    def copy(self) -> _SharedFlags:
        """Return options that nobody changes."""
        key = tuple(sorted((name, str(value)) for name, value in self._values.items()))
        return _SHARED.setdefault(key, _SharedFlags(self))


class _SharedFlags(Flags):
    def __init__(self, copied: Flags) -> None:
        super().__init__(copied)
        self._all = super().values()
        self._hashed = super().__hash__()

    def values(self) -> dict[str, Any]:
        """Return all options by name."""
        return self._all

    def __hash__(self) -> int:
        return self._hashed

    def __eq__(self, other: object) -> bool:
        return self is other or bool(super().__eq__(other))


_OBJECTS: Final = (
    50_000  # that are made between two looks for garbage; the peak of the memory is some 20 MB higher
)
_SHARED: Final[dict[tuple[tuple[str, str], ...], _SharedFlags]] = {}
_CALLS: Final[dict[tuple[Any, ...], Any]] = {}
_get_call_type: Final = types.Function.get_call_type


def _remembered_call_type(function: Any, context: Any, args: Any, keywords: Any) -> Any:
    """Return the signature of a call of a function that is Numba's own, as it was found for the same types before."""
    if keywords:
        return _get_call_type(function, context, args, keywords)
    key = function, tuple(args), ConfigStack.top_or_none()
    found = _CALLS.get(key)
    if found is None:
        found = _get_call_type(function, context, args, keywords)
        if found is not None:
            _CALLS[key] = found
    return found


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Have Python look for cyclic garbage seldom: Numba makes millions of objects, and few of them are garbage by then."""
    before = gc.get_threshold()
    if before[0]:  # else it never looks
        gc.set_threshold(max(before[0], _OBJECTS), 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def _remembered_calls() -> Iterator[None]:
    """Have calls remembered while a kernel is compiled; the caller has Numba's lock, so nobody else compiles."""
    before = types.Function.get_call_type
    types.Function.get_call_type = _remembered_call_type
    try:
        yield
    finally:
        types.Function.get_call_type = before
