"""The six strategies, a module each."""
