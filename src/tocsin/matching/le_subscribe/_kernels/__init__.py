"""The compiled loops of Le Subscribe."""
