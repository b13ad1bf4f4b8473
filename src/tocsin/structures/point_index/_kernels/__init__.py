"""The hot loops of the point index."""
