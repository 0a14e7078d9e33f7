"""Stores keep vectors and find the nearest: one file each."""
