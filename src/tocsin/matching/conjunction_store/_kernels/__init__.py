"""Kernels of the conjunction store."""
