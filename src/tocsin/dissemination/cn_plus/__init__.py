"""CN+'s state: every subscription stores one row, its minimum."""
