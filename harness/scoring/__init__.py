"""From rankings and labels to tables."""
