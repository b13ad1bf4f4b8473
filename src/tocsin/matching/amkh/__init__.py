"""AMKH: conjunctions as points in a hash table, found by the coordinates that an event may have (Wu and Yu 2002)."""
