"""What is known before a run."""
