"""Standing questions about tables: a change is reformulated into messages that say by themselves whom they concern."""
