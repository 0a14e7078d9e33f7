"""Files to checked data sets: one file per format."""

from harness.dataset import expected
from harness.dataset.converted import reading_line
from harness.dataset.formats import FORMATS, format_of, suggestion
from harness.dataset.load import load
from harness.dataset.model import BY_MODEL, Dataset, Labels, LabelSource
from harness.dataset.reference import DatasetReference, reference_of

__all__ = [
    "BY_MODEL",
    "FORMATS",
    "Dataset",
    "DatasetReference",
    "LabelSource",
    "Labels",
    "expected",
    "format_of",
    "load",
    "reading_line",
    "reference_of",
    "suggestion",
]
