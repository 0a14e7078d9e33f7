"""A run repeated from its manifest."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from harness import records
from harness.build.build import build
from harness.english import join_names
from harness.experiment import load, walk_texts, with_run_paths
from harness.pipeline import run_built
from harness.records import Results, RetrieverFailure
from harness.running.options import RunOptions
from harness.wording.failures import failure_lines
from retrievers.errors import InputError, NotConfirmed, Problem
from retrievers.options.user_code import OBJECT_PREFIX

COMPARED_HITS = 10
"""First hits of a ranking that are compared if an index is approximate."""
MEAN_TOLERANCE = 1e-4
"""Means count as equal up to this difference: other machines round otherwise."""


@dataclass(frozen=True, slots=True)
class VersionChange:
    """A package whose version differs between two runs."""

    package: str
    before: str
    """The earlier version; "absent" if it was not installed."""
    now: str

    def __str__(self) -> str:
        return f"{self.package} {self.before}, now {self.now}"


@dataclass(frozen=True, slots=True)
class Reproduction:
    """How a repeated run differs from the first one."""

    differing_files: tuple[str, ...]
    """Files of rankings, scores and comparisons that are not equal byte by byte."""
    largest_difference: float
    """Largest difference of the mean of a retriever that searches exactly."""
    versions: tuple[VersionChange, ...]
    approximate: Mapping[str, float] = field(default_factory=dict)
    """Retriever of `approximate_retrievers` -> share of its first hits that recur."""


def reproduce(
    folder: str | Path,
    options: RunOptions = RunOptions(),  # noqa: B008
) -> Reproduction:
    """Repeat the run of a results folder, in a temporary folder, and compare.

    A retriever that searches an approximate index, and those that use it, may have
    other means, since no two builds of such an index are equal: the share of their hits
    that recur is returned.

    Args:
        folder: a results folder.
        options: as for a run; all retrievers run, and results go to the temporary
            folder, whatever `only` and `results` say.

    Raises:
        NotConfirmed: a retriever failed now, or a mean of one that searches exactly
            differs by more than 1e-4.
        BackendError: every retriever failed now.
        InputError: a problem of the folder, the data set as it is now, or the
            environment.
    """
    _refuse_objects(Path(folder))
    earlier = records.read_results(folder)
    for name in _compared_files(earlier):
        records.refuse_changed_file(earlier.folder, earlier.manifest, name)
    with tempfile.TemporaryDirectory(prefix="reproduce-") as temporary:
        path = Path(temporary) / "experiment.toml"
        path.write_text(_experiment_text(earlier), encoding="utf-8")
        loaded = load(path, allow_code=options.allow_code)
        built = build(loaded)
        _refuse_changed_data(earlier, built.dataset.digest)
        run_options = options._replace(
            results=Path(temporary), only=(), looks=earlier.manifest.earlier_looks
        )
        again = run_built(loaded, built, run_options)
        return _compare(earlier, again)


def _refuse_objects(folder: Path) -> None:
    """Refuse an experiment with objects that existed only in its process."""
    experiment = records.read_manifest(folder).experiment
    objects = [
        text.removeprefix(OBJECT_PREFIX)
        for _, text in walk_texts(experiment.options)
        if text.startswith(OBJECT_PREFIX)
    ]
    if objects:
        message = f"used objects that only that process had: {join_names(objects)}"
        remedy = "run its notebook again, and compare: harness compare OLD NEW"
        raise InputError(Problem(str(folder), message, remedy))


def _experiment_text(earlier: Results) -> str:
    """The experiment of a manifest as TOML, with the data set where it is now."""
    manifest = earlier.manifest
    experiment = with_run_paths(manifest.experiment, Path(manifest.experiment_file))
    dataset = experiment.get("dataset")
    table = {"path": dataset} if isinstance(dataset, str) else dict(dataset)
    reference = records.find_dataset(earlier)
    if reference.scheme:
        table["path"] = reference.name
    else:
        table["path"] = reference.folder.resolve().as_posix()
    return tomli_w.dumps(experiment.with_options(dataset=table).options)


def _refuse_changed_data(earlier: Results, digest: str) -> None:
    """Raise InputError if the digest of the data set is another one than before."""
    dataset = earlier.manifest.dataset
    if digest != dataset.digest:
        message = (
            "is not the data of these results: a document, query or label has changed"
        )
        remedy = "restore it, or run the experiment anew"
        raise InputError(Problem(dataset.path, message, remedy))


def _compare(earlier: Results, again: Results) -> Reproduction:
    _require_retrievers(earlier, again)
    approximate = approximate_retrievers(earlier)
    return Reproduction(
        _differing_files(earlier, again),
        _largest_difference(earlier, again, approximate),
        _version_changes(earlier, again),
        {name: _share_of_recurring_hits(earlier, again, name) for name in approximate},
    )


def _require_retrievers(earlier: Results, again: Results) -> None:
    """Raise NotConfirmed if a retriever failed now that had finished."""
    failed = sorted(set(earlier.retrievers) - set(again.retrievers))
    if failed:
        reasons = dict(again.manifest.failed)
        failures = [RetrieverFailure(name, reasons.get(name, "")) for name in failed]
        raise NotConfirmed(f"not reproduced: {'; '.join(failure_lines(failures))}")


def _compared_files(results: Results) -> list[str]:
    files = [f"rankings/{name}.jsonl" for name in results.retrievers]
    return [*files, "scores.csv", "comparisons.csv"]


def _differing_files(earlier: Results, again: Results) -> tuple[str, ...]:
    return tuple(
        file
        for file in _compared_files(earlier)
        if (earlier.folder / file).read_bytes() != (again.folder / file).read_bytes()
    )


def _largest_difference(
    earlier: Results, again: Results, approximate: tuple[str, ...]
) -> float:
    """The largest difference of a mean, of the retrievers that search exactly.

    Raises:
        NotConfirmed: it is above the tolerance.
    """
    keys = ["retriever", "measure"]
    means_before = earlier.summary.set_index(keys)["mean"]
    means_now = again.summary.set_index(keys)["mean"].reindex(means_before.index)
    differences = (means_before - means_now).abs().fillna(float("inf"))
    differences[means_before.isna() & means_now.isna()] = 0.0  # undefined both times
    is_exact = ~differences.index.isin(approximate, level="retriever")
    differences = differences[is_exact]
    if not len(differences):
        return 0.0
    largest = float(differences.max())
    if largest > MEAN_TOLERANCE:
        key: Any = differences.idxmax()
        retriever, measure = key
        changes = version_changes_text(_version_changes(earlier, again))
        raise NotConfirmed(
            f"not reproduced: {measure} of {retriever} was {means_before[key]:.6f} "
            f"and is now {means_now[key]:.6f}{changes}"
        )
    return largest


def version_changes_text(changes: tuple[VersionChange, ...]) -> str:
    """Return the packages that changed, as the end of a sentence; "" if none did."""
    if not changes:
        return ""
    return f"; since then: {'; '.join(str(change) for change in changes)}"


def _version_changes(earlier: Results, again: Results) -> tuple[VersionChange, ...]:
    before = earlier.manifest
    now = again.manifest
    changes: list[VersionChange] = []
    installed = [*before.versions, *now.versions]
    for package in dict.fromkeys(version.name for version in installed):
        old_version = before.version_of(package) or "absent"
        new_version = now.version_of(package) or "absent"
        if old_version != new_version:
            changes.append(VersionChange(package, old_version, new_version))
    return tuple(changes)


def approximate_retrievers(results: Results) -> tuple[str, ...]:
    """Return the retrievers that search an approximate index, or use one that does."""
    manifest = results.manifest
    approximate = {
        name
        for name, outcome in manifest.retrievers.items()
        if outcome.provenance.vectors.search == "approximate"
    }
    return tuple(
        name
        for name in results.retrievers
        if approximate.intersection(manifest.resolved.retriever_with_parts(name))
    )


def _share_of_recurring_hits(earlier: Results, again: Results, retriever: str) -> float:
    """The share of a retriever's first hits that it returned again; 1 without a hit."""
    rankings_now = again.rankings(retriever)
    total = 0
    recurring = 0
    for query_id, ranking in earlier.rankings(retriever).items():
        hits = set(ranking.doc_ids[:COMPARED_HITS])
        hits_now = set(rankings_now[query_id].doc_ids[:COMPARED_HITS])
        total += len(hits)
        recurring += len(hits & hits_now)
    return recurring / total if total else 1.0
