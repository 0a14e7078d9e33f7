"""A new data set to an experiment."""
