"""What scores show."""
