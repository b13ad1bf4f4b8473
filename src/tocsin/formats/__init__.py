"""Events in and notifications out: JSON lines, CSV, Parquet, Arrow and CloudEvents."""

from tocsin.formats.event_reader import EventFields, EventReader, Fault
from tocsin.formats.files import EventFile, Format, format_of, open_events

__all__ = ["EventFields", "EventFile", "EventReader", "Fault", "Format", "format_of", "open_events"]
