"""The subscriptions of all families as they were added, from which a family can be built again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from tocsin.language.template.columns import Column
from tocsin.matching import IdArray
from tocsin.views.catalog import TableCatalog
from tocsin.views.compiled import CompiledView
from tocsin.views.family import Family, new_family


class Addition(Struct, frozen=True, eq=False):
    """One call of `add`. Some of its numbers may have been removed since."""

    family: Any  # the key of its family
    numbers: IdArray
    compiled: CompiledView
    columns: Mapping[str, Column]


class Additions:
    """The addition of each number that has not been removed."""

    def __init__(self) -> None:
        self._by_number: dict[int, Addition] = {}

    def __len__(self) -> int:
        return len(self._by_number)

    def __contains__(self, number: object) -> bool:
        return number in self._by_number

    @property
    def numbers(self) -> IdArray:
        """Return all numbers."""
        return np.fromiter(self._by_number, dtype=np.int64, count=len(self._by_number))

    def record(self, addition: Addition) -> None:
        """Record an addition."""
        self._by_number.update(dict.fromkeys(addition.numbers.tolist(), addition))

    def pop(self, number: int) -> Any:
        """Forget a number, and return the key of its family; None if it is unknown."""
        addition = self._by_number.pop(number, None)
        return None if addition is None else addition.family

    def family(self, number: int) -> Any:
        """Return the key of a number's family."""
        return self._by_number[number].family

    def by_family(self) -> dict[Any, list[Addition]]:
        """Return the additions of each family, in the order they came."""
        found: dict[Any, list[Addition]] = {}
        for addition in {id(one): one for one in self._by_number.values()}.values():
            found.setdefault(addition.family, []).append(addition)
        return found

    def build(
        self, additions: Sequence[Addition], tables: TableCatalog, matcher: str | None
    ) -> tuple[Family, list[int]]:
        """Return a family over the rows of these tables with what is left of some additions, and the numbers of that.

        Raises `EventError` if a row cannot be read.
        """
        family, numbers = new_family(additions[0].compiled, matcher), list[int]()
        family.load(tables.contents(family.tables))
        for one in additions:
            kept = [self._by_number.get(number) is one for number in one.numbers.tolist()]
            columns = {name: column[kept] for name, column in one.columns.items()}
            family.add(one.numbers[kept], one.compiled, columns)
            numbers += one.numbers[kept].tolist()
        return family, numbers
