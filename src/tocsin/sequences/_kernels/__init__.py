"""The kernels of sequences."""
