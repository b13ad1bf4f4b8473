"""The five templates of the technical benchmark, as texts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

_ALIASES: Final = "abcdefghijklmnopqrstuvwxyz"


class Step(Struct, frozen=True):
    """The attributes that a step's formula is over, the primary one first."""

    alias: str
    equal: tuple[str, ...]
    unequal: tuple[str, ...]
    compared: str

    @classmethod
    def of(cls, number: int, equal: NDArray[np.int32], unequal: NDArray[np.int32], compared: int) -> Step:
        """Return a step by its number and those of its attributes."""
        discrete = tuple(f"d{attribute + 1}" for attribute in equal.tolist())
        continuous = tuple(f"c{attribute + 1}" for attribute in unequal.tolist())
        return cls(_ALIASES[number], discrete, continuous, f"c{compared + 1}")

    def parameter(self, attribute: str, bound: str = "") -> str:
        """Return the name of a predicate's parameter."""
        return "_".join(filter(None, (self.alias, attribute, bound)))

    def primary(self) -> str:
        """Return the primary predicate."""
        return f"{self.alias}.{self.equal[0]} = :p"

    def formula(self) -> str:
        """Return the equalities and the inequalities."""
        equal = [f"{self.alias}.{name} = :{self.parameter(name)}" for name in self.equal[1:]]
        unequal = [
            f"{self.alias}.{name} between :{self.parameter(name, 'low')} and :{self.parameter(name, 'high')}"
            for name in self.unequal
        ]
        return " and ".join([self.primary(), *equal, *unequal])


def write(
    kind: str, stream: str, steps: Sequence[Step], *, duration: int, rise: float, summed: Sequence[str]
) -> str:
    """Return a template's text: one of the five kinds, over these steps of a stream; `summed` are attributes."""
    first = steps[0]
    parts = [f"from {stream} {first.alias} where {first.formula()}"]
    has_sums = kind == "NonDeterministicAgg"
    if has_sums:
        parts.append("compute " + ", ".join(f"sum_{name} = {first.alias}.{name}" for name in summed))
    for before, step in pairwise(steps):
        until = f"duration <= {duration} and {step.primary()}"
        if kind in ("LinearStat", "LinearDyn"):
            parts.append(f"next {stream} {step.alias}")
        elif kind == "Filter":
            parts.append(f"next {stream} {step.alias} on {until}")
        else:
            parts.append(f"fold {stream} {step.alias} on {until}")
        if has_sums:
            added = (f"sum_{name} = last.sum_{name} + {step.alias}.{name}" for name in summed)
            parts.append("compute " + ", ".join(added))
        parts.append(f"where {step.formula()}")
        if kind == "LinearDyn":
            name = step.compared
            parts.append(f"and {step.alias}.{name} > {rise} * {before.alias}.{name}")
    return " ".join(parts)
