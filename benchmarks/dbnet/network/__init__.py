"""The network's side of the database/network interface (Chandramouli, Xie and Yang, SIGMOD 2006, 5): six strategies."""
