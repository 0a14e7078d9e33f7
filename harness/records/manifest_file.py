"""The file manifest.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.dataset.written_values import parse_json
from harness.records.consistency import manifest_conflicts
from harness.records.jsonl import MAX_NAMED_FAULTS, new_text_file, parse_record
from harness.records.manifest import Manifest, ResolvedExperiment
from harness.records.properties_csv import PROPERTIES_FILE
from harness.records.read_artifact import RUN_AGAIN_REMEDY
from harness.records.resolved_tables import ExperimentTable
from harness.records.table_schema import TABLE_NAMES
from harness.stats.settings import without_retired_statistics
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import file_digest

MANIFEST_SCHEMA = 1


def file_digests(folder: Path) -> dict[str, str]:
    """Return name -> SHA-256 of every file of a results folder that is read back."""
    names = [f"{name}.csv" for name in TABLE_NAMES]
    names += ["labels.jsonl", "documents.jsonl", "qrels.trec"]
    # No evaluation without labels; no properties in folders of earlier versions.
    for name in ("evaluation.json", PROPERTIES_FILE):
        if (folder / name).exists():
            names.append(name)
    rankings = (folder / "rankings").glob("*.jsonl")
    names += sorted(f"rankings/{path.name}" for path in rankings)
    return {name: file_digest(folder / name) for name in names}


def resolved_experiment(tables: ExperimentTable) -> ResolvedExperiment:
    """Return the record of a resolved experiment from its tables."""
    sequences = {name: tuple(tables[name]) for name in ("measures", "retrievers")}
    return ResolvedExperiment(**{**tables, **sequences})


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write manifest.json."""
    content = {"schema": MANIFEST_SCHEMA, **asdict(manifest)}
    quality = content["ledger"]
    content["ledger"] = {"dataset": quality["dataset"], **quality["retrievers"]}
    text = json.dumps(content, ensure_ascii=False, indent=1, default=str)
    with new_text_file(folder / "manifest.json") as file:
        file.write(text + "\n")


def read_manifest(folder: Path) -> Manifest:
    """Read manifest.json.

    Raises:
        InputError: there is none, it is of another version, or parts of it are missing
            or of the wrong type.
    """
    path = folder / "manifest.json"
    content = _read_content(folder)
    version = content.get("schema") if isinstance(content, dict) else None
    if version != MANIFEST_SCHEMA:
        reads = f"this program reads version {MANIFEST_SCHEMA}"
        problem = f"is of version {version!r}, and {reads}"
        raise InputError(Problem(str(path), problem, RUN_AGAIN_REMEDY))
    text = json.dumps(_current_tables(_with_separate_ledgers(content)))
    try:
        manifest = parse_record(Manifest, text)
        conflicts = [*manifest_conflicts(manifest)]
        if conflicts:
            raise ValueError("; ".join(conflicts[:MAX_NAMED_FAULTS]))
    except (ValueError, RecursionError) as error:
        problem = f"is damaged: {error}"
        raise InputError(Problem(str(path), problem, RUN_AGAIN_REMEDY)) from None
    return manifest


def _read_content(folder: Path) -> Any:
    """Return the content of manifest.json.

    Raises:
        InputError: there is none, or it is not JSON.
    """
    path = folder / "manifest.json"
    try:
        return parse_json(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(_missing_manifest(folder)) from None
    except (OSError, ValueError) as error:
        problem = f"cannot be read as JSON: {error}"
        raise InputError(Problem(str(path), problem, RUN_AGAIN_REMEDY)) from None


def _missing_manifest(folder: Path) -> Problem:
    """Return the problem that a folder has no manifest."""
    problem = "is not a results folder" if folder.exists() else "does not exist"
    remedy = "give one that `harness run` wrote"
    if folder.is_dir():
        inner_manifest = min(folder.glob("*/manifest.json"), default=None)
        if inner_manifest is not None:
            remedy = f"give one that it holds, such as {inner_manifest.parent}"
    return Problem(str(folder), problem, remedy)


def _current_tables(content: ExperimentTable) -> ExperimentTable:
    """Return the content without retired keys, and with defaults that have changed."""
    resolved = content.get("resolved")
    experiment = content.get("experiment")
    if not isinstance(resolved, Mapping) or not isinstance(experiment, Mapping):
        return content
    if not _has_statistics(resolved) or not _has_statistics(experiment):
        return content
    statistics = without_retired_statistics(resolved.get("statistics") or {})
    # In earlier versions signed ranks decided by default, and sign flips with weights.
    is_default = "test" not in (experiment.get("statistics") or {})
    uses_ranks = statistics.get("test") == "wilcoxon"
    if uses_ranks and (is_default or statistics.get("weight")):
        del statistics["test"]
    return {
        **content,
        "experiment": {key: experiment[key] for key in experiment if key != "cache"},
        "resolved": {**resolved, "statistics": statistics},
    }


def _has_statistics(tables: ExperimentTable) -> bool:
    """Whether [statistics] is a table, or absent."""
    return isinstance(tables.get("statistics") or {}, Mapping)


def _with_separate_ledgers(content: ExperimentTable) -> ExperimentTable:
    """Return the content with the retrievers' ledgers in a table of their own.

    In the file they are in the same table as that of the data set.
    """
    ledgers = content.get("ledger")
    if not isinstance(ledgers, Mapping):
        return content
    retrievers = {name: ledgers[name] for name in ledgers if name != "dataset"}
    dataset = ledgers.get("dataset", {})
    return {**content, "ledger": {"dataset": dataset, "retrievers": retrievers}}
