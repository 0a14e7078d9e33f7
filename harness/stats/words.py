"""Numbers, pairs and caveats in words that a product manager understands."""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.stats.adjust import adjust
from harness.stats.comparison import Comparison
from harness.stats.leaderboard import Optimism
from harness.stats.plan import FEWEST
from harness.stats.settings import Settings
from harness.stats.verdicts import (
    BETTER,
    BUT_NEGLIGIBLE,
    DISAGREE,
    EQUIVALENT,
    IDENTICAL,
    MODEL_ALONE,
    NO_DIFFERENCE,
    NOTHING,
    TOO_FEW,
    UNDEFINED,
    WORSE,
)

JUDGED_GAP = 0.1
"""Difference of mean Judged@k above which the judgments may favour the better judged of two retrievers."""


def format_p(p: float, least: float | None = None) -> str:
    """Return a p-value for people: three digits, never 0, and a bound where draws cannot say more.

    The terminal shows it as it is; the page and the tables for a paper set the same digits with a power of ten.

    Args:
        p: the p-value.
        least: the smallest that the method can give (1 / 100,001 for 100,000 draws), if that is what p is.

    >>> format_p(0.046875), format_p(1.5e-9), format_p(3e-308), format_p(1e-5, least=1e-5)
    ('0.0469', '1.50e-09', '< 1e-300', '≤ 1.00e-05')
    """
    if p < 1e-300:
        return "< 1e-300"
    return f"{'≤ ' if least is not None and p <= least else ''}{p:#.3g}"


def related(p: str) -> str:
    """Return a p-value as it stands after its name: equal, or the bound that it is.

    >>> related(format_p(0.5)), related(format_p(0.0))
    ('= 0.500', '< 1e-300')
    """
    return p if p.startswith(("<", "≤")) else f"= {p}"


def pair_sentence(row: Comparison, settings: Settings) -> str:
    """Return one comparison as a sentence.

    The difference and its interval come before p, and "undecided" comes with its reason.
    """
    interval = f"{row.mean_difference:+.4f}"
    if row.ci_low is not None and row.ci_high is not None:
        short = f", likely too short as only {differing(row)}" if row.wins + row.losses < FEWEST else ""
        interval += f" ({100 * settings.level:.3g} % interval {row.ci_low:+.4f} to {row.ci_high:+.4f}{short})"
    numbers = f"mean difference in {row.measure} {interval}, adjusted p {related(format_p(row.p_adjusted))}"
    if settings.correction != "tukey":
        numbers += f" and {format_p(row.p_randomization_adjusted)} for the mean"
    if row.word.startswith((BETTER, WORSE)):
        word = row.word.removesuffix(BUT_NEGLIGIBLE)
        small = f", but by less than the margin of {settings.margin:g}" if row.word.endswith(BUT_NEGLIGIBLE) else ""
        return f"{row.a} is {word} than {row.b}{small}: {numbers}."
    if row.word == EQUIVALENT:
        same = ", with identical rankings on these queries" if row.reason == IDENTICAL else ""
        return f"{row.a} and {row.b} are equivalent within {settings.margin:g}{same}: {numbers}."
    return f"{row.a} and {row.b}: undecided, {why(row, settings)}; {numbers}."


def why(row: Comparison, settings: Settings) -> str:
    """Return the reason of an undecided comparison in words."""
    if row.reason == MODEL_ALONE:
        return "no person judged these queries"
    if row.reason == NOTHING:
        return f"every score of {row.measure} is 0, so that nothing was measured"
    if row.reason == IDENTICAL:
        return f"the rankings are identical on these {asked(row.n, row.clusters)}"
    if row.reason == NO_DIFFERENCE:
        return f"no query of {row.n:,} tells them apart"
    if row.reason == DISAGREE:
        return _disagreement(row, settings)
    if row.reason == TOO_FEW and row.p_minimum_adjusted is not None:
        return (
            f"too few queries ({row.wins + row.losses:,} of {asked(row.n, row.clusters)} differ; the smallest adjusted "
            f"p that they could give is {format_p(row.p_minimum_adjusted)}, above {settings.alpha:.3g})"
        )
    if row.reason == UNDEFINED:
        return "the t-test is undefined where all differences are equal"
    favour = "favours" if row.wins == 1 else "favour"
    return f"{count(row.wins)} {favour} {row.a}, {row.losses:,} {row.b}, {row.ties:,} neither"


def _disagreement(row: Comparison, settings: Settings) -> str:
    """Say which of the two tests rejects, or that the signs differ."""
    head = "ranks and means disagree"
    decided, mean = row.p_adjusted <= settings.alpha, row.p_randomization_adjusted <= settings.alpha
    if decided == mean:
        return (
            f"{head} (the rank sum and the mean point opposite ways: many small differences one way, few large ones "
            "the other)"
        )
    shown, other = (
        ("the deciding test", "the test of the mean") if decided else ("the test of the mean", "the deciding test")
    )
    return f"{head} ({shown} finds a difference, {other} does not: look at the queries that differ most)"


def differing(row: Comparison, *, of: bool = False) -> str:
    """Return how many queries differ, or how many of all."""
    number = row.wins + row.losses
    what = f"{number:,} of {asked(row.n, row.clusters)}" if of else count(number)
    return f"{what} {'differs' if number == 1 else 'differ'}"


