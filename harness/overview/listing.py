"""A folder of results folders, read: what is whole is listed, and everything else with the reason."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from harness import records
from harness.english import counted, join
from harness.evaluation.identity import identity
from harness.evaluation.question_units import weights_of
from harness.evaluation.readers import primary_of
from harness.evaluation.scores import by_mean
from harness.evaluation.verdict import Verdict
from harness.evaluation.wording import read_verdict
from harness.records import Glance, Manifest
from retrievers.errors import InputError

EMBEDDED = 600_000
"""Scores that a page holds for its comparison of two folders, about 4 MB; the newest folders come first."""


class RetrieverMean(NamedTuple):
    """One retriever's mean in one folder."""

    retriever: str
    identity: str
    """The same wherever the same retriever stands, whatever it is called there."""
    mean: float
    """On the primary measure."""
    low: float | None
    high: float | None


class EmbeddedScores(NamedTuple):
    """The scores of one folder on its primary measure."""

    queries: dict[str, str]
    """Query id -> a digest of its text and its grades: the same where the query asks the same."""
    values: dict[str, list[float | None]]
    """Retriever -> its scores, in the order of the queries; None where undefined."""
    weights: tuple[float, ...] | None = None
    """How much each query counts in a mean; None: all alike."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One results folder of the list."""

    folder: str
    """Its name."""
    manifest: Manifest
    primary: str
    queries: int
    """How many have scores."""
    standings: tuple[RetrieverMean, ...]
    """Highest mean first; empty where nobody judged."""
    worse: int | None
    """How many retrievers are shown worse than the first; None where not all were compared with it."""
    reported: bool = False
    """Whether a report lies in the folder, so that a link leads somewhere."""
    scored: EmbeddedScores | None = None
    """None beyond what a page holds, and where there are none."""


class Unread(NamedTuple):
    """A folder that is none of the list, and why."""

    folder: str
    reason: str


class Listing(NamedTuple):
    """What a folder of results holds."""

    entries: tuple[Entry, ...]
    """Newest first."""
    unread: tuple[Unread, ...]


def holds_results(place: Path) -> bool:
    """Whether a folder is not a results folder itself, and holds one at least, whole or damaged."""
    return place.is_dir() and not (place / "manifest.json").exists() and any(place.glob("*/manifest.json"))


def listing(place: Path) -> Listing:
    """Read every folder of a folder; what cannot be read is not an error, and stands there with its reason."""
    entries, unread, left = [], [], EMBEDDED
    for folder in _folders(place):
        name = folder.relative_to(place).as_posix()
        try:
            glance = records.glance(folder)
            if waiting := glance.manifest.waiting:
                unread.append(Unread(name, f"a run that was stopped, or is under way, without {join(waiting)}"))
            else:
                entries.append(_entry(folder, name, glance))
        except InputError as error:
            unread.append(Unread(name, _reason(folder, error)))
    entries.sort(key=lambda entry: (entry.manifest.started, entry.folder), reverse=True)
    whole = []
    for entry in entries:
        number = len(entry.standings) * entry.queries
        if not 0 < number <= left:
            whole.append(entry)
            continue
        try:
            whole.append(_with_scores(entry, place))
            left -= number
        except InputError as error:
            unread.append(Unread(entry.folder, _reason(place / entry.folder, error)))
    return Listing(tuple(whole), tuple(sorted(unread)))


def _folders(place: Path) -> Iterator[Path]:
    """The folders of a folder, in the place of those that hold the results of several data sets what they hold."""
    for folder in sorted(path for path in place.iterdir() if path.is_dir() and not path.name.startswith(".")):
        if holds_results(folder):
            yield from _folders(folder)
        elif folder.name != "export" or (folder / "manifest.json").exists():  # what `harness export` wrote
            yield folder


