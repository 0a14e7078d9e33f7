"""Services behind a network."""
