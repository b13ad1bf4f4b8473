"""The engine: subscribe, publish, and hear what was asked for."""

from tocsin.engine.clock import Clock, EventClock, ManualClock, SystemClock
from tocsin.engine.engine import Engine
from tocsin.engine.results import (
    Difference,
    EngineStats,
    EventExplanation,
    NamedMatches,
    Subscribed,
    SubscribedMany,
    Trial,
)

__all__ = [
    "Clock",
    "Difference",
    "Engine",
    "EngineStats",
    "EventClock",
    "EventExplanation",
    "ManualClock",
    "NamedMatches",
    "Subscribed",
    "SubscribedMany",
    "SystemClock",
    "Trial",
]