def _entry(folder: Path, name: str, glance: Glance) -> Entry:
    manifest, primary = glance.manifest, primary_of(glance.manifest.resolved)
    rows = glance.summary[glance.summary["measure"] == primary].to_dict("records")
    standings = {
        row["retriever"]: RetrieverMean(
            row["retriever"],
            identity(manifest, row["retriever"]),
            row["mean"],
            _known(row.get("ci_low")),
            _known(row.get("ci_high")),
        )
        for row in rows
        if row["retriever"] in manifest.finished and _known(row["mean"]) is not None
    }
    ranked = [standings[name] for name in by_mean({name: one.mean for name, one in standings.items()})]
    queries = manifest.dataset.scored
    if queries is None:  # of before it was kept
        queries = max((int(row["count"]) for row in rows), default=0)
    return Entry(
        name, manifest, primary, queries, tuple(ranked), _worse(ranked, glance, primary),
        (folder / records.LAST_FILE).is_file(),
    )  # fmt: skip


def _worse(standings: list[RetrieverMean], glance: Glance, primary: str) -> int | None:
    """How many are shown worse than the highest mean, by comparisons.csv."""
    if not standings:
        return None
    first = standings[0].retriever
    verdicts: dict[str, Verdict] = {}
    for row in glance.comparisons[glance.comparisons["measure"] == primary].to_dict("records"):
        verdict = read_verdict(str(row["verdict"])).verdict
        if row["a"] == first:
            verdicts[row["b"]] = verdict
        elif row["b"] == first:
            verdicts[row["a"]] = verdict.turned
    if len(verdicts) < len(standings) - 1:
        return None
    return sum(verdict is Verdict.BETTER for verdict in verdicts.values())


def _with_scores(entry: Entry, place: Path) -> Entry:
    """The entry with its scores, once queries, labels and scores of the folder were read."""
    queries, scores = records.read_scored(place / entry.folder, entry.manifest)
    grades = records.grades_in(place / entry.folder)
    wide = scores[scores["measure"] == entry.primary].pivot(index="query_id", columns="retriever", values="value")
    wide = wide.sort_index()
    digests = {
        query: _digest(queries[query].query.text, grades.get(query, {}), queries[query].query.reference)
        for query in wide.index
    }
    values = {name: [_known(value) for value in wide[name].tolist()] for name in entry.manifest.finished}
    declared = entry.manifest.resolved.statistics.get("weight")
    weights = weights_of([queries[query].query for query in digests], declared)
    return replace(entry, scored=EmbeddedScores(digests, values, weights))


def _digest(*values: Any) -> str:
    text = json.dumps(values, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _known(value: Any) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


def _reason(folder: Path, error: InputError) -> str:
    """Why a folder is not listed, without its own path before every problem."""
    if not (folder / "manifest.json").exists() and folder.name.endswith(".unfinished"):
        finished = sum(1 for _ in folder.glob("runs/*.trec"))
        return f"a run that was stopped, or is under way; {counted(finished, 'finished ranking')}"
    problems = [problem._replace(where=problem.where.removeprefix(f"{folder}/")) for problem in error.problems]
    shown = "; ".join(str(problem).removeprefix(f"{folder}: ") for problem in problems[:3]) or str(error)
    return f"{shown}; and {len(problems) - 3} more" if len(problems) > 3 else shown


def settings_of(manifest: Manifest) -> dict[str, str]:
    """What an experiment decided, key by key, as text: what two folders may differ in.

    Tables of retrievers are left out: they are told by what they are.
    """
    resolved = manifest.resolved
    tables: dict[str, Any] = {
        "primary": resolved.primary,
        "baseline": resolved.baseline,
        "measures": ", ".join(resolved.measures),
        "depth": resolved.depth,
        "seed": resolved.seed,
        "dataset": resolved.dataset,
        "relevance": resolved.relevance,
        "statistics": resolved.statistics,
    }
    return {key: text for key, text in _flat("", tables) if text not in ("None", "")}


def _flat(prefix: str, table: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for key, value in table.items():
        rows += _flat(f"{prefix}{key}.", value) if isinstance(value, Mapping) else [(f"{prefix}{key}", str(value))]
    return rows
