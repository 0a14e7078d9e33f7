"""Formats of data sets."""
