"""The hot loops of BE-Tree."""
