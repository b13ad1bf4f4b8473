"""Measurements: each prints a table, writes JSON, and compares within one run, because machines are noisy."""

from tocsin.bench.report import Measurement, Report

__all__ = ["Measurement", "Report"]
