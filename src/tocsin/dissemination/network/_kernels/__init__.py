"""Compiled searches of the network."""
