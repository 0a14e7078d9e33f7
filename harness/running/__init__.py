"""Running: checks, plans, builds retrievers, asks them."""
