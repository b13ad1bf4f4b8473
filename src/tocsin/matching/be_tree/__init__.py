"""BE-Tree (Sadoghi and Jacobsen, 2011 and 2013): space cut by attributes, then by their values, in turn."""
