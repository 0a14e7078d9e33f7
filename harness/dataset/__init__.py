"""Files to checked data sets: one file per format."""

from harness.dataset.load import FORMATS, DatasetReference, load
from harness.dataset.model import Dataset, Labels

__all__ = ["FORMATS", "Dataset", "DatasetReference", "Labels", "load"]
