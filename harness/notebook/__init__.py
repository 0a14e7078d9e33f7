"""The Python API, for notebooks too: models and data in memory, experiments, and results."""
