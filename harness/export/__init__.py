"""Results in other forms."""
