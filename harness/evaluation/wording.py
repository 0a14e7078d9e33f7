"""Verdicts, reasons and warnings in English, for the terminal, Markdown, HTML, LaTeX and CSV alike.

No other file turns the enums and numbers of an evaluation into sentences, and none reads them back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.english import asked, count, counted, few_names, format_p, join, minus, related, short_p, these
from harness.evaluation.evaluation import FEWEST_QUERIES, Evaluation, RunWarning, SweepChoice, WarningKind
from harness.evaluation.verdict import Comparison, Finding, Gate, Reason, Verdict
from harness.stats.differences import SLACK
from harness.stats.multiplicity import adjust
from harness.stats.power import FEWEST, MOST, Look
from harness.stats.settings import Settings

if TYPE_CHECKING:
    from harness.evaluation.across_sets import PairOnSets, SetsTogether
    from harness.evaluation.labellers import LabellerVerdict

REASONS = {
    Reason.IDENTICAL: "identical on these queries",
    Reason.NOTHING_MEASURED: "nothing was measured",
    Reason.NO_QUERY_DIFFERS: "no query differs",
    Reason.UNDEFINED: "undefined, all differences are equal",
    Reason.TOO_FEW: "too few queries",
    Reason.NOT_SHOWN: "no difference shown",
    Reason.MODEL_ALONE: "judged by a model alone",
    Reason.ALPHA_SPENT: "alpha is spent",
}
"""As the column `verdict` of comparisons.csv has them."""
SIGNS = {Verdict.BETTER: "▲", Verdict.WORSE: "▼", Verdict.EQUIVALENT: "≈", Verdict.UNDECIDED: "·"}
STANDINGS = {
    "leader": ("●", "highest mean"),
    "good": ("●", "as good"),
    "open": ("?", "undecided"),
    "same": ("=", "no query differs"),
    "worse": ("▼", "worse"),
    "baseline": ("■", "the baseline"),
    "better": ("▲", "better"),
    "failed": ("×", "failed"),
}
"""A sign and a word for each standing of the leaderboard: never a colour alone."""
TESTS = {
    "wilcoxon": "the exact Wilcoxon signed-rank test",
    "randomization": "the sign-flip test of the mean",
    "t": "Student's paired t-test",
}
CORRECTIONS = {"holm": "Holm", "bonferroni": "Bonferroni", "bh": "Benjamini-Hochberg"}
SPENT = "alpha is spent: these are more queries than were planned for the last look"


def verdict_word(finding: Finding) -> str:
    """Return a verdict without its reason.

    >>> verdict_word(Finding(Verdict.BETTER, negligible=True))
    'better but negligible'
    """
    return finding.verdict.value + (" but negligible" if finding.negligible else "")


def reason_words(reason: Reason | None) -> str:
    """Return a reason as comparisons.csv has it; "" for none."""
    return "" if reason is None else REASONS[reason]


def verdict_cell(finding: Finding) -> str:
    """Return a verdict as comparisons.csv has it.

    >>> verdict_cell(Finding(Verdict.UNDECIDED, Reason.TOO_FEW))
    'undecided: too few queries'
    """
    return ": ".join(part for part in (verdict_word(finding), reason_words(finding.reason)) if part)


def settings_sentence(settings: Settings) -> str:
    """Return which test is behind the verdicts."""
    drops = ", zero differences dropped" if settings.test == "wilcoxon" else ""
    return (
        f"Decided by {TESTS[settings.test]}{drops}; p adjusted within each measure by "
        f"{CORRECTIONS[settings.correction]}; level {settings.alpha:.3g}."
    )


def _p(p: float) -> str:
    return related(format_p(p))


def pair_sentence(row: Comparison, settings: Settings) -> str:
    """Return one comparison as a sentence: the difference and its interval come before p."""
    interval = f"{row.mean_difference:+.4f}"
    if row.ci_low is not None and row.ci_high is not None:
        differ = f"{count(row.differing)} {'differs' if row.differing == 1 else 'differ'}"
        short = f", likely too short as only {differ}" if row.differing < FEWEST else ""
        interval += f" ({100 * settings.level:.3g} % interval {row.ci_low:+.4f} to {row.ci_high:+.4f}{short})"
    exact = ""
    if settings.test != "wilcoxon" and row.p_wilcoxon_adjusted is not None:
        exact = f", exact Wilcoxon p {_p(row.p_wilcoxon_adjusted)}"
    numbers = f"mean difference in {row.measure} {minus(interval)}, adjusted p {_p(row.p_adjusted)}{exact}"
    if row.verdict is Verdict.EQUIVALENT:
        same = ", with identical rankings on these queries" if row.reason is Reason.IDENTICAL else ""
        return f"{row.a} and {row.b} are equivalent within {settings.margin:g}{same}: {numbers}."
    if row.verdict is Verdict.UNDECIDED:
        return f"{row.a} and {row.b}: undecided, {why(row, settings)}; {numbers}."
    high, low = (row.a, row.b) if row.verdict is Verdict.BETTER else (row.b, row.a)
    word = "higher" if (row.mean_difference > 0) == (high == row.a) else "lower, which is better,"
    shown = f"the mean of {high} is {word} than that of {low}"
    if settings.test == "wilcoxon":
        shown = f"{high} is better than {low} on the typical query"
    small = f", but by less than the margin of {settings.margin:g}" if row.finding.negligible else ""
    return f"By {TESTS[settings.test]}, {shown}{small}: {numbers}."


def opposite_warning(rows: Sequence[Comparison], settings: Settings) -> str:
    """Return the pairs for which the other test rejects in the opposite direction of the verdict; "" for none.

    Args:
        rows: comparisons of one measure.
        settings: those that they were made with.
    """
    found = []
    for row in rows:
        ranks, mean = row.w_plus - row.w_minus, row.mean_difference
        if not row.verdict.separates or row.p_wilcoxon_adjusted is None or ranks * mean >= 0:
            continue
        if settings.test == "wilcoxon" and row.p_randomization_adjusted <= settings.alpha:
            name = row.a if mean > 0 else row.b
            found.append(f"the mean of {name} is higher (sign-flip p {_p(row.p_randomization_adjusted)})")
        elif settings.test != "wilcoxon" and row.p_wilcoxon_adjusted <= settings.alpha:
            name, other = (row.a, row.b) if ranks > 0 else (row.b, row.a)
            p = _p(row.p_wilcoxon_adjusted)
            found.append(f"on the typical query {name} is better than {other} (exact Wilcoxon p {p})")
    return f"Yet {'; '.join(found)}." if found else ""


def why(row: Comparison, settings: Settings) -> str:
    """Return the reason of a comparison with its numbers."""
    favour = "favours" if row.wins == 1 else "favour"
    words = {
        Reason.MODEL_ALONE: "no person judged these queries",
        Reason.ALPHA_SPENT: SPENT,
        Reason.NOTHING_MEASURED: f"every score of {row.measure} is 0, so that nothing was measured",
        Reason.IDENTICAL: (
            f"the rankings are identical on {these(row.n, row.clusters)}: {unchanged_sentence(row.n, row.clusters)}"
        ),
        Reason.NO_QUERY_DIFFERS: f"no query of {row.n:,} tells them apart",
        Reason.TOO_FEW: (
            f"too few queries ({row.differing:,} of {asked(row.n, row.clusters)} differ; the smallest adjusted p that "
            f"they could give is {format_p(row.p_minimum_adjusted or 0.0)}, above {settings.alpha:.3g})"
        ),
        Reason.UNDEFINED: "the t-test is undefined where all differences are equal",
    }
    favoured = f"{count(row.wins)} {favour} {row.a}, {row.losses:,} {row.b}, {row.ties:,} neither"
    return favoured if row.reason is None else words.get(row.reason, favoured)


def significance_sentence(rows: Sequence[Comparison], settings: Settings) -> str:
    """Return the results of the tests of one measure's family."""
    if not rows:
        return "There is no pair to compare."
    if not settings.by_people:
        return "No person judged: these p-values say how steady the model's opinion is, and no more."
    if settings.spent:
        return f"{SPENT.capitalize()}. Nothing more is claimed."
    level = f"{100 * settings.alpha:.3g} %"
    queries, measure = asked(rows[0].n, rows[0].clusters), rows[0].measure
    if all(row.reason is Reason.NOTHING_MEASURED for row in rows):
        return f"Every score of {measure} is 0: nothing was measured."
    if shown := sum(row.verdict.separates for row in rows):
        many = f"{shown} of {len(rows)} differences in {measure} {'is' if shown == 1 else 'are'}"
        what = f"The difference in {measure} is" if len(rows) == 1 else many
        return f"{what} significant at {level} after correction."
    head = f"No difference in {measure} is significant at {level}"
    floors = [row.p_minimum for row in rows if row.p_minimum_adjusted is not None and row.p_minimum is not None]
    if len(floors) == len(rows) and (least := min(adjust(floors, settings.correction))) > settings.alpha:
        return (
            f"{head}: {queries} could not have shown any (the smallest adjusted p that the differing ones allow "
            f"is {format_p(least)})."
        )
    return f"{head} on {queries}; the smallest adjusted p is {format_p(min(row.p_adjusted for row in rows))}."


