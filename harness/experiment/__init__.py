"""TOML in, a frozen and fully checked Experiment out."""

from harness.experiment.blocks import NAME as NAME
from harness.experiment.blocks import SWEPT as SWEPT
from harness.experiment.experiment_file import Loaded as Loaded
from harness.experiment.experiment_file import load as load
from harness.experiment.experiment_file import load_sets as load_sets
from harness.experiment.experiment_file import locate as locate
from harness.experiment.experiment_file import reference_in as reference_in
from harness.experiment.experiment_file import with_runs_located as with_runs_located
from harness.experiment.model import DatasetTable as DatasetTable
from harness.experiment.model import Experiment as Experiment
from harness.experiment.model import JudgeOptions as JudgeOptions
from harness.experiment.model import Question as Question
from harness.experiment.model import Relevance as Relevance
from harness.experiment.model import StoredVectors as StoredVectors
from harness.experiment.model import parse as parse
from harness.experiment.model import statistics_of as statistics_of
from harness.experiment.option_tables import strings as strings
from harness.experiment.option_tables import unset as unset
from harness.experiment.variants import Sweep as Sweep
