"""Encoders turn texts into vectors: one file each."""
