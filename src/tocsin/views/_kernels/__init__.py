"""The hot loops of views."""
