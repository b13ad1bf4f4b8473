"""`tocsin spark`: matching streams and histories that are too large for one process."""

from tocsin.cli.spark.app import app

__all__ = ["app"]
