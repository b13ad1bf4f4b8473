"""Events in and notifications out: JSON lines, CSV, Parquet, Arrow and CloudEvents."""

from tocsin.formats.files import EventFile, Format, format_of, open_events
from tocsin.formats.reader import EventFields, EventReader, Fault

__all__ = ["EventFields", "EventFile", "EventReader", "Fault", "Format", "format_of", "open_events"]
