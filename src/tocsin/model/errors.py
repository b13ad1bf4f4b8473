"""What can go wrong, as one family: every error Tocsin raises on purpose is a `TocsinError`."""

from __future__ import annotations

from unicodedata import east_asian_width

_WINDOW = 100  # a longer line is shown as a window around the fault


class TocsinError(Exception):
    """The base of all errors that Tocsin raises on purpose."""


class LanguageError(TocsinError):
    """A subscription's text cannot be read.

    `line` and `column` count from 1; `expected` lists what could have stood there, `suggestion` is the
    known name nearest to what was written, or a rewording that works. `str()` shows all of it, with a
    caret under the text.
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

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.reason}\n{self.details()}"

    def details(self) -> str:
        """Return the text with carets under the fault, what was expected, and the suggestion."""
        parts = [self._picture()]
        if self.expected:
            parts.append(f"expected {_one_of(self.expected)}")
        if self.suggestion:
            parts.append(self.suggestion)
        return "\n".join(parts)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_language_error, (
            type(self),
            self.reason,
            {
                "text": self.text,
                "offset": self.offset,
                "length": self.length,
                "expected": self.expected,
                "suggestion": self.suggestion,
            },
        )

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


class FormError(TocsinError):
    """A subscription's JSON form cannot be read; `path` leads to the fault, from `$`."""

    def __init__(self, reason: str, path: str = "$") -> None:
        super().__init__(reason, path)
        self.reason = reason
        self.path = path

    def __str__(self) -> str:
        return f"{self.reason} - at `{self.path}`"


class NormalFormError(TocsinError):
    """A condition's normal form would be larger than the limit that `limit` and `setting` name."""

    def __init__(self, reason: str, *, setting: str, limit: int) -> None:
        super().__init__(reason)
        self.setting = setting
        self.limit = limit

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_normal_form_error, (str(self), self.setting, self.limit)


class TemplateError(TocsinError):
    """A row does not fit its template; `row` counts from 0 and is None where no single row is at fault."""

    def __init__(self, reason: str, *, row: int | None = None, parameter: str | None = None) -> None:
        super().__init__(reason, row, parameter)
        self.reason = reason
        self.row = row
        self.parameter = parameter

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_template_error, (self.reason, self.row, self.parameter)

    def __str__(self) -> str:
        place = [] if self.row is None else [f"row {self.row}"]
        if self.parameter is not None:
            place.append(f"parameter `:{self.parameter}`")
        return f"{', '.join(place)}: {self.reason}" if place else self.reason


class EventError(TocsinError):
    """An event is refused at the door; `path` names the attribute at fault, or is empty."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason, path)
        self.reason = reason
        self.path = path

    def __str__(self) -> str:
        return f"attribute `{self.path}`: {self.reason}" if self.path else self.reason


class KindError(TocsinError):
    """A value is of no kind that Tocsin keeps: not a number, string, boolean or timestamp."""


class SubscriptionError(TocsinError):
    """A subscription is unknown, given twice, or asks for what the engine does not do; `id` names it."""

    def __init__(self, reason: str, id: str | None = None) -> None:
        super().__init__(reason, id)
        self.reason = reason
        self.id = id

    def __str__(self) -> str:
        return f"subscription `{self.id}`: {self.reason}" if self.id is not None else self.reason


class ApplyError(TocsinError):
    """A set of subscriptions could not be applied, and nothing was changed; `errors` says why of each."""

    def __init__(self, errors: tuple[SubscriptionError, ...]) -> None:
        super().__init__(errors)
        self.errors = errors

    def __str__(self) -> str:
        count = len(self.errors)
        return "\n".join(
            [
                f"nothing was applied: {count} subscription{'s are' if count > 1 else ' is'} at fault",
                *map(str, self.errors),
            ]
        )


class MatcherError(TocsinError):
    """A matcher is unknown, or was asked for what it cannot do."""


class SavedError(TocsinError):
    """What was saved cannot be opened, or nothing can be saved there; `path` names the folder or file at fault."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason, path)
        self.reason = reason
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


class SavedMatcherError(SavedError):
    """A saved matcher cannot be opened, or no matcher can be saved there."""


class SavedIndexError(SavedError):
    """An index of subscriptions cannot be opened, read or changed."""


class SavedStatisticsError(SavedError):
    """Saved statistics of events cannot be read."""


class SparkError(TocsinError):
    """What Spark needs is not there, or a Spark job was asked for something it cannot do."""


def _rebuild_language_error(kind: type[LanguageError], reason: str, rest: dict[str, object]) -> LanguageError:
    return kind(reason, **rest)  # type: ignore[arg-type]


def _rebuild_normal_form_error(reason: str, setting: str, limit: int) -> NormalFormError:
    return NormalFormError(reason, setting=setting, limit=limit)


def _rebuild_template_error(reason: str, row: int | None, parameter: str | None) -> TemplateError:
    return TemplateError(reason, row=row, parameter=parameter)


def _one_of(choices: tuple[str, ...]) -> str:
    return choices[0] if len(choices) == 1 else f"{', '.join(choices[:-1])} or {choices[-1]}"


def _width(character: str) -> int:
    return 2 if east_asian_width(character) in "WF" else 1
