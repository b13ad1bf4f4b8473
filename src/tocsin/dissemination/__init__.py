"""Six ways to get notifications across a network (database/network interface, 2), simulated link by link."""
