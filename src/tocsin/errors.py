"""The errors Tocsin raises: `TocsinError` and its kinds."""

from tocsin.model.errors import (
    ApplyError,
    EventError,
    FormError,
    KindError,
    LanguageError,
    MatcherError,
    NormalFormError,
    SavedError,
    SavedIndexError,
    SavedMatcherError,
    SavedStatisticsError,
    SparkError,
    SubscriptionError,
    TemplateError,
    TocsinError,
)

__all__ = [
    "ApplyError",
    "EventError",
    "FormError",
    "KindError",
    "LanguageError",
    "MatcherError",
    "NormalFormError",
    "SavedError",
    "SavedIndexError",
    "SavedMatcherError",
    "SavedStatisticsError",
    "SparkError",
    "SubscriptionError",
    "TemplateError",
    "TocsinError",
]
