"""Text to the model: tokens, terms, conditions, queries, each reader built on the one before."""
