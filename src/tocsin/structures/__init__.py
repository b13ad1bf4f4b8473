"""Arrays only: the structures that every matcher is made of."""
