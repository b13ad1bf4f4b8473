"""The command line: `tocsin …`."""

from tocsin.cli.app import main

__all__ = ["main"]