def unchanged_sentence(n: int, clusters: int | None) -> str:
    """Return what identical rankings say, and what they cannot.

    >>> unchanged_sentence(150, None)
    'no change was seen; a fault that hits fewer than 2.0 % of the queries would be missed'
    """
    percent = min(100, 300 / (clusters or n))
    share = f"{percent:.0f}" if percent >= 10 else f"{percent:.1f}"
    return f"no change was seen; a fault that hits fewer than {share} % of the queries would be missed"


def gate_sentence(gate: Gate) -> str:
    """Return the outcome of a gate as one line for a log."""
    queries = asked(gate.n, gate.clusters)
    numbers = minus(f"difference {gate.mean_difference:+.4f}")
    if not gate.measured:
        return f"nothing was measured: every score is 0 on {queries} ({numbers})"
    if gate.spent:
        return f"alpha is spent: {queries} are more than were planned for the last look ({numbers})"
    if gate.needed is None:
        shown = "not shown, the measure's range is not known"
    elif gate.too_few:
        needed = f"{gate.needed:,} {'queries' if gate.clusters is None else 'different questions'}"
        shown = f"{queries} cannot show it, which takes at least {needed}"
    else:
        shown = f"{'shown' if gate.passed else 'not shown'} on {queries}"
        numbers = f"{numbers}, p {_p(gate.p_value)}"
    unchanged = f"; {unchanged_sentence(gate.n, gate.clusters)}" if gate.identical else ""
    return f"not worse by {gate.margin:g}: {shown} ({numbers}){unchanged}"


