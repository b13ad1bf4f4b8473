"""`python -m tocsin`, the same as `tocsin`."""

from tocsin.cli import main

main()
