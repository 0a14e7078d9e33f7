"""Conclusions in English."""