def gate_cells(gate: Gate) -> dict[str, Any]:
    """Return the outcome of a gate as data."""
    return {
        "passed": gate.passed,
        "reason": gate_sentence(gate),
        "n": gate.n,
        "mean_difference": gate.mean_difference,
        "margin": gate.margin,
        "p_value": gate.p_value,
        "queries_needed": gate.needed,
    }


class FirstLines(NamedTuple):
    """What stands above the leaderboard."""

    headline: str
    lead: str
    """How far the best mean is ahead; "" where nothing follows from it."""
    following: tuple[str, ...]
    """What is to be known of the tests, what is equal, and what more queries would tell."""


RECOMPUTED = "This folder has no evaluation of this version: its comparisons are computed again from its scores."


def first_lines(found: Evaluation, *, complete: bool = True) -> FirstLines:
    """Return the verdict in a few lines; nothing is recommended while retrievers are missing."""
    separated = any(row.verdict.separates for row in found.against_baseline)
    lead = "" if separated or found.failed or not complete else lead_sentence(found)
    following = _next_steps(found, complete=complete and not found.failed)
    head = incomplete(found) or headline(found)
    if not found.measured:
        return FirstLines(head, lead, tuple(following))
    pairs = found.against_baseline if found.baseline else tuple(found.against.values())
    warning = opposite_warning(pairs, found.settings) if found.sweep is None else ""
    fragile = [f"{' and '.join(one.retrievers)}" for one in found.warnings if one.kind is WarningKind.FRAGILE]
    if fragile and not warning:
        warning = f"Few queries with a large loss would undo what is shown of {few_names(fragile)}: label more queries."
    older = RECOMPUTED if found.recomputed else ""
    return FirstLines(head, lead, tuple(filter(None, [warning, *following, older])))


