"""AMKH's compiled loops."""
