"""Hierarchical multicast: coordinates, clusters of clusters, and a tree for each set of children."""
