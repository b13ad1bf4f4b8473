"""States by address: a kernel gets one array of words instead of dozens of arrays.

Python hands an array to a compiled function in 0.16 µs, so a state of 70 arrays costs 11 µs before the kernel begins. A
kernel that is called for every single event takes the *address* of its state: the words of Numba's array structures, one
behind the other. They are written when the state changes, and `load` reads them back as the state. The code that follows
is the same as for a state that was handed over array by array.

A kernel compiles for the types of its arguments, so each kind of state has an address class of its own, with a name of
its own: Numba remembers the types of arguments by the class's name, and looks twice where two share one.

    class TreeStateAddress(NamedTuple):
        words: NDArray[np.int64]
"""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar
from weakref import WeakValueDictionary

import numba
import numpy as np
from numba.extending import intrinsic
from numpy.typing import NDArray

from tocsin.structures.interpreted_kernels import interpret_as
from tocsin.structures.state_types import DATA, read_field

State = TypeVar("State", bound=tuple[Any, ...])

_TYPES: Final[dict[type, Any]] = {}  # by address class: Numba's type of the state
_LAYOUTS: Final[dict[type, list[tuple[Any, int]]]] = {}  # and the dtype and dimensions of each array
_holders: Final[WeakValueDictionary[int, Addressed[Any]]] = WeakValueDictionary()  # by the id of the words
_BEFORE: Final = 5  # words of an array before its shape: two unused pointers, items, bytes of an item, data


class Addressed(Generic[State]):
    """The address of a state that is replaced from time to time; arrays that stay are not written again.

    The address does not keep the arrays alive: this object does, until it is asked for that of the next state.
    """

    def __init__(self, address_class: type[Any]) -> None:
        self._class = address_class
        self.state: State | None = None  # the last one
        self._arrays: list[NDArray[Any]] = []
        self.current: Any = None  # its address

    def address(self, state: State) -> Any:
        """Return the address of a state, valid until the next call."""
        if state is not self.state:
            self._write(state)
            self.state = state
        return self.current

    def _write(self, state: State) -> None:
        if numba.config.DISABLE_JIT:
            self.current = state
            return
        arrays: list[NDArray[Any]] = []
        _collect(state, arrays)
        if self.current is None or len(arrays) != len(self._arrays):
            if self._class not in _TYPES:
                _TYPES[self._class] = numba.typeof(state)
                _LAYOUTS[self._class] = [(array.dtype, array.ndim) for array in arrays]
            self.current = self._class(np.zeros(sum(map(_size, arrays)), dtype=np.int64))
            _holders[id(self.current.words)] = self
            self._arrays = [_NONE] * len(arrays)
        place, words = 0, self.current.words
        for before, array, layout in zip(self._arrays, arrays, _LAYOUTS[self._class], strict=True):
            end = place + _size(array)
            if array is not before:
                # The kernel is compiled for one layout, and would not notice another.
                if not array.flags.carray or (array.dtype, array.ndim) != layout:
                    raise TypeError(
                        f"an array of {array.dtype} is not one of {layout[0]} that can be written"
                    )
                data = array.__array_interface__["data"][0]
                words[place:end] = (0, 0, array.size, array.itemsize, data, *array.shape, *array.strides)
            place = end
        self._arrays = arrays


_NONE: Final = np.empty(0)


def _size(array: NDArray[Any]) -> int:
    return _BEFORE + 2 * array.ndim


def _collect(state: tuple[Any, ...], arrays: list[NDArray[Any]]) -> None:
    for one in state:
        if isinstance(one, tuple):
            _collect(one, arrays)
        else:
            arrays.append(one)


if numba.config.DISABLE_JIT:

    def load(address: Any) -> Any:
        """Return the state itself: without compilation it has no address."""
        return address

else:

    @intrinsic
    def load(_: Any, address: Any) -> Any:
        """Return the state at an address."""
        state = _TYPES[address.instance_class]

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            words = read_field(context, builder, signature.args[0], arguments[0], "words")
            data = builder.extract_value(words, DATA)
            return builder.bitcast(data, context.get_value_type(state))

        return state(address), codegen

    interpret_as(load, lambda address: _holders[id(address.words)].state)
