"""What people look at: short texts, trees, and HTML for notebooks; without words of the domain, and without a terminal."""
