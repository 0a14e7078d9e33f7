"""An experiment file to a checked experiment."""

from harness.experiment.class_options import PartConfig as PartConfig
from harness.experiment.experiment import Experiment as Experiment
from harness.experiment.experiment_tables import BudgetConfig as BudgetConfig
from harness.experiment.experiment_tables import DatasetConfig as DatasetConfig
from harness.experiment.experiment_tables import JudgeConfig as JudgeConfig
from harness.experiment.experiment_tables import LatencyConfig as LatencyConfig
from harness.experiment.experiment_tables import RelevanceConfig as RelevanceConfig
from harness.experiment.experiment_tables import (
    StoredVectorsConfig as StoredVectorsConfig,
)
from harness.experiment.experiment_tables import Sweep as Sweep
from harness.experiment.experiment_tables import parse_statistics as parse_statistics
from harness.experiment.load import LoadedExperiment as LoadedExperiment
from harness.experiment.load import find_reference as find_reference
from harness.experiment.load import load as load
from harness.experiment.load import load_sets as load_sets
from harness.experiment.locate import locate_dataset as locate_dataset
from harness.experiment.locate import with_run_paths as with_run_paths
from harness.experiment.parse import parse_experiment as parse_experiment
from harness.experiment.parse_measures import MeasuredExperiment as MeasuredExperiment
from harness.experiment.raw_table import RawTable as RawTable
from harness.experiment.retriever_config import NAME_PATTERN as NAME_PATTERN
from harness.experiment.retriever_config import SWEPT_NAME as SWEPT_NAME
from harness.experiment.table_values import unset_variables as unset_variables
from harness.experiment.table_values import walk_texts as walk_texts