def significance_sentence(rows: Sequence[Comparison], settings: Settings) -> str:
    """Return what the tests of one measure's family came to."""
    if not rows:
        return "There is no pair to compare."
    if not settings.by_people:
        return "No person judged: these p-values say how steady the model's opinion is, and no more."
    level = f"{100 * settings.alpha:.3g} %"
    queries, measure = asked(rows[0].n, rows[0].clusters), rows[0].measure
    if all(row.reason == NOTHING for row in rows):
        return f"Every score of {measure} is 0: nothing was measured."
    shown = [row for row in rows if row.word.startswith((BETTER, WORSE))]
    if shown:
        many = f"{len(shown)} of {len(rows)} differences in {measure} {'is' if len(shown) == 1 else 'are'}"
        one = f"The difference in {measure} is"
        by = "" if _one_test(settings) else ", by the deciding test and by that of the mean"
        return f"{one if len(rows) == 1 else many} significant at {level} after correction{by}."
    head = f"No difference in {measure} is significant at {level}"
    floors = [row.p_minimum for row in rows if row.p_minimum_adjusted is not None]
    if len(floors) == len(rows):
        least = min(adjust([1.0 if floor is None else floor for floor in floors], settings.correction))
        if least > settings.alpha:
            return (
                f"{head}: {queries} could not have shown any (the smallest adjusted p that the differing ones allow "
                f"is {format_p(least)})."
            )
    smallest = min(rows, key=lambda row: max(row.p_adjusted, row.p_randomization_adjusted))
    p = format_p(max(smallest.p_adjusted, smallest.p_randomization_adjusted))
    by, both = ("", "") if _one_test(settings) else (" by the deciding test and by that of the mean", " of both")
    return f"{head}{by} on {queries}; the smallest adjusted p{both} is {p}."


def _one_test(settings: Settings) -> bool:
    """Whether the deciding test is that of the mean itself."""
    return settings.correction == "tukey" or settings.test == "randomization"


def optimism_sentence(result: Optimism, tried: int) -> str:
    """Return the winner's curse in words, the expected mean with as many digits as tell it from the measured one.

    >>> optimism_sentence(Optimism("x", 0.4302, 0.0025, 0.4277), 3).partition("expect ")[2]
    'at most about 0.428 on new ones rather than 0.4302 (optimism at least 0.0025).'
    """
    digits = max(2, math.ceil(-math.log10(result.optimism))) if result.optimism > 0 else 4
    return (
        f"{result.winner} was picked as the best of {tried} on the very queries that it is judged by: expect at most "
        f"about {result.corrected:.{digits}f} on new ones rather than {result.mean:.4f} (optimism at least "
        f"{result.optimism:.2g})."
    )


def interval_note(rows: Sequence[Comparison]) -> str:
    """Return why an interval and a verdict seem to disagree, "" where none do."""
    odd = [
        row
        for row in rows
        if row.ci_low is not None and row.ci_high is not None
        and (row.ci_low > 0 or row.ci_high < 0) != row.word.startswith((BETTER, WORSE))
    ]  # fmt: skip
    if not odd:
        return ""
    pairs = join([f"{row.a} and {row.b}" for row in odd[:3]] + (["other pairs"] if odd[3:] else []))
    one = all(row.p_adjusted == row.p_randomization_adjusted for row in odd)
    return (
        f"Interval and corrected p seem to disagree on {pairs}: each interval is of one comparison alone and is not "
        f"corrected for the family; the verdict goes by the corrected p{'' if one else ' of both tests'}."
    )


def judged_note(a: str, b: str, judged_a: float, judged_b: float) -> str:
    """Return the caveat where the mean Judged@k of two retrievers differs by more than 0.1, else "".

    >>> judged_note("x", "y", 0.9, 0.85)
    ''
    """
    if abs(judged_a - judged_b) <= JUDGED_GAP + 1e-10:
        return ""
    more, less = (a, b) if judged_a > judged_b else (b, a)
    high, low = max(judged_a, judged_b), min(judged_a, judged_b)
    return (
        f"{high:.0%} of what {more} returned was judged, but {low:.0%} of {less}'s: unjudged documents count as "
        f"irrelevant, which favours {more}."
    )


def count(queries: int) -> str:
    """Return a number of queries in words.

    >>> count(1), count(1300)
    ('1 query', '1,300 queries')
    """
    return counted(queries, "query")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, which ends in y or takes an s.

    >>> counted(1, "query"), counted(1400, "labelled query"), counted(0, "document")
    ('1 query', '1,400 labelled queries', '0 documents')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def asked(queries: int, clusters: int | None) -> str:
    """Return a number of queries, and of their clusters where these are declared.

    >>> asked(150, None), asked(150, 30)
    ('150 queries', '150 queries in 30 clusters')
    """
    if clusters is None:
        return count(queries)
    return f"{count(queries)} in {counted(clusters, 'cluster')}"


def join(names: Sequence[str]) -> str:
    """Return names as a list in a sentence.

    >>> join(["a"]), join(["a", "b"]), join(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *head, last = names
    return f"{', '.join(head)} and {last}" if head else last
