"""Kernels of the adaptive matcher."""
