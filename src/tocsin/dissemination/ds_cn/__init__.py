"""DS-CN's distributed server: the owner of the zone of (x, x) stores the rows at x, and knows the next owners on both sides."""
