"""Tocsin on Spark: the same questions over streams and histories that outgrow one process."""
