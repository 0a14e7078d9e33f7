"""From a folder without labels to a verdict."""
