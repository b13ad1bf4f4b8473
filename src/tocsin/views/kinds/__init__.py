"""The kinds of view that a range of one attribute decides, one module each."""
