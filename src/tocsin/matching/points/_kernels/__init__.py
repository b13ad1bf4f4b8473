"""The hot loops of the matcher `points`."""
