"""A run written to its folder."""
