"""TOML in, a frozen and fully checked Experiment out."""

from harness.experiment.model import (
    BM25,
    KINDS,
    NAME,
    Block,
    Chunk,
    DatasetTable,
    Dense,
    Experiment,
    Fusion,
    Latency,
    Question,
    Relevance,
    Reranked,
    Statistics,
    inputs,
)
from harness.experiment.reading import Loaded, expanded, load, locate, parse, question_of

__all__ = [
    "BM25",
    "KINDS",
    "NAME",
    "Block",
    "Chunk",
    "DatasetTable",
    "Dense",
    "Experiment",
    "Fusion",
    "Latency",
    "Loaded",
    "Question",
    "Relevance",
    "Reranked",
    "Statistics",
    "expanded",
    "inputs",
    "load",
    "locate",
    "parse",
    "question_of",
]
