"""Everything that asks: checks, plans, builds retrievers, runs them."""
