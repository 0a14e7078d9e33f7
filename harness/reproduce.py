"""Run an experiment again from its manifest, and see whether the same comes out."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import tomli_w

from harness import records
from harness.english import join
from harness.evaluation.csv_views import tables_of
from harness.evaluation.evaluate import RunInputs, evaluate_run
from harness.evaluation.grading import grade_labels, with_bare_queries
from harness.evaluation.readers import Judged, claims_of_results, lists_of, score_lists
from harness.experiment import Question, load, strings, with_runs_located
from harness.pipeline import run
from harness.records import Results
from harness.running.check import prepare
from harness.running.forecast import Options
from retrievers.errors import InputError, NotShown, Problem
from retrievers.types import Ranking
from retrievers.user_objects import OBJECT

CUTOFF = 10


class IndexDrift(NamedTuple):
    """How far the first ten hits of two builds of one index agree, over all queries."""

    retriever: str
    common: float
    """The share of the earlier hits that are there again."""
    least: int | None
    """So many hits the two builds must share on the sample that both compared with exact search; None: not known."""
    shared: int
    """So many they do share there."""

    @property
    def too_far(self) -> bool:
        """Whether an index over the same vectors cannot explain it."""
        return self.least is not None and self.shared < self.least


def approximate(results: Results) -> tuple[str, ...]:
    """Return the retrievers that search an approximate index, and those that use them."""
    known: set[str] = set()
    resolved = results.manifest.resolved
    made_of = {name: set(resolved.made_of(name)) for name in resolved.blocks}
    for _ in made_of:  # as often as a chain of blocks can be long
        for name, parts in made_of.items():
            facts = results.manifest.retrievers[name].provenance
            if facts.get("search") == "approximate" or parts & known:
                known.add(name)
    return tuple(name for name in results.retrievers if name in known)


def drifts_of(earlier: Results, again: Results) -> Iterator[IndexDrift]:
    """Compare the approximate retrievers of two runs of one experiment on the same data.

    An index of the same vectors that has the recall r against exact search shares at least r + s - 1 of the exact hits
    with another that has the recall s: fewer mean that something else has changed.
    """
    for name in approximate(earlier):
        if name not in again.retrievers:
            continue
        before, now = earlier.rankings(name), again.rankings(name)
        total = sum(len(ranking.doc_ids[:CUTOFF]) for ranking in before.values())
        common = sum(_common(ranking, now[query]) for query, ranking in before.items())
        sample, least = _sample(earlier, again, name)
        asked = islice((query for query, ranking in before.items() if len(ranking)), sample)
        shared = sum(_common(before[query], now[query]) for query in asked)
        yield IndexDrift(name, common / total if total else 1.0, least, shared)


def _common(a: Ranking, b: Ranking) -> int:
    return len(set(a.doc_ids[:CUTOFF]) & set(b.doc_ids[:CUTOFF]))


def _sample(earlier: Results, again: Results, name: str) -> tuple[int, int | None]:
    """How many queries were searched exactly too, and how many hits the two must share there."""
    counts = [one.manifest.ledger.retrievers[name].counts for one in (earlier, again)]
    exact = [one.get("search-exact", {}) for one in counts]
    # Where the hits are not kept as they were searched, nothing follows from the recall.
    resolved = earlier.manifest.resolved
    changed = any("collapse" in one for one in counts) or resolved.dataset.get("exclude_self")
    changed = changed or any(resolved.blocks[name].get(key) for key in ("of", "rerank"))
    known = all("shared_hits_at_10" in one for one in exact)
    if changed or not known or len({one["exact_hits_at_10"] for one in exact}) > 1:
        return 0, None
    stages = [row for row in earlier.cost_rows if row["retriever"] == name]
    sample = next((int(row["texts"]) for row in stages if row["stage"] == "search-exact"), 0)
    least = sum(one["shared_hits_at_10"] for one in exact) - exact[0]["exact_hits_at_10"]
    return sample, max(0, int(least))


TOLERANCE = 1e-4
"""Largest difference of a mean that still counts as the same: other machines and library versions round otherwise."""


class Reproduction(NamedTuple):
    """How an experiment came out again."""

    differing: tuple[str, ...]
    """Files of rankings, scores and comparisons that are not the same to the byte."""
    largest: float
    """Largest difference of a mean, of the retrievers that search exactly."""
    versions: Mapping[str, str]
    """Package -> "old, now new", for those that have changed since."""
    approximate: Mapping[str, float] = MappingProxyType({})
    """Retriever that searches an approximate index -> share of its first ten hits that are there again."""

    def sentence(self) -> str:
        """What was found, in words."""
        if not self.differing:
            return "reproduced: rankings, scores and comparisons are the same to the byte"
        means = f"reproduced: means within {TOLERANCE:g} (largest difference {self.largest:.2g}); "
        other = "".join(
            f"; {name} searches an approximate index, which no two builds make alike: "
            f"{100 * share:.1f} % of its first {CUTOFF} hits are there again"
            for name, share in self.approximate.items()
        )
        return f"{means}not the same to the byte: {', '.join(self.differing)}{other}{changes(self.versions)}"


def changes(versions: Mapping[str, str]) -> str:
    """Return what has changed since, as the end of a sentence; "" where nothing has."""
    return f"; since then: {'; '.join(versions.values())}" if versions else ""


def reproduce(folder: str | Path, options: Options = Options()) -> Reproduction:  # noqa: B008 - immutable
    """Run the experiment of a results folder again, into a temporary folder, and compare.

    A retriever that searches an approximate index, and what uses it, may have other means: no two builds of such
    an index are alike. Its hits must be as near to the earlier ones as the recall of both against exact search implies.

    Args:
        folder: a results folder.
        options: as for a run; where results go is decided here.

    Raises:
        NotShown: a retriever is missing now, a mean differs by more than 1e-4, an approximate index gives hits that
            its recall does not explain, or the folder contradicts itself.
        InputError: the folder, the data set as it is now, or the environment is at fault.
    """
    written = records.read_manifest(Path(folder)).experiment
    if objects := [text.removeprefix(OBJECT) for _, text in strings(written) if text.startswith(OBJECT)]:
        what = f"used objects that only that process had: {join(objects)}"
        raise InputError(Problem(str(folder), what, "run its notebook again, and compare: harness compare OLD NEW"))
    earlier = records.read(folder)
    with tempfile.TemporaryDirectory(prefix="reproduce-") as place:
        path = Path(place) / "experiment.toml"
        path.write_text(_written(earlier), encoding="utf-8")
        digest = prepare(load(path, code=options.code)).dataset.digest
        if digest != earlier.manifest.dataset.digest:
            what = "is not the data of these results: a document, query or label has changed"
            raise InputError(Problem(earlier.manifest.dataset.path, what, "restore it, or run the experiment anew"))
        _check_consistency(earlier, load(path, code=options.code).question)
        again = run(path, options._replace(results=Path(place), only=()))
        return _compared(earlier, again)


def _check_consistency(results: Results, question: Question) -> None:
    """Score the folder's own rankings again: scores, means and tests must follow from them.

    Raises:
        NotShown: a file says something else than the rankings and labels beside it.
    """
    labels = {query_id: judged.labels for query_id, judged in results.queries.items()}
    queries = {query_id: judged.query for query_id, judged in results.queries.items()}
    graded = with_bare_queries(grade_labels(labels, question.experiment.relevance), queries.values(), question)
    if any(measure.claimed for measure in question.measures):
        graded = graded._replace(claims=claims_of_results(results, question.measures))
    judged = Judged(question.measures, question.primary, graded, queries, question.experiment.statistics)
    scores = score_lists(judged, lists_of(results))
    evaluation = evaluate_run(RunInputs(results.manifest, scores, graded, queries, {})) if scores.n else None
    right = tables_of(scores, evaluation)
    for name, keys, columns, slack in (
        ("scores", ["retriever", "query_id", "measure"], ["value"], 1e-9),
        ("summary", ["retriever", "measure"], ["mean"], TOLERANCE),
        ("comparisons", ["measure", "a", "b"], ["mean_difference", "p_value", "p_adjusted"], 1e-9),
    ):
        written = getattr(results, name).set_index(keys)[columns].astype(float).sort_index()
        followed = pd.DataFrame(right[name]).set_index(keys)[columns].astype(float).sort_index()
        near = partial(np.allclose, rtol=1e-6, atol=slack, equal_nan=True)
        if not written.index.equals(followed.index) or not near(written, followed):
            what = "does not follow from the folder's rankings and labels"
            # ContextPrecision by claims, until an unknown verdict that changes nothing left it defined
            if written.index.equals(followed.index) and near(written.fillna(followed), followed):
                what = "leaves undefined what is defined now; run the experiment again"
            raise NotShown(f"not reproduced: {results.folder / (name + '.csv')}: {what}")


def _compared(earlier: Results, again: Results) -> Reproduction:
    if lost := set(earlier.retrievers) - set(again.retrievers):
        reasons = "; ".join(f"{name}: {again.manifest.failed.get(name)}" for name in sorted(lost))
        raise NotShown(f"not reproduced: {reasons}")
    files = [f"rankings/{name}.jsonl" for name in earlier.retrievers] + ["scores.csv", "comparisons.csv"]
    differing = tuple(f for f in files if (earlier.folder / f).read_bytes() != (again.folder / f).read_bytes())
    drifts = list(drifts_of(earlier, again))
    if drift := next((one for one in drifts if one.too_far), None):
        raise NotShown(
            f"not reproduced: {drift.retriever} has {drift.shared:,} of its first {CUTOFF} hits in common with the "
            f"earlier ones; indexes of the same vectors with their recall have {drift.least:,} or more"
            f"{changes(_changed(earlier, again))}"
        )
    before, now = _means(earlier, drifts), _means(again, drifts)
    apart = (before - now.reindex(before.index)).abs().fillna(float("inf"))
    largest = float(apart.max()) if len(apart) else 0.0
    common = {one.retriever: one.common for one in drifts}
    reproduction = Reproduction(differing, largest, _changed(earlier, again), common)
    if reproduction.largest > TOLERANCE:
        row: Any = apart.idxmax()
        raise NotShown(
            f"not reproduced: {row[1]} of {row[0]} was {before[row]:.6f} and is now {now.get(row, float('nan')):.6f}"
            f"{changes(reproduction.versions)}"
        )
    return reproduction


def _means(results: Results, drifts: Sequence[IndexDrift]) -> pd.Series[float]:
    """The means of the retrievers that search exactly."""
    exact = results.summary[~results.summary["retriever"].isin([one.retriever for one in drifts])]
    return exact.set_index(["retriever", "measure"])["mean"]


def _changed(earlier: Results, again: Results) -> dict[str, str]:
    before, now = earlier.manifest.versions, again.manifest.versions
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return {name: f"{name} {before.get(name, 'absent')}, now {now.get(name, 'absent')}" for name in names}


def _written(earlier: Results) -> str:
    """The experiment of a manifest as TOML, the data set found from where it was found then."""
    experiment = with_runs_located(earlier.manifest.experiment, Path(earlier.manifest.experiment_file))
    dataset = experiment["dataset"]
    table = {"path": dataset} if isinstance(dataset, str) else dict(dataset)
    reference = records.data_reference(earlier)
    path = reference.name if reference.scheme else reference.folder.resolve().as_posix()
    experiment["dataset"] = {**table, "path": path}
    return tomli_w.dumps(experiment)