def incomplete(found: Evaluation) -> str:
    """Return what is missing and who leads among the others, as a head line; "" where every retriever finished."""
    if not found.failed:
        return ""
    head = f"Incomplete: {len(found.failed)} of {len(found.failed) + len(found.means)} retrievers failed"
    return f"{head}; among those that ran, {found.leader} leads" if found.others else head


def next_step(found: Evaluation) -> str:
    """Return what comes before anything can be recommended of a run; "" where nothing does."""
    if found.failed:
        return "Nothing is recommended: a retriever that failed might be better. Run the experiment again."
    if not found.settings.by_people:
        return "Nothing is recommended: let people judge a random part of these queries."
    if not found.others:
        return "Next: add a second [[retrievers]] to the experiment, of another kind or model, and run it again."
    return ""


def sentences(found: Evaluation, *, complete: bool = True) -> list[str]:
    """Return what was shown, most important first; absence of evidence is never sold as evidence.

    Args:
        found: the evaluation.
        complete: whether every retriever ran; else nothing is recommended, since a missing one might be better.
    """
    complete = complete and not found.failed
    leader, best, where = found.leader, found.means[found.leader], f"On {found.measure} over {_asked(found)}"
    if not found.measured:
        return _next_steps(found, complete=complete)
    first = join([name for name, mean in found.means.items() if abs(best - mean) <= SLACK])
    if not found.settings.by_people:
        return [
            f"By a model's labels alone, o{where[1:]}: {first} first, {best:.4f}.",
            "No person judged these queries. A model may favour one retriever: nothing follows from its labels.",
        ]
    if found.sweep is not None:
        return [f"{where}: {sweep_headline(found.sweep)}.", *_next_steps(found, complete=complete)]
    has = "has" if first == leader else "share"
    which = "lowest mean, which is best" if found.measure in found.low_is_good else "highest mean"
    said = [f"{baseline_words(found)}."] if found.against_baseline else []
    said.append(f"{where}, {first} {has} the {which}, {best:.4f}.")
    if not found.others:
        return [*said, "It ran alone: there is nothing to compare it with."] if complete else said
    said += _weights(found)
    if found.shown_worse:
        worse = "worse on the typical query" if found.settings.test == "wilcoxon" else "worse on average"
        said.append(f"Shown to be {worse} than {leader}: {join(found.shown_worse)}.")
    if found.ahead:
        said.append(f"{_ahead_of_leader(found)}.")
    said += _within(found, complete=complete)
    if same := _alike(found):
        unchanged = unchanged_sentence(found.n, found.clusters)
        said.append(f"Identical to {leader} on these queries, ranking by ranking: {join(same)}; {unchanged}.")
    if undecided := _undecided(found):
        said.append(f"Undecided on {these(found.n, found.clusters)}: {leader} against {join(undecided)}.")
        said += _plan(found)
        reasons: dict[str, list[str]] = {}
        for other in found.plans:
            if not _helped(row := found.against[other]):
                reasons.setdefault(why(row, found.settings), []).append(other)
        said += [f"{leader} and {join(others)}: {reason}." for reason, others in reasons.items()]
        said.append("That no difference was shown does not mean that there is none.")
    elif not found.plans and complete and len(found.within_margin) == 1:
        said.append(f"{leader} is the best of the {len(found.means)} on this measure.")
    return said


def _next_steps(found: Evaluation, *, complete: bool) -> list[str]:
    """What neither the headline nor the lead says, and what to do follows from."""
    if not found.measured:
        return [
            f"Nothing was measured: every score of {found.measure} is 0 over {_asked(found)}. Look whether the labels "
            "name documents by the ids that the retrievers return."
        ]
    if not found.settings.by_people:
        return []
    if (choice := found.sweep) is not None:
        on = these(found.n, found.clusters)
        return [_sweep_sentence(choice, found.settings), *_weights(found), alike_sentence(choice, on)]
    if not found.others:
        return []
    return [*_weights(found), *_within(found, complete=complete), *(_plan(found) if _undecided(found) else ())]


def _asked(found: Evaluation) -> str:
    return asked(found.n, found.clusters)


