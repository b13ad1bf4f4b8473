"""The hot loops of sequences."""
