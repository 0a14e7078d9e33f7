"""What Python calls, in a notebook or not: models and data that are in memory, experiments, and what came out."""