def _weights(found: Evaluation) -> list[str]:
    """By what queries are weighted, and how many of equal weight would tell as much."""
    if found.effective is None:
        return []
    alike = counted(round(found.effective), "query" if found.clusters is None else "question")
    return [
        f"Means are weighted by {found.settings.weight}: {_asked(found)} tell{'s' * (found.n == 1)} as much as about "
        f"{alike} of equal weight."
    ]


def _within(found: Evaluation, *, complete: bool) -> list[str]:
    close, leader, said = found.within_margin[1:], found.leader, []
    same = [name for name in close if found.against[name].reason is Reason.IDENTICAL]
    if same:
        said.append(f"Identical to {leader} on these queries, ranking by ranking: {join(same)}.")
    if shown := [name for name in close if name not in same]:
        said.append(f"Shown to be as good as {leader} within {found.settings.margin:g}: {join(shown)}.")
    if close and complete:
        said.append(f"Among {join(found.within_margin)}, choose by cost and speed.")
    return said


def _ahead_of_leader(found: Evaluation) -> str:
    ahead = f"{join(found.ahead)} {'is' if len(found.ahead) == 1 else 'are'} shown to be better on the typical query"
    return f"{found.leader} has the highest mean, but {ahead}"


def _alike(found: Evaluation) -> list[str]:
    """Those that rank as the leader does on every query, and are not shown to be equivalent."""
    return [name for name in found.plans if found.against[name].reason is Reason.IDENTICAL]


def _undecided(found: Evaluation) -> list[str]:
    done = {*_alike(found), *found.ahead}
    return [name for name in found.plans if name not in done]


def _helped(row: Comparison) -> bool:
    return row.reason is None or row.reason.helped_by_queries


def _plan(found: Evaluation) -> list[str]:
    """What a true difference of the declared size would take; nothing where no number of queries would do."""
    rows = {other: needed for other, needed in found.plans.items() if _helped(found.against[other])}
    needed = {other: queries for other, queries in rows.items() if queries is not None}
    if not rows:
        return []
    if not needed:
        few = "One query is too few" if found.n == 1 else "Too few of the queries differ"
        return [f"{few} to say how many would be needed."]
    # To tell all of them apart takes as many queries as the hardest pair.
    hardest = max(needed, key=lambda other: needed[other])
    units, true = found.clusters or found.n, f"a true difference of {found.difference:g} from {hardest}"
    example = "" if found.settings.margin is not None else " (No margin is declared: this is an example.)"
    if needed[hardest] <= units:
        return [f"These queries would reliably find {true}.{example}"]
    words = needed_words(needed[hardest], clusters=found.clusters is not None)
    return [f"To reliably find {true} takes {words}, if differences scatter as on these {units:,}.{example}"]


def needed_words(needed: int, *, clusters: bool = False) -> str:
    """Return a number of queries with two digits, rounded up: more would be false precision.

    >>> needed_words(138), needed_words(MOST + 1)
    ('about 140 queries', 'more than 1,000,000 queries')
    """
    things = "different questions" if clusters else "queries"
    if needed > MOST:
        return f"more than {MOST:,} {things}"
    unit = 10 ** max(0, math.floor(math.log10(max(1, needed))) - 1)
    return f"about {math.ceil(needed / unit) * unit:,} {things}"


def baseline_words(found: Evaluation) -> str:
    """Return what was shown of the others against the declared baseline, those that were shown better first."""
    parts = []
    for verdict, words in (
        (Verdict.BETTER, f"better than the baseline {found.baseline}"),
        (Verdict.WORSE, f"worse than {found.baseline}"),
        (Verdict.EQUIVALENT, f"as good as {found.baseline} within {found.settings.margin}"),
    ):
        rows = [row for row in found.against_baseline if row.verdict is verdict]
        gaps = verdict.separates
        names = [f"{row.a} (by {abs(row.mean_difference):.3f})" if gaps and len(rows) > 1 else row.a for row in rows]
        by = f" by {abs(rows[0].mean_difference):.3f}" if gaps and len(rows) == 1 else ""
        if rows:
            parts.append(f"{join(names)} {'is' if len(rows) == 1 else 'are'} {words}{by}")
        elif verdict is Verdict.BETTER:
            parts.append(f"Nothing is shown to be {words}")
    if undecided := [row.a for row in found.against_baseline if row.verdict is Verdict.UNDECIDED]:
        parts.append(f"no difference from it is shown for {join(undecided)}")
    return "; ".join(parts)


