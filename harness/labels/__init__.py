"""Labels by people, also by models."""
