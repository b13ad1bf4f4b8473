"""Tocsin matches every event against stored subscriptions: filters, sequences of events, and views of tables."""

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
from tocsin.model.version import VERSION

__version__ = VERSION

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
