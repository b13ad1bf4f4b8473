"""Tocsin matches every event against stored subscriptions: filters, sequences of events, and views of tables."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tocsin.engine import Engine
    from tocsin.language import (
        Template,
        attr,
        check,
        from_json,
        parse,
        stream,
        table,
        to_cnf,
        to_dnf,
        to_json,
        to_normal,
        to_text,
    )
    from tocsin.model import Event, Notification, Subscription, read_event
    from tocsin.model.version import VERSION as __version__  # noqa: N811 - Python asks for this name

__all__ = [
    "Engine",
    "Event",
    "Notification",
    "Subscription",
    "Template",
    "__version__",
    "attr",
    "check",
    "from_json",
    "parse",
    "read_event",
    "stream",
    "table",
    "to_cnf",
    "to_dnf",
    "to_json",
    "to_normal",
    "to_text",
]

_NOT_OF_THE_LANGUAGE: Final = {
    "__version__": ("model.version", "VERSION"),
    "Engine": ("engine", "Engine"),
    **{name: ("model", name) for name in ("Event", "Notification", "Subscription", "read_event")},
}
_PACKAGES: Final = ("engine", "errors", "formats", "language", "matching", "model")


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: the command line begins before anything large is loaded."""
    if name in _PACKAGES:
        return import_module(f"tocsin.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'tocsin' has no attribute '{name}'")
    module, attribute = _NOT_OF_THE_LANGUAGE.get(name, ("language", name))
    found = getattr(import_module(f"tocsin.{module}"), attribute)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
