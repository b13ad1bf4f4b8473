"""How many subscriptions a second are parsed and bound."""
