"""The engine and the command line, as their users meet them."""
