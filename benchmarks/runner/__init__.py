"""The parts that all benchmarks share: sessions, measurements, tables and plots."""
