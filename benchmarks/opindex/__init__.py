"""OpIndex's experiments (Zhang, Chan and Tan, VLDB 2014, 7)."""
