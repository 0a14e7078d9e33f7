"""TOML in, a frozen and fully checked Experiment out."""

from harness.experiment.model import (
    KINDS,
    NAME,
    Block,
    Chunk,
    DatasetTable,
    Dense,
    Experiment,
    Fusion,
    LatencyOptions,
    Question,
    Relevance,
    Reranked,
    Standalone,
    Statistics,
    inputs,
)
from harness.experiment.reading import Loaded, expanded, load, locate, parse, question_of

__all__ = [
    "KINDS",
    "NAME",
    "Block",
    "Chunk",
    "DatasetTable",
    "Dense",
    "Experiment",
    "Fusion",
    "LatencyOptions",
    "Loaded",
    "Question",
    "Relevance",
    "Reranked",
    "Standalone",
    "Statistics",
    "expanded",
    "inputs",
    "load",
    "locate",
    "parse",
    "question_of",
]