def headline(found: Evaluation) -> str:
    """Return the conclusion in one line."""
    leader, others = found.leader, found.others
    if not found.measured:
        return f"Nothing was measured: every score of {found.measure} is 0"
    if not others:
        return f"{leader} ran alone: there is nothing to compare it with"
    if not found.settings.by_people:
        return f"A model alone judged {_asked(found)}: its labels put {leader} first, and decide nothing"
    if found.sweep is not None:
        return sweep_headline(found.sweep)
    line = _against_leader(found)
    if not any(row.verdict.separates for row in found.against_baseline):
        return line
    undecided = list(found.plans)
    told = undecided == [found.baseline] or (undecided and leader == found.baseline)
    return baseline_words(found) if told else f"{baseline_words(found)}. {line}"


def lead_sentence(found: Evaluation) -> str:
    """Return how far the highest mean is ahead of the next two; "" where there is nothing to compare."""
    if not found.measured or not found.settings.by_people:
        return ""
    parts: list[str] = []
    for other in found.others[:2]:
        row = found.against[other]
        row = row.swapped if found.measure in found.low_is_good else row
        if abs(row.mean_difference) < 0.0005:  # it would read 0.000
            continue
        known = row.ci_low is not None and row.ci_high is not None
        ends = f" ({row.ci_low:z.3f} to {row.ci_high:z.3f})" if known and not parts else ""
        parts.append(f"{other} by {minus(f'{row.mean_difference:.3f}{ends}')}")
    if not parts:
        return ""
    rest = len(found.others) - 2
    return f"Mean ahead of {', of '.join(parts)}{f', and of {rest} more' if rest > 0 else ''}."


def _against_leader(found: Evaluation) -> str:
    leader, others, close, all_of = found.leader, found.others, found.within_margin, f"{len(found.means)} retrievers"
    if found.ahead:
        return _ahead_of_leader(found)
    on = these(found.n, found.clusters)
    if len(_alike(found)) == len(others):
        return f"{join([leader, *others]) if len(others) == 1 else f'The {all_of}'} rank identically on {on}"
    if len(found.plans) == len(others):
        if any(row.verdict.separates for row in found.comparisons[found.measure]):
            return f"{leader} leads; undecided against all others on {_asked(found)}"
        which = join([leader, *others]) if len(others) == 1 else f"the {all_of}"
        return f"Undecided: {_asked(found)} show{'s' * (found.n == 1)} no difference between {which}"
    if found.plans:
        return f"{leader} leads; undecided against {few_names(list(found.plans), 2)} on {_asked(found)}"
    if len(close) == 1:
        return f"Use {leader}"
    if all(found.against[name].reason is Reason.IDENTICAL for name in close[1:]):
        return f"{few_names(close, 2)} rank identically on {on}"
    return f"{few_names(close, 2)} are equally good within {found.settings.margin:g}"


NAMED = 5
"""Configurations that one sentence names."""


def _sweep_sentence(choice: SweepChoice, settings: Settings) -> str:
    def signed(value: float) -> str:
        return minus(f"{round(value, 4) + 0.0:+.4f}")  # float noise below 0 shows no minus

    gain = f"{abs(choice.gain):.4f}"
    ahead = f"{'ahead of' if choice.gain > 0 else 'behind'} {choice.default} by {gain}"
    ahead = ahead if float(gain) else f"level with {choice.default}"
    expected = "" if choice.expected is None else f"; on new queries expect {signed(choice.expected)} (cross-fitted)"
    least = "nothing tells how far its differences scatter"
    if choice.low is not None:
        least = f"with {100 * (1 - settings.alpha / 2):.3g} % confidence the true gain is above {signed(choice.low)}"
    return (
        f"Chosen on these queries, {choice.chosen} is {ahead}{expected}; {least}. p {_p(choice.p_value)} by the max-T "
        f"test over {counted(choice.configurations, 'configuration')} (one-sided, level {settings.alpha / 2:.3g})."
    )


