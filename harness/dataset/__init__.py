"""Files to checked data sets: one file per format."""

from harness.dataset.dataset_model import BY_MODEL as BY_MODEL
from harness.dataset.dataset_model import Dataset as Dataset
from harness.dataset.dataset_model import DatasetReference as DatasetReference
from harness.dataset.dataset_model import Labels as Labels
from harness.dataset.dataset_model import LabelSource as LabelSource
from harness.dataset.dataset_model import reference_as_json as reference_as_json
from harness.dataset.dataset_model import reference_from_json as reference_from_json
from harness.dataset.dataset_model import reference_of as reference_of
from harness.dataset.files import listing_of as listing_of
from harness.dataset.load import format_of as format_of
from harness.dataset.load import load as load
from harness.dataset.load import suggestion as suggestion
