"""The options of parts in an experiment."""
