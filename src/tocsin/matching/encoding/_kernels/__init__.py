"""The compiled loops of encoding."""
