"""The errors Tocsin raises: `TocsinError` and its kinds."""

from tocsin.model.errors import (
    EventError,
    FormError,
    KindError,
    LanguageError,
    MatcherError,
    NormalFormError,
    TemplateError,
    TocsinError,
)

__all__ = [
    "EventError",
    "FormError",
    "KindError",
    "LanguageError",
    "MatcherError",
    "NormalFormError",
    "TemplateError",
    "TocsinError",
]
