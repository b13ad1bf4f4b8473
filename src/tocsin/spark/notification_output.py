"""Output of notifications: printable columns, and Parquet files."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, functions

from tocsin.model.errors import SparkError


def printable(notes: DataFrame) -> DataFrame:
    """Return a DataFrame with times as strings: Python has no year 10000, and would read them as local times."""
    columns = []
    for name, kind in notes.dtypes:
        column = functions.col(f"`{name.replace('`', '``')}`")
        if kind == "timestamp":
            moment = functions.to_utc_timestamp(column, functions.current_timezone())
            text = functions.date_format(moment, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'")
            column = functions.regexp_replace(text, r"\.?0+Z$", "Z").alias(name)
        elif kind in ("date", "timestamp_ntz"):
            column = column.cast("string").alias(name)
        columns.append(column)
    return notes.select(*columns)


def write_parquet(frame: DataFrame, folder: str) -> None:
    """Write a DataFrame to a folder that is not there yet, or raise `SparkError`."""
    try:
        frame.write.mode("errorifexists").parquet(folder)
    except AnalysisException as fault:
        raise SparkError(f"{folder} cannot be written: {str(fault).partition(chr(10))[0]}") from None
