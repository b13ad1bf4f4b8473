"""Normal forms: negation normal form, disjunctive and conjunctive normal form, simplified.

A normal form is true for exactly the events for which its condition is true: no simplification turns an
unknown into a truth.
"""

from tocsin.language.normal.forms import (
    Cnf,
    Dnf,
    dnf_unless_cnf_is_smaller,
    dnf_unless_too_large,
    never_reasons,
    to_cnf,
    to_dnf,
    to_normal,
)
from tocsin.language.normal.negation import to_nnf
from tocsin.language.normal.partial import partly_distributed

__all__ = [
    "Cnf",
    "Dnf",
    "dnf_unless_cnf_is_smaller",
    "dnf_unless_too_large",
    "never_reasons",
    "partly_distributed",
    "to_cnf",
    "to_dnf",
    "to_nnf",
    "to_normal",
]
