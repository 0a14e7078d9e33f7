"""The report of a results folder."""
