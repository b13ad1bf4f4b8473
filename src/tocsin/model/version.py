"""The version of this code."""

__all__ = ["VERSION"]

VERSION = "0.1.0"
