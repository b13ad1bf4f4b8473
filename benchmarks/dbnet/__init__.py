"""The database/network interface (Chandramouli, Xie and Yang, SIGMOD 2006): the server's side and the network's side."""
