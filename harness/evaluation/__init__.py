"""Scores to verdicts: one table of scores, comparisons of it, and the words for what they came to."""
