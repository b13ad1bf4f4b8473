"""Names of attributes, and the aliases before them."""

from __future__ import annotations

from sys import intern

from tocsin.language.parsing.cursor import Cursor, closest
from tocsin.language.parsing.foreign import EVENT_BEFORE, PREVIOUS
from tocsin.language.parsing.tokens import NAME, QUOTED
from tocsin.model import terms


def attribute(cursor: Cursor) -> terms.Attribute:
    """Read an attribute's name, and resolve its alias."""
    at = cursor.at
    parts = _name_parts(cursor, at)
    cursor.at += 1
    while cursor.words[cursor.at] == "." and cursor.kinds[cursor.at + 1] in (NAME, QUOTED):
        parts += _name_parts(cursor, cursor.at + 1)
        cursor.at += 2
    return _resolve(cursor, parts, at)


def _name_parts(cursor: Cursor, at: int) -> list[str]:
    """Return the parts of the name at token `at`; one token may contain several dots, a quoted one is a single part."""
    return [cursor.unquote(at)] if cursor.kinds[at] == QUOTED else cursor.texts[at].split(".")


def _resolve(cursor: Cursor, parts: list[str], at: int) -> terms.Attribute:
    """Return the attribute of a dotted name: its first part is an alias if the scope knows it as one."""
    scope = cursor.scope
    head = parts[0]
    if len(parts) > 1:
        rest = ".".join(parts[1:])
        if head == scope.single:
            return terms.Attribute(rest)
        if head in scope.aliases:
            return terms.Attribute(rest, head)
        if scope.sequence and head.lower() == "last":
            if not scope.last:
                raise cursor.fail(
                    f"`last.{rest}` is allowed in the `on`, `while` and `compute` of a fold only", at=at
                )
            return terms.Attribute(rest, "last")
        if scope.joined or (scope.sequence and scope.aliases):
            raise _unknown_alias(cursor, head, at)
        if head in scope.unnamed:
            raise cursor.fail(
                f"the events of `{head}` have no alias here",
                at=at,
                suggestion=f"give them one, such as `{head} a`, and write `a.{rest}`",
            )
        if scope.single is not None and head.lower() in (scope.single.lower(), (scope.renamed or "").lower()):
            cursor.warnings.append(
                f"`{head}.{rest}` is an attribute of that name; the alias is written `{scope.single}`"
            )
    elif scope.joined:
        raise cursor.fail(
            f"`{head}` needs the alias of its table",
            at=at,
            expected=tuple(f"`{alias}.{head}`" for alias in scope.aliases),
        )
    elif scope.bare is not None:
        scope.bare.setdefault(head, at)
    # A million subscriptions name few attributes, so they share interned strings.
    return terms.Attribute(intern(".".join(parts)))


def _unknown_alias(cursor: Cursor, head: str, at: int) -> Exception:
    """Return the error for an unknown alias."""
    scope = cursor.scope
    near = closest(head, scope.aliases, 0.5)
    hint = f"did you mean `{near}`?" if near else EVENT_BEFORE if head.lower() in PREVIOUS else None
    known = ", ".join(f"`{a}`" for a in scope.aliases)
    nested = "" if scope.joined else "; a nested attribute is written with its alias before it"
    return cursor.fail(
        f"there is no alias `{head}` here; known so far: {known}{nested}",
        at=at,
        suggestion=hint,
    )
