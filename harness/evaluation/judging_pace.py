"""The seconds that a judgment takes.

Every estimate of labelling time counts with these guesses. A document on the page of
`harness try` is a passage at three keys; on that of `harness label` it may be longer,
with more grades and a policy to look up.
"""

SECONDS_PER_KEY = 6.5
"""A document on the page of a trial: 140 documents take 15 minutes."""
SECONDS_PER_JUDGMENT = 20
"""A document on the page of `harness label`."""
SECONDS_PER_COMPARISON = 20
"""Two rankings side by side, on the page of `harness prefer`."""
