"""Cayuga's workloads (Demers and others, EDBT 2006, 4): sequences over one stream, over feeds of news, over stocks."""
