"""The rates at which subscriptions are parsed and templates are bound."""
