"""Normal forms: negations at the leaves, conditions as a disjunction or a conjunction, simplified.

No simplification turns an unknown into a truth: a normal form holds for exactly the events that the
condition it was made of holds for.
"""

from tocsin.language.normal.choice import dnf_unless_far, to_normal
from tocsin.language.normal.forms import Cnf, Dnf, to_cnf, to_dnf
from tocsin.language.normal.negation import to_nnf

__all__ = ["Cnf", "Dnf", "dnf_unless_far", "to_cnf", "to_dnf", "to_nnf", "to_normal"]
