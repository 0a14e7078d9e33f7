"""Exact tests, corrections, intervals, power.

differences    equal scores, found in spite of float noise; what counts as one observation; seeded streams
signed_rank    the exact test
sign_flip      the randomisation test of the mean; many configurations and one choice
paired_tests   every test of one pair, which one decides, and margins
multiplicity   many hypotheses at once; slices, several data sets; what a choice of many is worth
intervals      means with what is uncertain about them
power          what so many queries can find, how many a difference would take, one hypothesis again and again
agreement      several judges, two rankings
settings       what `[statistics]` decides
"""