def sweep_headline(choice: SweepChoice) -> str:
    """Return in one line whether the best of many configurations beats what is in use today."""
    best, today = counted(choice.configurations, "configuration"), f"{choice.default}, in use today"
    if choice.beats:
        return f"{choice.chosen}, the best of {best}, beats {today}"
    if choice.too_few:
        return f"Too few queries to choose among {best}: that takes {FEWEST_QUERIES}"
    if choice.gain <= 0:
        return f"None of {best} has a higher mean than {today}"
    return f"{choice.chosen} has the highest mean of {best}, and is not shown to beat {today}"


def alike_sentence(choice: SweepChoice, these_queries: str) -> str:
    """Return which configurations could be taken instead of the chosen one."""
    others = [name for name in choice.alike if name != choice.chosen]
    if not others:
        return f"{choice.chosen} is shown to differ from every other configuration on {these_queries}."
    named, more = others[:NAMED], len(others) - NAMED
    listed = f"{', '.join(named)} and {more} more" if more > 0 else join(named)
    may = f"{counted(len(others), 'other configuration')} may be as good as {choice.chosen}"
    return f"{may} on {these_queries}; cheapest first: {listed}."


def sets_sentences(found: SetsTogether, most: int) -> list[str]:
    """Return who leads on several data sets, the result of each pair, and that few sets say nothing of others."""
    first, sets = found.ranked[0], len(found.sets)
    leads = sum(
        found.mean(name, first) >= max(found.mean(name, one) for one in found.retrievers) - SLACK for name in found.sets
    )
    shown = sorted(found.pairs, key=lambda pair: (not pair.verdict.separates, -abs(pair.mean_difference)))
    few = f"{counted(sets, 'set')} say nothing of others: that takes five or more."
    head = f"On {found.measure}, {first} has the highest mean on {leads} of {counted(sets, 'data set')}."
    return [head, *map(sets_sentence, shown[:most]), *([few] if shown and not shown[0].like else [])]


def sets_sentence(pair: PairOnSets) -> str:
    """Return the result of two retrievers on several data sets; on other sets only from five sets on."""
    pair = pair.leading
    sets = len(pair.differences)
    head = f"{pair.a} is ahead of {pair.b} on {pair.ahead} of {sets} sets, mean {pair.mean_difference:+z.3f}"
    shown = "shown" if pair.verdict.separates else "not shown"
    these_sets = f"on these {sets} sets the difference is {shown} (p {short_p(pair.p_adjusted)})"
    if pair.like is None:
        return f"{head}; {these_sets}."
    low, high, least, most = (float(end or 0) for end in (*pair.like.interval[:2], *pair.like.new_set[:2]))
    return f"{head}{minus(f' ({low:z.3f} to {high:z.3f}); on a new set {least:+z.3f} to {most:+z.3f}')}; {these_sets}."


def labellers_sentence(merged: Sequence[Comparison], verdicts: Sequence[LabellerVerdict]) -> str:
    """Return whether the verdicts depend on whose labels are taken; "" where there is one labeller."""
    if not verdicts or not merged:
        return ""
    pairs = []
    for row in merged:
        findings = {"the merge": row.finding} | {
            one.labeller: one.rows[row.a, row.b].finding for one in verdicts if (row.a, row.b) in one.rows
        }
        if len({replace(finding, reason=None) for finding in findings.values()}) > 1:
            each = ", ".join(f"{verdict_word(finding)} under {by}" for by, finding in findings.items())
            pairs.append(f"{row.a} and {row.b}: {each}")
    if pairs:
        return f"Verdicts depend on whose labels are taken: {'; '.join(pairs)}."
    undecided = any(row.verdict is Verdict.UNDECIDED for row in merged)
    same = "No verdict is reversed" if undecided else "Every verdict is the same"
    return f"{same} under the labels of {' and '.join(one.labeller for one in verdicts)} and under the merge of them."


