"""Normal forms: negation normal form, disjunctive and conjunctive normal form, simplified.

A normal form is true for exactly the events for which its condition is true: no simplification turns an
unknown into a truth.
"""

from tocsin.language.normal.forms import Cnf, Dnf, dnf_unless_cnf_is_smaller, to_cnf, to_dnf, to_normal
from tocsin.language.normal.negation import to_nnf

__all__ = ["Cnf", "Dnf", "dnf_unless_cnf_is_smaller", "to_cnf", "to_dnf", "to_nnf", "to_normal"]
