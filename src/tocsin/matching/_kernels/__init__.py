"""Hot loops that several matchers share."""
