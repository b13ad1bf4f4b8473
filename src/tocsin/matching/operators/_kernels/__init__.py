"""Kernels of the operators' indexes."""
