"""The physical network: nodes and links, shortest paths, and link loads."""
