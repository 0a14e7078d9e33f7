"""Exact tests, corrections, intervals and power on arrays: numbers in, numbers out; numpy and scipy only.

differences    equal scores, found in spite of float noise; what counts as one observation; seeded streams
signed_rank    the exact test and the estimate that belongs to it; sign_flip: the randomisation test of the mean
paired_tests   every test of one pair, and which one decides, and margins; friedman: all at once
max_t          many configurations and one choice; set_means: several data sets together
corrections    many hypotheses at once, letters; looks: one hypothesis again and again
intervals      means with what is uncertain about them; resampling: ranks and flattery by the bootstrap
power          what so many queries can find, and how many a difference would take
query_slices   parts of the queries; rank_overlap: what two rankings have in common
agreement, prediction, unjudged_bounds    several judges, a model beside people, documents that nobody judged
settings       what `[statistics]` decides
"""
