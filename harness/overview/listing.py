"""A folder of results folders, read: what is whole is listed, and everything else with the reason."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from harness import records
from harness.english import counted
from harness.evaluation.evaluation import evaluation_of
from harness.evaluation.readers import primary_of
from harness.evaluation.scores import by_mean
from harness.evaluation.verdict import Verdict
from harness.evaluation.wording import read_verdict
from harness.records import Glance, Manifest
from retrievers.errors import InputError


class RetrieverMean(NamedTuple):
    """One retriever's mean in one folder, on the primary measure."""

    retriever: str
    mean: float


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
    verdict: str
    """Of the first, in words; "" where it was compared with nobody."""
    reported: bool = False
    """Whether a report lies in the folder, so that a link leads somewhere."""


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
    entries, unread = [], []
    for folder in _folders(place):
        name = folder.relative_to(place).as_posix()
        try:
            entries.append(_entry(folder, name, records.glance(folder)))
        except InputError as error:
            unread.append(Unread(name, _reason(folder, error)))
    entries.sort(key=lambda entry: (entry.manifest.started, entry.folder), reverse=True)
    return Listing(tuple(entries), tuple(sorted(unread)))


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
    means = {
        row["retriever"]: row["mean"]
        for row in rows
        if row["retriever"] in manifest.finished and not math.isnan(row["mean"])
    }
    standings = tuple(RetrieverMean(name, means[name]) for name in by_mean(means))
    queries = manifest.dataset.scored
    if queries is None:  # of before it was kept
        queries = max((int(row["count"]) for row in rows), default=0)
    return Entry(
        name, manifest, primary, queries, standings, _verdict(standings, _verdicts(folder, glance, primary)),
        (folder / records.LAST_FILE).is_file(),
    )  # fmt: skip


def _verdicts(folder: Path, glance: Glance, primary: str) -> list[tuple[str, str, Verdict]]:
    """The pairs of a measure with their verdicts; those of an earlier version are computed again from the scores."""
    rows = glance.comparisons[glance.comparisons["measure"] == primary]
    if "p_wilcoxon" in rows:
        return [(row["a"], row["b"], read_verdict(str(row["verdict"])).verdict) for row in rows.to_dict("records")]
    return [(row.a, row.b, row.verdict) for row in evaluation_of(records.read(folder)).comparisons.get(primary, ())]


def _verdict(standings: Sequence[RetrieverMean], pairs: Sequence[tuple[str, str, Verdict]]) -> str:
    """What the pairs show of the highest mean; "" where it was compared with nobody."""
    if not standings:
        return ""
    first = standings[0].retriever
    verdicts: dict[str, Verdict] = {}
    for a, b, verdict in pairs:
        if a == first:
            verdicts[b] = verdict
        elif b == first:
            verdicts[a] = verdict.turned
    worse = [name for name, verdict in verdicts.items() if verdict is Verdict.BETTER]
    if len(verdicts) == 1 and worse:
        return f"better than {worse[0]}"
    return f"better than {len(worse)} of {len(verdicts)}" if worse else "undecided" if verdicts else ""


def _reason(folder: Path, error: InputError) -> str:
    """Why a folder is not listed, without its own path before every problem."""
    if not (folder / "manifest.json").exists() and folder.name.endswith(".unfinished"):
        finished = sum(1 for _ in folder.glob("runs/*.trec"))
        return f"a run that was stopped, or is under way; {counted(finished, 'finished ranking')}"
    problems = [problem._replace(where=problem.where.removeprefix(f"{folder}/")) for problem in error.problems]
    shown = "; ".join(str(problem).removeprefix(f"{folder}: ") for problem in problems[:3]) or str(error)
    return f"{shown}; and {len(problems) - 3} more" if len(problems) > 3 else shown
