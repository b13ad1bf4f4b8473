"""The hot loops of k-index."""
