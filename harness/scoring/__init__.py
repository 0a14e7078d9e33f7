"""Rankings to scores."""
