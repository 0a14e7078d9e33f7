"""The texts of documents or queries."""
