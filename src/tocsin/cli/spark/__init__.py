"""`tocsin spark`: the same questions over streams and histories that outgrow a machine."""

from tocsin.cli.spark.app import app

__all__ = ["app"]
