"""Subscriptions as engine and index share them: registry, queries, compilation of filters, templates, sources."""
