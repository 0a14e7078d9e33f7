"""Rerankers score pairs of a query with a document."""
