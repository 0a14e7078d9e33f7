"""Exact tests, corrections, intervals, power.

- differences: paired differences, with ties that ignore float noise
- units: clusters of queries that count as one observation
- draws: seeded random signs and permutations
- signed_rank: the exact Wilcoxon test
- sign_flip: the randomization test of a mean difference
- max_t, simultaneous: tests of many columns at once, intervals of many pairs at once
- slice_contrasts: slices of the queries against the others
- cross_fitting: what such a choice gains on new queries
- paired_tests: every test of one pair, and margins
- over_sets: several data sets
- corrections: many hypotheses at once
- intervals, summary: means with their uncertainty
- binary_interval, proportion: exact intervals of 0/1 differences, of a proportion
- power: how many queries a difference needs
- looks: planned repetitions of a test
- kappa, rank_overlap, roc_area: agreement of judges, of rankings, and ROC curves
- settings: the keys of `[statistics]`
"""
