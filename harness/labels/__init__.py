"""From rankings to labels: pools, judges, agreement, merging."""
