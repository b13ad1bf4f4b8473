"""OpIndex's workloads (Zhang, Chan and Tan, VLDB 2014, 7): many attributes, of which each subscription names few."""
