"""A loaded experiment ready to run.

`check`, `run` and `embed` call it; after it only the manifest reads the tables of the
experiment's retrievers.
"""
