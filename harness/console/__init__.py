"""The command line in use."""
