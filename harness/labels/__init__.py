"""From rankings to labels that can be trusted: pools, judges, agreement, merging, and what to judge next."""
