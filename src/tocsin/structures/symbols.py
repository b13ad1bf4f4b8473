"""A table that gives each symbol a small number, and takes the number back when nobody uses the symbol."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Symbol = TypeVar("Symbol", bound=Hashable)


class SymbolTable(Generic[Symbol]):
    """Symbols by code and codes by symbol, with a count of uses.

    A new symbol has no use; `hold` and `release` count in bulk. One whose last use is released is forgotten
    and its code given again, so the table shrinks with what it is used for. `version` changes whenever a code
    comes to mean something else than before.
    """

    def __init__(self) -> None:
        self.codes: dict[Symbol, int] = {}
        self.version = 0
        self._symbols: list[Symbol | None] = []
        self._uses: NDArray[np.int64] = np.zeros(64, dtype=np.int64)
        self._free: list[int] = []
        self._unused: set[int] = set()

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[tuple[int, Symbol]]:
        return ((code, symbol) for symbol, code in self.codes.items())

    @property
    def top(self) -> int:
        """Return the number above every code ever given."""
        return len(self._symbols)

    def code(self, symbol: Symbol) -> int:
        """Return the symbol's code, a new one if it has none."""
        code = self.codes.get(symbol)
        if code is None:
            if self._free:
                code = self._free.pop()
                self._symbols[code] = symbol
            else:
                code = len(self._symbols)
                self._symbols.append(symbol)
                if code >= len(self._uses):
                    self._uses = np.concatenate([self._uses, np.zeros(len(self._uses), dtype=np.int64)])
            self.codes[symbol] = code
            self._unused.add(code)
            self.version += 1
        return code

    def symbol(self, code: int) -> Symbol:
        """Return what a code stands for."""
        symbol = self._symbols[code]
        if symbol is None:
            raise KeyError(code)
        return symbol

    def is_known(self, code: int) -> bool:
        """Tell whether a code stands for something now."""
        return code < len(self._symbols) and self._symbols[code] is not None

    def is_held(self, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which of these codes have a use."""
        return np.asarray(self._uses[codes] > 0)

    def hold(self, codes: NDArray[np.int64]) -> None:
        """Count one use of each of these codes."""
        if len(codes):
            np.add.at(self._uses, codes, 1)
            if self._unused:
                self._unused.difference_update(codes.tolist())

    def release(self, codes: NDArray[np.int64]) -> list[Symbol]:
        """Take back one use of each of these codes; return the symbols that are forgotten."""
        if not len(codes):
            return []
        np.subtract.at(self._uses, codes, 1)
        ended = np.unique(codes[self._uses[codes] == 0])
        return [self._forget(code) for code in ended.tolist()]

    def forget_unused(self) -> None:
        """Forget the symbols that were given a code and then never held."""
        for code in self._unused:
            self._forget(code)
        self._unused.clear()

    def restore(self, symbols: list[Symbol | None], uses: NDArray[np.int64]) -> None:
        """Take the place of another table, given by its symbols in the order of their codes."""
        self._symbols = list(symbols)
        self._uses = np.zeros(max(64, len(symbols)), dtype=np.int64)
        self._uses[: len(symbols)] = uses[: len(symbols)]
        codes: dict[Symbol | None, int] = dict(zip(symbols, range(len(symbols)), strict=True))
        self._free = self._gaps() if codes.pop(None, None) is not None else []
        self.codes = codes
        self._unused = set()
        self.version += 1

    def copy(self) -> SymbolTable[Symbol]:
        """Return a table of the same symbols and codes, none of them in use."""
        table: SymbolTable[Symbol] = SymbolTable()
        table.restore(self._symbols, np.zeros(self.top, dtype=np.int64))
        table._unused = set(self.codes.values())
        return table

    def agrees_with(self, other: SymbolTable[Symbol]) -> bool:
        """Tell whether no symbol and no code would mean two things if the other table were taken in."""
        return all(
            self.codes[symbol] == code if symbol in self.codes else not self.is_known(code)
            for symbol, code in other.codes.items()
        )

    def take_in(self, other: SymbolTable[Symbol]) -> None:
        """Add the symbols of a table that this one agrees with, under the same codes and with their uses."""
        more = other.top - self.top
        self._symbols += [None] * more
        if other.top > len(self._uses):
            self._uses = np.concatenate([self._uses, np.zeros(other.top, dtype=np.int64)])
        for symbol, code in other.codes.items():
            self._symbols[code] = symbol
            self.codes[symbol] = code
        self._uses[: other.top] += other._uses[: other.top]
        self._unused -= set(other.codes.values())
        self._free = self._gaps()
        self.version += 1

    def contents(self) -> tuple[list[Symbol | None], NDArray[np.int64]]:
        """Return what `restore` takes."""
        self.forget_unused()
        return list(self._symbols), self._uses[: len(self._symbols)].copy()

    def _forget(self, code: int) -> Symbol:
        symbol = self.symbol(code)
        del self.codes[symbol]
        self._symbols[code] = None
        self._free.append(code)
        self.version += 1
        return symbol

    def _gaps(self) -> list[int]:
        return [code for code, symbol in enumerate(self._symbols) if symbol is None]
