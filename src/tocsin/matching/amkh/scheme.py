"""The scheme of hashing: the clauses of a subscription that are hashed, and how (the G and B of AMKH, section 2)."""

from __future__ import annotations

from collections.abc import Hashable
from enum import IntEnum

from msgspec import Struct

from tocsin.model.errors import MatcherError

ALL_CLASSES = 0
"""As many classes as there are clauses: B above any id, so that nothing is folded."""


class Hashing(IntEnum):
    """The clauses of an attribute that are hashed."""

    NOTHING = 0
    EQUALITIES = 1
    EVERYTHING = 2  # equalities by their ids, other clauses by their classes


class Scheme(Struct, frozen=True):
    """The attributes that are hashed, and how.

    Equality-only attributes always are. `general` names the general ones that are, the most worthwhile first; None
    is all of them, as in MKH. Clauses other than equalities are folded into `classes` classes each.

    The paper hashes all of a subscription's clauses on these attributes, and nothing of other general attributes.
    With a `width`, only so many of its clauses are hashed, those that fewest events satisfy; with `equalities`,
    the equalities on other general attributes are hashed too.
    """

    general: tuple[Hashable, ...] | None = ()
    classes: int = 2
    width: int | None = None
    equalities: bool = False

    def __post_init__(self) -> None:
        if self.classes < 2 and self.classes != ALL_CLASSES:
            raise MatcherError(f"clauses are folded into 2 classes or more, not {self.classes}")
        if self.width is not None and self.width < 1:
            raise MatcherError(f"a subscription has at least 1 hashed clause, not {self.width}")

    def hashing(self, attribute: Hashable, *, equality_only: bool) -> Hashing:
        """Return which clauses of an attribute are hashed."""
        if self.general is None or attribute in self.general:
            return Hashing.EVERYTHING
        return Hashing.EQUALITIES if equality_only or self.equalities else Hashing.NOTHING

    @property
    def name(self) -> str:
        """Return the scheme as the paper writes it.

        >>> Scheme(("price",), 2).name, Scheme().name, Scheme(None, ALL_CLASSES).name
        ('AMKH(1,2)', 'AMKH(0,-)', 'MKH')
        """
        if self.general is None and self.classes == ALL_CLASSES:
            return "MKH"
        if self.general == ():
            return "AMKH(0,-)"
        count = "all" if self.general is None else len(self.general)
        return f"AMKH({count},{self.classes or '∞'})"
