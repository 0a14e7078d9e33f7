"""Scores to verdicts: one table of scores, comparisons of it, and the wording of their results."""
