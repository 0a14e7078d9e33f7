"""Experiments in a notebook."""
