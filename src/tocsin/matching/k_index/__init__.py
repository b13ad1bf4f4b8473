"""k-index (Whang et al. 2009): posting lists by attribute and value, partitioned by size."""
