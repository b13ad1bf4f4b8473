"""The expressions that matchers hold: numbered under their subscriptions' ids, and recorded."""
