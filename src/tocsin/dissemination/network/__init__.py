"""The network underneath: nodes and links, shortest paths, and what each link carries."""
