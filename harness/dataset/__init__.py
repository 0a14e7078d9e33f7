"""Files to checked data sets: one file per format."""

from harness.dataset import references
from harness.dataset.dataset_model import BY_MODEL, Dataset, DatasetReference, Labels, LabelSource, reference_of
from harness.dataset.files import listing_of
from harness.dataset.formats import FORMATS, format_of, suggestion
from harness.dataset.load import load
from harness.dataset.markdown_folder import reading_line
from harness.dataset.understood import column_lines, grade_counts

__all__ = [
    "BY_MODEL",
    "FORMATS",
    "Dataset",
    "DatasetReference",
    "LabelSource",
    "Labels",
    "column_lines",
    "format_of",
    "grade_counts",
    "listing_of",
    "load",
    "reading_line",
    "reference_of",
    "references",
    "suggestion",
]
