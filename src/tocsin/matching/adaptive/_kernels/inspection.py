"""Reading predicates and their probabilities, for plans that a user reads.

No event needs this, so that it is compiled where somebody looks at a plan, and not before.
"""

from __future__ import annotations

from tocsin.matching.adaptive._kernels.expectations import expected
from tocsin.matching.adaptive._kernels.predicates import decode
from tocsin.matching.adaptive.state import State
from tocsin.matching.conjunction_store.state import Expressions
from tocsin.structures.array_types import Float64s, Int64s
from tocsin.structures.jit import kernel


@kernel
def inspect(state: State, codes: Int64s, into: Expressions, chances: Float64s) -> None:
    """Write the predicates with these codes as they were encoded, and the probability of each."""
    for i in range(codes.shape[0]):
        decode(state, codes[i], into, i)
        chances[i] = expected(state, codes[i])
