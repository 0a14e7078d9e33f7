"""Files in formats of several programs."""
