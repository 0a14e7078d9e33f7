"""The file manifest.json.

`manifest` has its record, and `resolved_tables` checks the experiment's tables in it. A
file of another schema is refused, and the problem names the command that runs its
experiment again.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.dataset.written_values import parse_json
from harness.experiment import Experiment, JudgeConfig, PartConfig
from harness.measures import Measure
from harness.records.consistency import manifest_conflicts
from harness.records.facts import stored_judge
from harness.records.jsonl import MAX_NAMED_FAULTS, new_text_file, parse_record
from harness.records.manifest import FileDigest, Manifest, ResolvedExperiment
from harness.records.properties_csv import PROPERTIES_FILE
from harness.records.read_artifact import RUN_AGAIN_REMEDY
from harness.records.resolved_tables import ExperimentTable, RetrieverRecord
from harness.records.table_schema import TABLE_NAMES
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import file_digest
from retrievers.types import stored_facts

MANIFEST_SCHEMA = 2
"""Version of manifest.json; another one is refused."""
MODELLED_TABLES = (
    "dataset",
    "relevance",
    "latency",
    "judge",
    "budget",
    "vectors",
    "sweep",
)
"""The tables of a resolved experiment that are pydantic models, stored by alias."""


def file_digests(folder: Path) -> tuple[FileDigest, ...]:
    """Return the digest of every file of a results folder that is read back."""
    names = [f"{name}.csv" for name in TABLE_NAMES]
    names += ["labels.jsonl", "documents.jsonl", "qrels.trec"]
    # No evaluation without labels; no properties in folders of earlier versions.
    for name in ("evaluation.json", PROPERTIES_FILE):
        if (folder / name).exists():
            names.append(name)
    rankings = (folder / "rankings").glob("*.jsonl")
    names += sorted(f"rankings/{path.name}" for path in rankings)
    return tuple(FileDigest(name, file_digest(folder / name)) for name in names)


def resolved_experiment(
    experiment: Experiment, measures: Sequence[Measure], primary: Measure
) -> ResolvedExperiment:
    """Return the record of an experiment with its defaults.

    Args:
        experiment: the experiment.
        measures: its measures, with all their options.
        primary: the one that decides.
    """
    return ResolvedExperiment(
        name=experiment.name,
        dataset=experiment.dataset,
        primary=str(primary),
        baseline=experiment.baseline,
        measures=tuple(map(str, measures)),
        depth=experiment.depth,
        seed=experiment.seed,
        relevance=experiment.relevance,
        statistics=experiment.statistics,
        latency=experiment.latency,
        judge=_judge_part(experiment.judge),
        retrievers=_retriever_records(experiment),
        budget=experiment.budget,
        vectors=experiment.vectors,
        report=experiment.report,
        sweep=experiment.sweep,
    )


def _judge_part(judge: JudgeConfig | None) -> PartConfig | None:
    if judge is None:
        return None
    options = judge.model_dump(mode="json", by_alias=True, exclude={"kind"})
    return PartConfig(kind=judge.kind, options=options)


def _retriever_records(experiment: Experiment) -> tuple[RetrieverRecord, ...]:
    """Return the retrievers of an experiment, with their defaults."""
    tables = experiment.resolved()["retrievers"]
    return tuple(map(RetrieverRecord.read, tables))


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write manifest.json."""
    content = {"schema": MANIFEST_SCHEMA, **asdict(manifest)}
    for name, outcome in manifest.retrievers.items():
        content["retrievers"][name]["provenance"] = stored_facts(outcome.provenance)
    content["experiment"] = manifest.experiment.options
    content["resolved"] = _stored_experiment(manifest.resolved)
    content["versions"] = dict(manifest.versions)
    content["file_digests"] = dict(manifest.file_digests)
    content["judge"] = stored_judge(manifest.judge)
    content["machine"]["threads"] = dict(manifest.machine.threads)
    if manifest.machine.load is None:  # an unknown load is an absent key
        del content["machine"]["load"]
    quality = content["ledger"]
    content["ledger"] = {"dataset": quality["dataset"], **quality["retrievers"]}
    text = json.dumps(content, ensure_ascii=False, indent=1, default=str)
    with new_text_file(folder / "manifest.json") as file:
        file.write(text + "\n")


def _stored_experiment(resolved: ResolvedExperiment) -> dict[str, Any]:
    """Return an experiment with its defaults as a manifest has it."""
    content = asdict(resolved)
    content["retrievers"] = [
        retriever.table.options for retriever in resolved.retrievers
    ]
    for name in MODELLED_TABLES:
        table = getattr(resolved, name)
        if table is not None:
            content[name] = table.model_dump(mode="json", by_alias=True)
    return content


def read_manifest(folder: Path) -> Manifest:
    """Read manifest.json.

    Raises:
        InputError: the file is missing or of another version, or parts of it are
            missing or of the wrong type.
    """
    path = folder / "manifest.json"
    content = _read_content(folder)
    _refuse_other_version(folder, content)
    text = json.dumps(_with_separate_ledgers(content))
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
        InputError: the file is missing, or it is not JSON.
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


def _refuse_other_version(folder: Path, content: Any) -> None:
    """Refuse a folder that another version made; its experiment says how to make it.

    Raises:
        InputError: the manifest has another schema, or none.
    """
    tables = content if isinstance(content, Mapping) else {}
    version = tables.get("schema")
    if version == MANIFEST_SCHEMA:
        return
    made_by = "another version"
    if isinstance(version, int):
        age = "an earlier" if version < MANIFEST_SCHEMA else "a later"
        made_by = f"{age} version"
    problem = f"was made by {made_by}"
    experiment_file = tables.get("experiment_file")
    command = "harness run"
    if isinstance(experiment_file, str):
        command += f" {shlex.quote(experiment_file)}"
    remedy = f"`{command}` again: the cache makes it free"
    raise InputError(Problem(str(folder), problem, remedy))


def _with_separate_ledgers(content: ExperimentTable) -> ExperimentTable:
    """Return the content with the retrievers' ledgers in a table of their own.

    In the file they are in the same table as that of the data set: no retriever may be
    called "dataset".
    """
    ledgers = content.get("ledger")
    if not isinstance(ledgers, Mapping):
        return content
    retrievers = {name: ledgers[name] for name in ledgers if name != "dataset"}
    dataset = ledgers.get("dataset", {})
    return {**content, "ledger": {"dataset": dataset, "retrievers": retrievers}}
