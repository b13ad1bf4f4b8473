"""What subscribers ask: which changes concern them, and how the server and they themselves follow these."""
