"""A run and its results folder: the one format on disk."""

from harness.records.lines import read_jsonl, write_jsonl
from harness.records.manifest import (
    Commit,
    DatasetFacts,
    Ledger,
    Manifest,
    ResolvedExperiment,
    RetrieverFacts,
    RetrieverLedger,
    TieRange,
    read_manifest,
    resolved_experiment,
    write_manifest,
)
from harness.records.results import LabelledQuery, Results, read
from harness.records.run import (
    SHOWN,
    SNIPPET,
    Run,
    StageLatency,
    ledger,
    read_rankings,
    write_evidence,
    write_run,
)
from harness.records.tables import read_costs, table_digests, write_costs, write_table

__all__ = [
    "SHOWN",
    "SNIPPET",
    "Commit",
    "DatasetFacts",
    "LabelledQuery",
    "Ledger",
    "Manifest",
    "ResolvedExperiment",
    "Results",
    "RetrieverFacts",
    "RetrieverLedger",
    "Run",
    "StageLatency",
    "TieRange",
    "ledger",
    "read",
    "read_costs",
    "read_jsonl",
    "read_manifest",
    "read_rankings",
    "resolved_experiment",
    "table_digests",
    "write_costs",
    "write_evidence",
    "write_jsonl",
    "write_manifest",
    "write_run",
    "write_table",
]
