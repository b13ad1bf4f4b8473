"""The one row that each subscription keeps: the one that is its minimum."""
