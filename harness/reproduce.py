"""A run repeated from its manifest."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import tomli_w

from harness import records
from harness.build.build import build
from harness.english import join_names
from harness.experiment import load, walk_texts, with_run_paths
from harness.pipeline import run
from harness.records import Results
from harness.running.options import RunOptions
from retrievers.errors import InputError, NotConfirmed, Problem
from retrievers.options.user_code import OBJECT_PREFIX

COMPARED_HITS = 10


def approximate_retrievers(results: Results) -> tuple[str, ...]:
    """Return the retrievers that search an approximate index, and those that use them."""
    facts = results.manifest.retrievers
    guessing = {
        name
        for name, one in facts.items()
        if one.provenance.get("search") == "approximate"
    }
    return tuple(
        name
        for name in results.retrievers
        if guessing & {*results.manifest.resolved.retriever_with_parts(name)}
    )


def _found_again(earlier: Results, again: Results, name: str) -> float:
    """The share of a retriever's first ten hits that are there again."""
    before, now = earlier.rankings(name), again.rankings(name)
    total = sum(len(ranking.doc_ids[:COMPARED_HITS]) for ranking in before.values())
    common = sum(
        len({*hits.doc_ids[:COMPARED_HITS]} & {*now[query].doc_ids[:COMPARED_HITS]})
        for query, hits in before.items()
    )
    return common / total if total else 1.0


MEAN_TOLERANCE = 1e-4
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
            return (
                "reproduced: rankings, scores and comparisons are the same to the byte"
            )
        means = f"reproduced: means within {MEAN_TOLERANCE:g} (largest difference {self.largest:.2g}); "
        other = "".join(
            f"; {name} searches an approximate index, which no two builds make alike: "
            f"{100 * share:.1f} % of its first {COMPARED_HITS} hits are there again"
            for name, share in self.approximate.items()
        )
        return f"{means}not the same to the byte: {', '.join(self.differing)}{other}{version_changes(self.versions)}"


def version_changes(versions: Mapping[str, str]) -> str:
    """Return what has changed since, as the end of a sentence; "" where nothing has."""
    return f"; since then: {'; '.join(versions.values())}" if versions else ""


def reproduce(folder: str | Path, options: RunOptions = RunOptions()) -> Reproduction:  # noqa: B008 - immutable
    """Run the experiment of a results folder again, into a temporary folder, and compare.

    A retriever that searches an approximate index, and what uses it, may have other means, since no two builds of one
    are alike: of these the share of hits that are there again is told.

    Args:
        folder: a results folder.
        options: as for a run; where results go is decided here.

    Raises:
        NotShown: a retriever is missing now, or a mean differs by more than 1e-4.
        InputError: the folder, the data set as it is now, or the environment is at fault.
    """
    written = records.read_manifest(Path(folder)).experiment
    if objects := [
        text.removeprefix(OBJECT_PREFIX)
        for _, text in walk_texts(written)
        if text.startswith(OBJECT_PREFIX)
    ]:
        what = f"used objects that only that process had: {join_names(objects)}"
        raise InputError(
            Problem(
                str(folder),
                what,
                "run its notebook again, and compare: harness compare OLD NEW",
            )
        )
    earlier = records.read_results(folder)
    with tempfile.TemporaryDirectory(prefix="reproduce-") as place:
        path = Path(place) / "experiment.toml"
        path.write_text(_written(earlier), encoding="utf-8")
        digest = build(load(path, allow_code=options.allow_code)).dataset.digest
        if digest != earlier.manifest.dataset.digest:
            what = "is not the data of these results: a document, query or label has changed"
            raise InputError(
                Problem(
                    earlier.manifest.dataset.path,
                    what,
                    "restore it, or run the experiment anew",
                )
            )
        again = run(path, options._replace(results=Path(place), only=()))
        return _compared(earlier, again)


def _compared(earlier: Results, again: Results) -> Reproduction:
    if lost := set(earlier.retrievers) - set(again.retrievers):
        reasons = "; ".join(
            f"{name}: {again.manifest.failed.get(name)}" for name in sorted(lost)
        )
        raise NotConfirmed(f"not reproduced: {reasons}")
    files = [f"rankings/{name}.jsonl" for name in earlier.retrievers] + [
        "scores.csv",
        "comparisons.csv",
    ]
    differing = tuple(
        f
        for f in files
        if (earlier.folder / f).read_bytes() != (again.folder / f).read_bytes()
    )
    before, now = (
        one.summary.set_index(["retriever", "measure"])["mean"]
        for one in (earlier, again)
    )
    apart = (before - now.reindex(before.index)).abs().fillna(float("inf"))
    loose = approximate_retrievers(earlier)
    exact = apart[~apart.index.isin(loose, level="retriever")]
    largest = float(exact.max()) if len(exact) else 0.0
    if largest > MEAN_TOLERANCE:
        row: Any = exact.idxmax()
        raise NotConfirmed(
            f"not reproduced: {row[1]} of {row[0]} was {before[row]:.6f} and is now {now.get(row, float('nan')):.6f}"
            f"{version_changes(_changed(earlier, again))}"
        )
    common = {name: _found_again(earlier, again, name) for name in loose}
    return Reproduction(differing, largest, _changed(earlier, again), common)


def _changed(earlier: Results, again: Results) -> dict[str, str]:
    before, now = earlier.manifest.versions, again.manifest.versions
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return {
        name: f"{name} {before.get(name, 'absent')}, now {now.get(name, 'absent')}"
        for name in names
    }


def _written(earlier: Results) -> str:
    """The experiment of a manifest as TOML, the data set found from where it was found then."""
    experiment = with_run_paths(
        earlier.manifest.experiment, Path(earlier.manifest.experiment_file)
    )
    dataset = experiment["dataset"]
    table = {"path": dataset} if isinstance(dataset, str) else dict(dataset)
    reference = records.find_dataset(earlier)
    path = reference.name if reference.scheme else reference.folder.resolve().as_posix()
    experiment["dataset"] = {**table, "path": path}
    return tomli_w.dumps(experiment)
