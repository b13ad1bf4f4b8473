"""OpIndex's hot loops."""
