"""Files to checked data sets."""

from harness.dataset.choose_reader import detect_format as detect_format
from harness.dataset.choose_reader import suggest_path as suggest_path
from harness.dataset.dataset import Dataset as Dataset
from harness.dataset.labels import MODEL_LABELLER_PREFIX as MODEL_LABELLER_PREFIX
from harness.dataset.labels import Labels as Labels
from harness.dataset.labels import LabelSource as LabelSource
from harness.dataset.listing import list_reference as list_reference
from harness.dataset.load import load_dataset as load_dataset
from harness.dataset.reference import DatasetReference as DatasetReference
from harness.dataset.reference import DeclaredColumn as DeclaredColumn
from harness.dataset.reference import parse_reference as parse_reference
from harness.dataset.reference_answers import reference_as_json as reference_as_json
from harness.dataset.returned_documents import (
    read_returned_documents as read_returned_documents,
)
