"""Scores compared: the comparisons and the conclusion, wherever the scores come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any

from harness.evaluation.compare import compare, uncounted
from harness.evaluation.conclusion import Conclusion, conclude
from harness.evaluation.costs import by_price
from harness.evaluation.grading import people_judged
from harness.evaluation.readers import scores_of_results
from harness.evaluation.scores import Scores
from harness.evaluation.statements import Statement, conclusion_statements
from harness.evaluation.sweep_choice import SweepChoice, choose
from harness.evaluation.verdict import Comparison
from harness.evaluation.wording import COMPARISON_COLUMNS, comparison_cells, read_comparison
from harness.experiment import Sweep
from harness.records import Manifest, ResolvedExperiment, Results
from harness.stats.intervals import summarize
from harness.stats.power import Look, at_look, look_at
from harness.stats.settings import Settings, check_margin
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.options import checked


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Evaluation:
    """Scores with their comparisons and conclusion; the first measure is the primary one."""

    scores: Scores
    settings: Settings
    """With the level of this look, where looks are planned."""
    comparisons: Mapping[str, tuple[Comparison, ...]]
    """Measure -> its family."""
    conclusion: Conclusion
    """On the primary measure."""
    look: Look | None = None
    """Which of the planned looks this is; None where none are planned."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Retriever -> why it failed."""
    recomputed: bool = False
    """Whether the comparisons of a folder of an earlier version were computed again."""

    @property
    def incomplete(self) -> str:
        """What is missing and who leads among the others, as a head line; "" where every retriever finished."""
        if not self.failed:
            return ""
        every, leads = len(self.failed) + len(self.conclusion.means), self.conclusion.leader
        head = f"Incomplete: {len(self.failed)} of {every} retrievers failed"
        return f"{head}; among those that ran, {leads} leads" if len(self.conclusion.means) > 1 else head

    def statements(self, *, complete: bool = True) -> list[Statement]:
        """What was shown, most important first; nothing is recommended while retrievers are missing."""
        return list(conclusion_statements(self.conclusion, self.settings, complete=complete and not self.failed))

    def sentences(self, *, complete: bool = True) -> list[str]:
        """The texts of the statements."""
        return [statement.text for statement in self.statements(complete=complete)]

    def comparison_rows(self) -> list[dict[str, Any]]:
        """The rows of comparisons.csv."""
        return [comparison_cells(row) for rows in self.comparisons.values() for row in rows]

    def summary_rows(self) -> list[dict[str, Any]]:
        """The rows of summary.csv."""
        return summary_rows(self.scores, self.settings.level)


def evaluate(
    scores: Scores,
    *,
    baseline: str | None,
    settings: Settings,
    low_is_good: AbstractSet[str] = frozenset(),
    step: Callable[[], None] = uncounted,
) -> Evaluation:
    """Compare retrievers on every measure and conclude on the first.

    Args:
        scores: of two retrievers or more.
        baseline: each other retriever is compared with it; None compares all pairs.
        settings: the tests.
        low_is_good: measures of which less is better.
        step: as for `compare`.

    Raises:
        InputError: the baseline has no score; the margin is not below the primary measure's range; no query has a value
            of that measure from everyone.
    """
    if baseline is not None and baseline not in scores.retrievers:
        remedy = did_you_mean(baseline, scores.retrievers)
        raise InputError(Problem("--baseline", f"no retriever is called {baseline!r}", remedy))
    check_margin("--margin", settings.margin, scores.span_of(scores.primary) or None)
    settings = replace(settings, by_people=settings.by_people and scores.by_people)
    scores = replace(scores, low_is_good=frozenset(low_is_good))
    rows = compare(scores, baseline=baseline, settings=settings, step=step)
    return Evaluation(
        scores=scores,
        settings=settings,
        comparisons={m: tuple(row for row in rows if row.measure == m) for m in scores.values},
        conclusion=conclude(scores, rows, settings, baseline=baseline),
    )


@lru_cache(maxsize=1)
def evaluation_of(results: Results) -> Evaluation:
    """Put a results folder's scores in order, read its comparisons, and conclude; what was read last is kept.

    Where the primary measure is undefined for someone, nothing could be decided: such queries are left out.
    """
    manifest, scores = results.manifest, scores_of_results(results)
    scores = scores.only(scores.defined(scores.primary))
    declared = settings_of(manifest)
    labels = {query: labelled.labels for query, labelled in results.queries.items()}
    settings = replace(at_look(declared, scores.n), by_people=people_judged(labels))
    comparisons = _comparisons(results)
    if recomputed := comparisons is None:
        rows = compare(scores, baseline=manifest.resolved.baseline, settings=settings)
        comparisons = {measure: tuple(row for row in rows if row.measure == measure) for measure in scores.values}
    family = comparisons.get(scores.primary, ())
    return Evaluation(
        scores=scores,
        settings=settings,
        comparisons={measure: comparisons.get(measure, ()) for measure in scores.values},
        conclusion=conclude(
            scores, family, settings, baseline=manifest.resolved.baseline, sweep=_choice(results, scores, settings)
        ),
        look=look_at(declared, scores.n),
        failed=manifest.failed,
        recomputed=recomputed,
    )


def sweep_of(resolved: ResolvedExperiment) -> Sweep | None:
    """The sweep of an experiment, None where it has none."""
    return None if resolved.sweep is None else checked(Sweep, resolved.sweep, "resolved.sweep")


def _choice(results: Results, scores: Scores, settings: Settings) -> SweepChoice | None:
    sweep = sweep_of(results.manifest.resolved)
    return None if sweep is None else choose(scores, sweep, settings, by_price(results))


def settings_of(manifest: Manifest) -> Settings:
    """The statistics that a run was made with."""
    return Settings.of(manifest.resolved.statistics, manifest.resolved.seed, manifest.earlier_looks)


def summary_rows(scores: Scores, level: float) -> list[dict[str, Any]]:
    """Describe every retriever on every measure: the rows of summary.csv, none where nothing is defined.

    Args:
        scores: the retrievers in the order of the rows.
        level: confidence of the intervals.
    """
    rows = []
    for name in scores.retrievers:
        for measure, group in scores.values.items():
            if name in group and (kept := scores.defined(measure, name)).any():
                summary = summarize(
                    group[name][kept],
                    level,
                    binary=measure in scores.binary,
                    bounds=scores.range_of(measure),
                    units=scores.only(kept).units,
                )
                rows.append({"retriever": name, "measure": measure, **asdict(summary)})
    return rows


def _comparisons(results: Results) -> dict[str, tuple[Comparison, ...]] | None:
    """Read the rows of comparisons.csv; None where it is older than its newest columns, which verdicts rest on."""
    if not set(COMPARISON_COLUMNS) <= set(results.comparisons.columns):
        return None
    rows: dict[str, list[Comparison]] = {}
    for cells in results.comparisons[list(COMPARISON_COLUMNS)].to_dict("records"):
        # A float that is not itself is NaN: an empty cell.
        row = read_comparison({str(key): value if value == value else None for key, value in cells.items()})
        rows.setdefault(row.measure, []).append(row)
    return {measure: tuple(of) for measure, of in rows.items()}
