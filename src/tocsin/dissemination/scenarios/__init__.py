"""The paper's workloads (Chandramouli, Xie and Yang, SIGMOD 2006, 5): networks, ranges, points that walk, quotes of stocks."""
