"""The errors that Tocsin raises on purpose: `TocsinError` and its kinds."""

from __future__ import annotations

from unicodedata import east_asian_width

_WINDOW = 100  # characters; of a longer line only a window around the fault is shown


class TocsinError(Exception):
    """The base of all errors that Tocsin raises on purpose; they can be pickled, as Spark's workers need."""

    def __str__(self) -> str:
        return printable(self._message())

    def _message(self) -> str:
        """Return the text of the error, which may quote anything."""
        return super().__str__()

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self.args, self.__dict__)


def printable(text: str) -> str:
    """Return a text that can be written as UTF-8: half of a surrogate pair becomes its escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class LanguageError(TocsinError):
    """A subscription's text cannot be read.

    `line` and `column` count from 1. `expected` lists the tokens that are allowed there. `suggestion` is the
    nearest known name, or a rewording that works. `str()` shows all of it, with a caret under the text.
    """

    def __init__(
        self,
        reason: str,
        *,
        text: str,
        offset: int,
        length: int = 1,
        expected: tuple[str, ...] = (),
        suggestion: str | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.text = text
        self.offset = offset
        self.length = max(length, 1)
        self.expected = expected
        self.suggestion = suggestion
        before = text[:offset]
        self.line = before.count("\n") + 1
        self.column = offset - (before.rfind("\n") + 1) + 1

    def _message(self) -> str:
        return f"line {self.line}, column {self.column}: {self.reason}\n{self.details()}"

    def details(self) -> str:
        """Return the text with carets under the fault, the expected tokens, and the suggestion."""
        parts = [self._picture()]
        if self.expected:
            parts.append(f"expected {_one_of(self.expected)}")
        if self.suggestion:
            parts.append(self.suggestion)
        return printable("\n".join(parts))

    def _picture(self) -> str:
        """Return the faulty line with carets under the fault, cut to a window if it is long."""
        line = self.text.split("\n")[self.line - 1].rstrip("\r")
        at = self.column - 1
        length = max(1, min(self.length, len(line) - at))
        first = max(0, at - _WINDOW // 2) if len(line) > _WINDOW else 0
        last = first + _WINDOW
        shown = line[first:last]
        lead, tail = ("…" if first else ""), ("…" if last < len(line) else "")
        padding = "".join("\t" if c == "\t" else " " * _width(c) for c in lead + line[first:at])
        carets = "^" * max(1, sum(_width(c) for c in line[at : min(at + length, last)]))
        return f"    {lead}{shown}{tail}\n    {padding}{carets}"


class _PathError(TocsinError):
    """An error with the path to its fault, or an empty path."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason, path)
        self.reason = reason
        self.path = path


class FormError(_PathError):
    """A subscription's JSON form cannot be read; `path` leads to the fault, from `$`."""

    def __init__(self, reason: str, path: str = "$") -> None:
        super().__init__(reason, path)

    def _message(self) -> str:
        return f"{self.reason} - at `{self.path}`"


class NormalFormError(TocsinError):
    """A condition's normal form is larger than `limit`, which the parameter `setting` sets."""

    def __init__(self, reason: str, *, setting: str, limit: int) -> None:
        super().__init__(reason)
        self.setting = setting
        self.limit = limit


class TemplateError(TocsinError):
    """A row does not fit its template; `row` counts from 0, and is None if no single row is at fault."""

    def __init__(self, reason: str, *, row: int | None = None, parameter: str | None = None) -> None:
        super().__init__(reason, row, parameter)
        self.reason = reason
        self.row = row
        self.parameter = parameter

    def _message(self) -> str:
        location = [] if self.row is None else [f"row {self.row}"]
        if self.parameter is not None:
            location.append(f"parameter `:{self.parameter}`")
        return f"{', '.join(location)}: {self.reason}" if location else self.reason


class EventError(_PathError):
    """An event is refused; `path` names the attribute at fault, or is empty."""

    def _message(self) -> str:
        return f"attribute `{self.path}`: {self.reason}" if self.path else self.reason


class KindError(TocsinError):
    """A value is neither a number, a string, a boolean nor a timestamp."""


class SubscriptionError(TocsinError):
    """A subscription is unknown, is given twice, or needs something that the engine cannot do; `id` names it."""

    def __init__(self, reason: str, id: str | None = None) -> None:
        super().__init__(reason, id)
        self.reason = reason
        self.id = id

    def _message(self) -> str:
        return f"subscription `{self.id}`: {self.reason}" if self.id is not None else self.reason


class ApplyError(TocsinError):
    """A set of subscriptions could not be applied, and nothing was changed; `errors` holds the reasons."""

    def __init__(self, errors: tuple[SubscriptionError, ...]) -> None:
        super().__init__(errors)
        self.errors = errors

    def _message(self) -> str:
        count = len(self.errors)
        return "\n".join(
            [
                f"nothing was applied: {count} subscription{'s are' if count > 1 else ' is'} at fault",
                *map(str, self.errors),
            ]
        )


class MatcherError(TocsinError):
    """A matcher is unknown, or does not support the request."""


class SavedError(_PathError):
    """Saved state cannot be opened, or cannot be written; `path` names the folder or file at fault."""

    def _message(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


class SavedMatcherError(SavedError):
    """A matcher cannot be opened or saved."""


class SavedIndexError(SavedError):
    """An index of subscriptions cannot be opened, read or changed."""


class SavedStatisticsError(SavedError):
    """Saved statistics of events cannot be read."""


class SparkError(TocsinError):
    """A package that Spark needs is missing, or a Spark job does not support the request."""


def _restore(kind: type[TocsinError], args: tuple[object, ...], state: dict[str, object]) -> TocsinError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


def _one_of(choices: tuple[str, ...]) -> str:
    return choices[0] if len(choices) == 1 else f"{', '.join(choices[:-1])} or {choices[-1]}"


def _width(character: str) -> int:
    return 2 if east_asian_width(character) in "WF" else 1
