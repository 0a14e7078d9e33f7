"""The numbers in words that a product manager understands; absence of evidence is never sold as evidence."""

from __future__ import annotations

from collections.abc import Sequence

from harness.stats.comparison import Comparison
from harness.stats.differences import SLACK
from harness.stats.leaderboard import Optimism
from harness.stats.power import FEWEST, MOST, Needed
from harness.stats.settings import Settings
from harness.stats.verdicts import (
    BETTER,
    BUT_NEGLIGIBLE,
    DISAGREE,
    EQUIVALENT,
    MODEL_ALONE,
    NO_DIFFERENCE,
    TOO_FEW,
    UNDEFINED,
    WORSE,
)
from harness.stats.whole import Whole

NO_MATTER_OF_SIZE = (NO_DIFFERENCE, DISAGREE, UNDEFINED)
"""Reasons that more queries like these would not remove: of such pairs nothing is foretold."""
JUDGED_GAP = 0.1
"""Difference of mean Judged@k above which the judgments may favour the better judged of two retrievers."""


def format_p(p: float, least: float | None = None) -> str:
    """Return a p-value for people: three digits, never 0, and a bound where draws cannot say more.

    Args:
        p: the p-value.
        least: the smallest that the method can give (1 / 100,001 for 100,000 draws), if that is what p is.

    >>> format_p(0.046875), format_p(1.5e-9), format_p(3e-308), format_p(1e-5, least=1e-5)
    ('0.0469', '1.5e-09', '< 1e-300', '≤ 1e-05')
    """
    if p < 1e-300:
        return "< 1e-300"
    return f"{'≤ ' if least is not None and p <= least else ''}{p:.3g}"


def _related(p: str) -> str:
    """A p-value after its name: equal, or the bound that it is."""
    return p if p.startswith(("<", "≤")) else f"= {p}"


def pair_sentence(row: Comparison, settings: Settings) -> str:
    """Return one comparison as a sentence.

    The difference and its interval come before p, and "undecided" comes with its reason.
    """
    interval = f"{row.mean_difference:+.4f}"
    if row.ci_method != "not estimable":
        short = f", likely too short as only {_differing(row)}" if _few(row) else ""
        interval += f" ({100 * settings.level:g} % interval {row.ci_low:+.4f} to {row.ci_high:+.4f}{short})"
    numbers = f"mean difference in {row.measure} {interval}, adjusted p {_related(format_p(row.p_adjusted))}"
    if row.word.startswith((BETTER, WORSE)):
        word = row.word.removesuffix(BUT_NEGLIGIBLE)
        small = f", but by less than the margin of {settings.margin:g}" if row.word.endswith(BUT_NEGLIGIBLE) else ""
        return f"{row.a} is {word} than {row.b}{small}: {numbers}."
    if row.word == EQUIVALENT:
        return f"{row.a} and {row.b} are equivalent within {settings.margin:g}: {numbers}."
    return f"{row.a} and {row.b}: undecided, {_why(row, settings)}; {numbers}."


def _few(row: Comparison) -> bool:
    return row.wins + row.losses < FEWEST


def _why(row: Comparison, settings: Settings) -> str:
    if row.reason == MODEL_ALONE:
        return "no person judged these queries"
    if row.reason == NO_DIFFERENCE:
        return f"no query of {row.n} tells them apart"
    if row.reason == DISAGREE:
        return (
            "ranks and means disagree (many small differences one way, few large ones the other): "
            "look at the queries that differ most"
        )
    if row.reason == TOO_FEW and row.p_minimum_adjusted is not None:
        return (
            f"too few queries ({row.wins + row.losses} of {row.n} differ; the smallest adjusted p they could give is "
            f"{format_p(row.p_minimum_adjusted)}, above {settings.alpha:g})"
        )
    if row.reason == UNDEFINED:
        return "the t-test is undefined where all differences are equal"
    favour = "favours" if row.wins == 1 else "favour"
    return f"{count(row.wins)} {favour} {row.a}, {row.losses:,} {row.b}, {row.ties:,} neither"


def _differing(row: Comparison, *, of: bool = False) -> str:
    """How many queries differ, or how many of all."""
    number = row.wins + row.losses
    what = f"{number:,} of {count(row.n)}" if of else count(number)
    return f"{what} {'differs' if number == 1 else 'differ'}"


