"""The aggregates of views, one module each, with both ways of keeping them: by range and by row."""
