"""Level and power of blind preferences: 1,000 simulated judges on one page.

Each judge answers the page of 25 queries that `harness prefer` draws from a run on the
survey templates, and `count_preferences` reads the answers, as it reads a file. A judge
prefers the first retriever's list for a share of all queries, and has no preference for
another share.

python -m benchmarks.preferences [JUDGES]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness.labels.compared_rankings import (
    COMPARED_QUERIES,
    ComparedRankings,
    ComparisonDesign,
    compare_design,
    comparison_digest,
    comparison_steps,
    differing_rankings,
)
from harness.labels.preference_counts import count_preferences
from harness.labels.preferences_file import Preference, Side
from harness.pipeline import run
from harness.records import Results
from harness.running.options import RunOptions
from harness.stats.proportion import detectable_share, sign_test_level
from harness.stats.settings import Looks

JUDGES = 1_000
EXPERIMENT = Path("experiments/quickstart-no-model.toml")
LOOKS = (25, 50)


class Judge(NamedTuple):
    """How a simulated judge answers."""

    share: float
    """Of the queries with a preference, those on which the first list is better."""
    same: float
    """Of all queries, those without a preference."""


class Comparison(NamedTuple):
    """The page that all judges answer."""

    results: Results
    design: ComparisonDesign
    compared: Sequence[ComparedRankings]
    page: str


class Rates(NamedTuple):
    """How often judges' pages claim, and how often the interval has the truth."""

    claimed: float
    covered: float
    same_answers: float
    """Of the repetitions."""


def answer(
    comparison: Comparison, judge: Judge, rng: np.random.Generator, queries: int
) -> list[Preference]:
    """Return one judge's answers; a preference is the same when asked again."""
    shown = comparison.compared[:queries]
    prefers_a = rng.random(queries) < judge.share
    has_none = rng.random(queries) < judge.same
    rows: list[Preference] = []
    for step in comparison_steps(shown, comparison.design.seed):
        pair = shown[step.query]
        side: Side = "left"
        if pair.preferred_is_a("left", step.round) != prefers_a[step.query]:
            side = "right"
        if has_none[step.query]:
            side = "same"
        rows.append(
            Preference(
                query_id=pair.query.id,
                choice=side,
                round=step.round,
                judge="simulated",
                page=comparison.page,
                depth=comparison.design.depth,
                seed=comparison.design.seed,
            )
        )
    return rows


def measure(comparison: Comparison, judge: Judge, judges: int) -> Rates:
    """Return the rates over many judges."""
    rng = np.random.default_rng(0)
    claimed = covered = same_answers = repeated = 0
    for _ in range(judges):
        rows = answer(comparison, judge, rng, COMPARED_QUERIES)
        counts = count_preferences(comparison.results, comparison.design, [rows])
        share = judge.share if counts.leader == comparison.design.a else 1 - judge.share
        claimed += counts.is_shown
        covered += counts.interval.low <= share <= counts.interval.high
        same_answers += counts.self_agreement.same
        repeated += counts.self_agreement.repeated
    return Rates(claimed / judges, covered / judges, same_answers / repeated)


def measure_looks(comparison: Comparison, judge: Judge, judges: int) -> float:
    """Return how often one of two planned looks claims a preference."""
    manifest = comparison.results.manifest
    statistics = replace(manifest.resolved.statistics, looks=Looks(tuple(LOOKS)))
    resolved = replace(manifest.resolved, statistics=statistics)
    results = replace(comparison.results, manifest=replace(manifest, resolved=resolved))
    rng = np.random.default_rng(0)
    claimed = 0
    for _ in range(judges):
        rows = answer(comparison, judge, rng, LOOKS[-1])
        first_ids = {pair.query.id for pair in comparison.compared[: LOOKS[0]]}
        first = [row for row in rows if row.query_id in first_ids]
        files_of_looks = ([first], [first, rows])
        claimed += any(
            count_preferences(results, comparison.design, files).is_shown
            for files in files_of_looks
        )
    return claimed / judges


def open_comparison(folder: Path) -> Comparison:
    """Return the comparison of words and letters on the survey templates."""
    results = run(EXPERIMENT, RunOptions(folder))
    design = compare_design(results, *results.retrievers[:2], depth=5, seed=0)
    compared = differing_rankings(results, design)
    return Comparison(results, design, compared, comparison_digest(compared, design))


def main() -> None:
    """Print the rates beside those that the page states."""
    judges = int(sys.argv[1]) if len(sys.argv) > 1 else JUDGES
    share = detectable_share(COMPARED_QUERIES) or 1.0
    with tempfile.TemporaryDirectory() as folder:
        comparison = open_comparison(Path(folder))
        print(
            f"{judges:,} judges, {COMPARED_QUERIES} of "
            f"{len(comparison.compared)} queries; the page states: level "
            f"{sign_test_level(COMPARED_QUERIES):.3f}, power 0.80 at {share:.2f}"
        )
        for same in (0.0, 0.12):
            for preference in (0.5, share, 0.9):
                judge = Judge(preference, same)
                rates = measure(comparison, judge, judges)
                print(
                    f"preference {preference:.2f}, same {same:.2f}: claimed "
                    f"{rates.claimed:.3f}, interval covers {rates.covered:.3f}, same "
                    f"answer again {rates.same_answers:.2f}"
                )
        for preference in (0.5, share):
            claimed = measure_looks(comparison, Judge(preference, 0.0), judges)
            print(f"looks at {LOOKS}, preference {preference:.2f}: {claimed:.3f}")


if __name__ == "__main__":
    main()