def warning_sentences(warnings: Sequence[RunWarning]) -> list[str]:
    """Return warnings for a list, of what was judged otherwise than the leader's hits only the farthest."""
    gaps = [one for one in warnings if one.kind is WarningKind.JUDGED_GAP]
    farthest = max(gaps, key=lambda one: one.numbers[0] - one.numbers[1], default=None)
    left_out = (WarningKind.FRAGILE, WarningKind.JUDGED_GAP, *([WarningKind.UNJUDGED] if gaps else []))
    return [warning_sentence(one) for one in warnings if one is farthest or one.kind not in left_out]


def warning_sentence(warning: RunWarning) -> str:
    """Return one warning of a run in words.

    >>> warning_sentence(RunWarning(WarningKind.UNJUDGED, ("b", "a"), (0.25, 0.04, 10)))
    "Nobody judged 25 % of the first 10 hits of b (4 % of a's): unjudged documents count as irrelevant."
    """
    names, numbers, words = warning.retrievers, warning.numbers, warning.words
    match warning.kind:
        case WarningKind.HALF_READ:
            up_to = "up to " if numbers[0] < numbers[1] else ""
            return (
                f"{few_names(names)} {'reads' if len(names) == 1 else 'read'} only the start of "
                f"{up_to}{100 * numbers[1]:.0f} % of the documents: try chunking."
            )
        case WarningKind.UNKNOWN_HITS:
            return (
                f"{names[0]} returned {numbers[0]:,.0f} of {counted(round(numbers[1]), 'hit')} with unknown ids, such "
                f"as {words[0]!r}: they count as irrelevant. Check that both sides use the same ids."
            )
        case WarningKind.MATCHED_IDS:
            told = ", ".join(f"{number:,.0f} by {way}" for number, way in zip(numbers, words, strict=False))
            return f"Ids of {names[0]} are written otherwise than those of the documents: {told} (e.g. {words[-1]})."
        case WarningKind.UNJUDGED:
            beside = f" ({100 * numbers[1]:.0f} % of {names[1]}'s)" if names[0] != names[1] else ""
            return (
                f"Nobody judged {100 * numbers[0]:.0f} % of the first {numbers[2]:.0f} hits of {names[0]}{beside}: "
                "unjudged documents count as irrelevant."
            )
        case WarningKind.JUDGED_GAP:
            return (
                f"{100 * numbers[0]:.0f} % of what {names[0]} returned was judged, but {100 * numbers[1]:.0f} % of "
                f"{names[1]}'s: unjudged documents count as irrelevant, which favours {names[0]}."
            )
        case WarningKind.CLICKS:
            return (
                f"The labels of {counted(round(numbers[0]), 'query')} are clicks: what people opened of what some "
                "search showed them, not what anybody judged. They favour that search, and whatever resembles it."
            )
        case WarningKind.FRAGILE:
            return f"Few queries with a large loss would undo what is shown of {join(names)}: label more queries."


def look_sentences(found: Evaluation) -> list[str]:
    """Return what counts as one observation where that is no query, and which look this is, with its level."""
    if not found.measured:
        return []
    said = []
    if found.clusters is not None:
        questions = counted(found.clusters, "different question")
        said.append(f"Queries that ask the same count as one: {count(found.n)}, {questions}.")
    if found.look is not None:
        said.append(look_sentence(found.look, found.n))
    elif found.others and (earlier := len(found.settings.earlier)):
        said.append(
            f"This is look number {earlier + 1}: earlier runs tested the same question on some of these queries. "
            "Without planned looks, every further one makes a false claim more likely than the level says (three "
            "looks: about one in ten rather than one in twenty); declare `looks` under [statistics] before the next "
            "one."
        )
    return said


def look_sentence(look: Look, queries: int) -> str:
    """Return which of the planned looks this is, and the level that it has."""
    planned = join([f"{n:,}" for n in look.planned])
    if look.spent:
        what = f"Looks were planned at {planned} queries, and these are {queries:,}"
        return f"{what}: alpha is spent, nothing is claimed."
    kind = "" if queries in look.planned else f"; {queries:,} was not planned, and has what its share of them leaves"
    return (
        f"This is look {look.number} (planned at {planned} queries{kind}): its tests have the level {look.level:.2g}, "
        f"so that all looks together keep {look.alpha:g} (O'Brien & Fleming's boundary, spent as by Lan & DeMets)."
    )
