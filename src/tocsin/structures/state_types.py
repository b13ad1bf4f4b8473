"""States by reference: how kernels see the named tuples of arrays that Python hands them.

Numba would pass a tuple of 80 arrays from function to function as 560 scalars, and build it anew wherever one of its fields
is read. Two thirds of the time to compile a kernel went into that. Our named tuples are a pointer to their fields
instead; a field is read where it is used. Nothing changes a state while a kernel runs, and each read says so to LLVM
(`invariant.load`), which moves it out of loops as if the field had been an argument.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models, register_default
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.core.typing.typeof import typeof_impl
from numba.extending import NativeValue, infer_getattr, unbox
from numba.np.numpy_support import as_dtype

# Positions in Numba's array structure, behind two pointers to the array's owner
_ITEMS: Final = 2
_ITEM_SIZE: Final = 3
DATA: Final = 4
_SHAPE: Final = 5
_STRIDES: Final = 6

PACKAGES: Final = {__name__.partition(".")[0]}  # named tuples of other packages stay as Numba has them
_typeof_tuple: Final = typeof_impl.dispatch(tuple)


class StateType(types.Type):
    """The type of a named tuple of arrays, numbers and other such tuples."""

    def __init__(self, members: tuple[types.Type, ...], instance_class: type[Any]) -> None:
        self.types = members
        self.instance_class = instance_class
        self.fields: tuple[str, ...] = instance_class._fields
        text = ", ".join(map(str, members))
        super().__init__(name=f"{instance_class.__module__}.{instance_class.__qualname__}({text})")
        self._hash = hash(self.key)  # of a hundred types, and asked for all the time

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other)

    def __reduce__(self) -> tuple[Any, ...]:
        # A type in the cache of compiled kernels is made anew: its hash is another one in each process.
        return StateType, (self.types, self.instance_class)

    @property
    def key(self) -> Any:
        """Return what two equal types have in common."""
        return self.instance_class, self.types


@typeof_impl.register(tuple)
def _typeof(value: tuple[Any, ...], context: Any) -> types.Type | None:
    """Return the type of a tuple: a state if it is a named tuple of ours."""
    cls = type(value)
    if cls.__module__.partition(".")[0] not in PACKAGES or not value:
        return _typeof_tuple(value, context)
    members = tuple(typeof_impl(one, context) for one in value)
    return None if None in members else StateType(members, cls)


@infer_getattr
class _StateFields(AttributeTemplate):
    key = StateType

    def generic_resolve(self, state: StateType, field: str) -> types.Type | None:  # type: ignore[override]
        """Return the type of a field, or None if there is none of this name."""
        return state.types[state.fields.index(field)] if field in state.fields else None


@register_default(StateType)
class _StateModel(models.PrimitiveModel):
    """A pointer to the fields, one behind the other, states among them included."""

    def __init__(self, manager: Any, state: StateType) -> None:
        super().__init__(manager, state, _layout(manager, state).as_pointer())


def _layout(manager: Any, type_: types.Type) -> ir.Type:
    """Return how a field is laid out in memory."""
    if isinstance(type_, StateType):
        return ir.LiteralStructType([_layout(manager, one) for one in type_.types])
    return manager.lookup(type_).get_data_type()


@lower_getattr_generic(StateType)
def read_field(context: Any, builder: Any, state: StateType, pointer: Any, field: str) -> Any:
    """Return a field: a pointer to a state, the parts of an array that are used, or a number."""
    position = state.fields.index(field)
    type_ = state.types[position]
    place = _part(builder, pointer, position)
    if isinstance(type_, StateType):
        return place
    if isinstance(type_, types.Array):
        return _read_array(context, builder, type_, place)
    return context.data_model_manager[type_].from_data(builder, _constant_load(builder, place))


def _read_array(context: Any, builder: Any, type_: types.Array, place: Any) -> Any:
    """Return an array: where it lies, its shape and strides; kernels have no use for its owner."""
    structure = context.get_value_type(type_)
    array = ir.Constant(structure, None)  # all zero
    item = context.get_constant(types.intp, as_dtype(type_.dtype).itemsize)
    array = builder.insert_value(array, _constant_load(builder, _part(builder, place, _ITEMS)), _ITEMS)
    array = builder.insert_value(array, item, _ITEM_SIZE)
    array = builder.insert_value(array, _constant_load(builder, _part(builder, place, DATA)), DATA)
    for part in (_SHAPE, _STRIDES):
        for dimension in range(type_.ndim):
            word = _constant_load(builder, _part(builder, place, part, dimension))
            array = builder.insert_value(array, word, (part, dimension))
    return array


def _part(builder: Any, pointer: Any, *positions: int) -> Any:
    return builder.gep(pointer, [_number(0), *map(_number, positions)], inbounds=True)


def _number(value: int) -> Any:
    return ir.Constant(ir.IntType(32), value)


def _constant_load(builder: Any, place: Any) -> Any:
    """Read memory that stays the same while the kernel runs."""
    found = builder.load(place)
    found.set_metadata("invariant.load", builder.module.add_metadata([]))
    return found


@unbox(StateType)
def _unbox_state(state: StateType, found: Any, c: Any) -> NativeValue:
    """Write the fields of a named tuple into memory of the wrapper around a kernel."""
    pointer = cgutils.alloca_once(c.builder, _layout(c.context.data_model_manager, state))
    failed = cgutils.alloca_once_value(c.builder, cgutils.false_bit)
    _write(state, found, pointer, failed, c)
    return NativeValue(pointer, is_error=c.builder.load(failed))


def _write(state: StateType, found: Any, pointer: Any, failed: Any, c: Any) -> None:
    """Write fields; the types are known to be right, since Numba chose this version of the kernel by them."""
    for position, type_ in enumerate(state.types):
        field = c.pyapi.tuple_getitem(found, position)  # borrowed
        place = _part(c.builder, pointer, position)
        if isinstance(type_, StateType):
            _write(type_, field, place, failed, c)
        elif isinstance(type_, types.Array):
            fault = cgutils.is_not_null(c.builder, _write_array(field, place, c))
            c.builder.store(c.builder.or_(c.builder.load(failed), fault), failed)
        else:
            value = c.unbox(type_, field)
            c.builder.store(c.builder.or_(c.builder.load(failed), value.is_error), failed)
            c.builder.store(c.context.data_model_manager[type_].as_data(c.builder, value.value), place)


def _write_array(found: Any, place: Any, c: Any) -> Any:
    """Write an array's structure, without a reference to its owner: the caller holds it. Return zero if all went well."""
    declared = ir.FunctionType(ir.IntType(32), [c.pyapi.pyobj, c.pyapi.voidptr])
    adapt = cgutils.get_or_insert_function(c.builder.module, declared, "numba_adapt_ndarray")
    return c.builder.call(adapt, [found, c.builder.bitcast(place, c.pyapi.voidptr)])
