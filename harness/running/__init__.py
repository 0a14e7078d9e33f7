"""Retrievers answer queries."""
