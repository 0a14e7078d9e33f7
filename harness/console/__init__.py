"""Printing, tables, progress: what speaks to people."""
