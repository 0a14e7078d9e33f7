"""TOML in, a frozen and fully checked Experiment out."""

from harness.experiment.blocks import (
    KINDS,
    NAME,
    Block,
    Chunk,
    Dense,
    Derive,
    Encoded,
    Fusion,
    Multivector,
    QueryField,
    Reranked,
    Sparse,
    Standalone,
    inputs,
    origin,
)
from harness.experiment.expanding import expanded, unexpanded
from harness.experiment.locating import locate, with_files_located, with_runs_located
from harness.experiment.model import (
    CacheOptions,
    DatasetTable,
    Experiment,
    JudgeOptions,
    LatencyOptions,
    Question,
    Relevance,
)
from harness.experiment.parsing import parse, statistics_of
from harness.experiment.reading import Loaded, load, question_of, reference_in
from harness.experiment.retired import RETIRED, retired_in
from harness.experiment.trust import uses

__all__ = [
    "KINDS",
    "NAME",
    "RETIRED",
    "Block",
    "CacheOptions",
    "Chunk",
    "DatasetTable",
    "Dense",
    "Derive",
    "Encoded",
    "Experiment",
    "Fusion",
    "JudgeOptions",
    "LatencyOptions",
    "Loaded",
    "Multivector",
    "QueryField",
    "Question",
    "Relevance",
    "Reranked",
    "Sparse",
    "Standalone",
    "expanded",
    "inputs",
    "load",
    "locate",
    "origin",
    "parse",
    "question_of",
    "reference_in",
    "retired_in",
    "statistics_of",
    "unexpanded",
    "uses",
    "with_files_located",
    "with_runs_located",
]