def whole_sentences(result: Whole, settings: Settings, *, complete: bool = True) -> list[str]:
    """Return what the experiment showed, most important first.

    Args:
        result: the three sets.
        settings: those that it was made with.
        complete: whether every retriever ran; else nothing is recommended, since a missing one might be better.
    """
    leader, queries = result.leader, count(result.n)
    first = [name for name, mean in result.means.items() if result.means[leader] - mean <= SLACK]
    if not settings.by_people:
        return [
            f"By a model's labels alone, on {result.measure} over {queries}: {join(first)} first, "
            f"{result.means[leader]:.4f}.",
            "No person judged these queries. A model may favour one retriever: nothing follows from its labels.",
        ]
    has = "has" if len(first) == 1 else "share"
    found = [f"On {result.measure} over {queries}, {join(first)} {has} the highest mean, {result.means[leader]:.4f}."]
    if len(result.means) == 1:
        alone = "It ran alone: there is nothing to compare it with."
        return [*found, alone] if complete else found
    if result.shown_worse:
        found.append(f"Shown to be worse than {leader}: {join(result.shown_worse)}.")
    if len(result.within_margin) > 1:
        found.append(f"Shown to be as good as {leader} within {settings.margin:g}: {join(result.within_margin[1:])}.")
        if complete:
            found[-1] += f" Among {join(result.within_margin)}, choose by cost and speed."
    if not result.unresolved:
        if complete and len(result.within_margin) == 1:
            found.append(f"{leader} is the best of the {len(result.means)} on this measure.")
        return found
    names = join((leader, *result.unresolved))
    these = "This query" if result.n == 1 else f"These {queries}"
    found.append(f"{these} cannot tell {names} apart{_outlook(result)}.")
    found += _limits(result, settings)
    found.append("That no difference was shown does not mean that there is none.")
    return found


def _outlook(result: Whole) -> str:
    """Say how many queries would tell the unresolved from the leader, the interval first; nothing where none would."""
    asked = {o: state for o, state in result.unresolved.items() if result.against[o].reason not in NO_MATTER_OF_SIZE}
    if not asked:
        return ""
    whom = f" to tell {result.leader} from {join(list(asked))}" if len(asked) < len(result.unresolved) else ""
    known = [state.needed for state in asked.values() if state.needed is not None]
    if len(known) < len(asked):
        few = "one is too few" if result.n == 1 else "too few of them differ"
        return f"; {few} to say how many would be needed{whom}"
    # To tell all of them apart takes as many queries as the hardest pair.
    hardest = Needed(*(None if None in column else max(column) for column in zip(*known, strict=True)))
    if hardest.low is None:
        return f"; more than {MOST:,} queries would be needed{whom}"
    low, high, guess = (f"more than {MOST:,}" if x is None else f"{x:,}" for x in hardest)
    span = f"{low} queries" if low == high else f"between {low} and {high} queries"
    more = "" if hardest.best_guess is None else f", about {max(1, hardest.best_guess - result.n):,} more"
    return f"; {span} in all would be needed{whom} (best guess {guess}{more}), if further queries resemble these"


def _limits(result: Whole, settings: Settings) -> list[str]:
    """What could be seen between the leader and each unresolved retriever; the same words once for all of them."""
    reasons: dict[str, list[str]] = {}
    limits: list[tuple[str, str, str]] = []
    for other, state in result.unresolved.items():
        row = result.against[other]
        if row.reason in NO_MATTER_OF_SIZE:
            reasons.setdefault(f"{_why(row, settings)}.", []).append(other)
        elif state.detectable.difference is None:
            few = f"{_differing(row, of=True)}; that few could hardly have shown any difference."
            reasons.setdefault(few, []).append(other)
        else:
            limits.append((other, f"{state.detectable.difference:.3f}", f"{abs(row.mean_difference):.3f}"))
    found = [f"{join((result.leader, *others))}: {reason}" if len(others) == 1 else
             f"{result.leader} beside {join(others)}: {reason}" for reason, others in reasons.items()]  # fmt: skip
    if len(limits) == 1:
        ((other, least, seen),) = limits
        found.append(
            f"{result.leader} and {other}: a true difference below about {least} would "
            f"have been missed more often than once in five; {seen} was seen."
        )
    elif limits:
        each = join([f"{other} below about {least} ({seen} was seen)" for other, least, seen in limits])
        found.append(
            f"A true difference from {result.leader} would have been missed more often than once in five: {each}."
        )
    return found


def significance_sentence(rows: Sequence[Comparison], settings: Settings) -> str:
    """Return what the tests of one measure's family came to."""
    if not rows:
        return "There is no pair to compare."
    if not settings.by_people:
        return "No person judged: these p-values say how steady the model's opinion is, and no more."
    level = f"{100 * settings.alpha:g} %"
    queries = count(rows[0].n)
    shown = [row for row in rows if row.p_adjusted <= settings.alpha]
    if shown:
        return (
            f"{len(shown)} of {len(rows)} differences in {rows[0].measure} are significant at {level} after correction."
        )
    head = f"No difference in {rows[0].measure} is significant at {level}"
    floors = [row.p_minimum_adjusted for row in rows if row.p_minimum_adjusted is not None]
    if floors and min(floors) > settings.alpha:
        return (
            f"{head}: {queries} could not have shown any (the smallest adjusted p that the differing ones "
            f"allow is {format_p(min(floors))})."
        )
    return f"{head} on {queries}; the smallest adjusted p is {format_p(min(r.p_adjusted for r in rows))}."


def optimism_sentence(result: Optimism, tried: int) -> str:
    """Return the winner's curse in words."""
    return (
        f"{result.winner} was picked as the best of {tried} on the very queries that it is judged by: expect about "
        f"{result.corrected:.4f} on new ones rather than {result.mean:.4f} (optimism {result.optimism:.4f})."
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


def join(names: Sequence[str]) -> str:
    """Return names as a list in a sentence.

    >>> join(["a"]), join(["a", "b"]), join(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *head, last = names
    return f"{', '.join(head)} and {last}" if head else last
