"""The file manifest.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from harness.dataset.written_values import parse_json
from harness.records.csv_table import TABLE_NAMES
from harness.records.jsonl import new_text_file
from harness.records.manifest import ExperimentTable, Manifest, ResolvedExperiment
from harness.records.read_artifact import RUN_AGAIN_REMEDY
from harness.stats.settings import without_retired_statistics
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import file_digest


def file_digests(folder: Path) -> dict[str, str]:
    """Return name -> SHA-256 of every file of a results folder that is read back, for the manifest."""
    names = [
        *(f"{name}.csv" for name in TABLE_NAMES),
        "labels.jsonl",
        "documents.jsonl",
        "qrels.trec",
    ]
    names += [
        path.name for path in folder.glob("evaluation.json")
    ]  # missing if there are no labels
    names += sorted(
        f"rankings/{path.name}" for path in (folder / "rankings").glob("*.jsonl")
    )
    return {name: file_digest(folder / name) for name in names}


MANIFEST_SCHEMA = 1


MAX_NAMED_FAULTS = 5
"""Faults of it that one message names."""


def resolved_experiment(tables: ExperimentTable) -> ResolvedExperiment:
    """Make the record of a resolved experiment from its tables."""
    return ResolvedExperiment(
        **{
            **tables,
            **{name: tuple(tables[name]) for name in ("measures", "retrievers")},
        }
    )


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write manifest.json."""
    content = {"schema": MANIFEST_SCHEMA, **asdict(manifest)}
    content["ledger"] = {
        "dataset": content["ledger"]["dataset"],
        **content["ledger"]["retrievers"],
    }
    text = json.dumps(content, ensure_ascii=False, indent=1, default=str)
    with new_text_file(folder / "manifest.json") as file:
        file.write(text + "\n")


def read_manifest(folder: Path) -> Manifest:
    """Read manifest.json.

    Raises:
        InputError: there is none, it is of another version, or parts of it are missing or of the wrong type.
    """
    path = folder / "manifest.json"
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        inner = (
            min(folder.glob("*/manifest.json"), default=None)
            if folder.is_dir()
            else None
        )
        remedy = (
            f"give one that it holds, such as {inner.parent}"
            if inner
            else "give one that `harness run` wrote"
        )
        what = "is not a results folder" if folder.exists() else "does not exist"
        raise InputError(Problem(str(folder), what, remedy)) from None
    except (OSError, ValueError) as error:
        raise InputError(
            Problem(str(path), f"cannot be read as JSON: {error}", RUN_AGAIN_REMEDY)
        ) from None
    version = content.get("schema") if isinstance(content, dict) else None
    if version != MANIFEST_SCHEMA:
        what = f"is of version {version!r}, and this program reads version {MANIFEST_SCHEMA}"
        raise InputError(Problem(str(path), what, RUN_AGAIN_REMEDY))
    try:
        # Through JSON, since only there a list may be a tuple in strict mode.
        return _adapter().validate_json(
            json.dumps(_current(_with_ledger(content))), strict=True
        )
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
            for fault in error.errors()[:MAX_NAMED_FAULTS]
        ]
        raise InputError(
            Problem(str(path), f"is damaged: {'; '.join(faults)}", RUN_AGAIN_REMEDY)
        ) from None


@cache
def _adapter() -> TypeAdapter[Manifest]:
    return TypeAdapter(Manifest)


def _current(content: ExperimentTable) -> ExperimentTable:
    """The tables of an earlier version in today's words: without retired keys, and with defaults that have changed."""
    resolved, written = content.get("resolved"), content.get("experiment")
    if not isinstance(resolved, Mapping) or not isinstance(written, Mapping):
        return content
    statistics = without_retired_statistics(resolved.get("statistics") or {})
    # Of earlier versions signed ranks decided by default, and gave way to sign flips where there were weights.
    undeclared = "test" not in (written.get("statistics") or {})
    if statistics.get("test") == "wilcoxon" and (
        undeclared or statistics.get("weight")
    ):
        del statistics["test"]
    written = {key: value for key, value in written.items() if key != "cache"}
    return {
        **content,
        "experiment": written,
        "resolved": {**resolved, "statistics": statistics},
    }


def _with_ledger(content: ExperimentTable) -> ExperimentTable:
    """The ledgers of the retrievers in a table of their own: in the file they are beside that of the data set."""
    ledger = content.get("ledger")
    if not isinstance(ledger, Mapping):
        return content
    retrievers = {name: kept for name, kept in ledger.items() if name != "dataset"}
    return {
        **content,
        "ledger": {"dataset": ledger.get("dataset", {}), "retrievers": retrievers},
    }
