"""Benchmarks of Tocsin, one package for each paper: `python -m benchmarks` lists and runs them."""
