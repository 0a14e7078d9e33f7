"""Rerankers, one file per kind."""
