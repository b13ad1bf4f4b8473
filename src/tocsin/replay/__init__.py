"""A matcher measured on files that other systems can read, too."""
