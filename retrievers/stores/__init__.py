"""Stores keep vectors."""
