"""Tools of servers as retrievers."""
