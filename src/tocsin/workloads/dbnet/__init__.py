"""The database/network interface's workloads (Chandramouli, Xie and Yang, SIGMOD 2006, 5): ranges, points that walk, stocks."""
