"""All time lines of an engine: one for each length of tick, and which events reach which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tocsin.engine.book import ALWAYS, Terms
from tocsin.engine.sequences import asks_in_units
from tocsin.engine.timeline import Tell, Timeline
from tocsin.language.template.columns import Column
from tocsin.language.template.template import bindings_at
from tocsin.language.template.binding import bind_query
from tocsin.matching import IdArray
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.model import Event
from tocsin.model import Sequence as SequenceQuery
from tocsin.model.errors import SubscriptionError, TocsinError
from tocsin.model.ticks import StreamTicks, Tick, read_tick
from tocsin.sequences.dependencies import Dependencies
from tocsin.sequences.preparation import prepare
from tocsin.sequences.runner import Prepared, Runner
from tocsin.sequences.standing import RunnerStats, Standing, Viewed
from tocsin.sequences.ticks import Ticks

__all__ = ["Timelines"]
