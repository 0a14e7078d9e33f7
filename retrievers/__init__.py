"""Retrievers answer queries; they know nothing of judgments or measures."""
