"""The record of a run on disk."""

from harness.records.costs_csv import CostRow as CostRow
from harness.records.costs_csv import read_costs as read_costs
from harness.records.costs_csv import read_latencies as read_latencies
from harness.records.costs_csv import write_costs as write_costs
from harness.records.csv_table import TableColumns as TableColumns
from harness.records.csv_table import escape_cell as escape_cell
from harness.records.csv_table import write_table as write_table
from harness.records.data_quality import DataQuality as DataQuality
from harness.records.data_quality import RetrieverQuality as RetrieverQuality
from harness.records.data_quality import quality_of_run as quality_of_run
from harness.records.documents_file import KEPT_RANKS as KEPT_RANKS
from harness.records.documents_file import read_corpus_digests as read_corpus_digests
from harness.records.documents_file import (
    write_labels_and_documents as write_labels_and_documents,
)
from harness.records.earlier_looks import (
    earlier_scored_queries as earlier_scored_queries,
)
from harness.records.environment import Commit as Commit
from harness.records.facts import RetrieverFailure as RetrieverFailure
from harness.records.facts import RetrieverOutcome as RetrieverOutcome
from harness.records.find_dataset import current_dataset as current_dataset
from harness.records.find_dataset import find_dataset as find_dataset
from harness.records.jsonl import new_text_file as new_text_file
from harness.records.jsonl import read_json_lines as read_json_lines
from harness.records.jsonl import reads_by as reads_by
from harness.records.jsonl import write_json_lines as write_json_lines
from harness.records.labels_file import LabelledQuery as LabelledQuery
from harness.records.manifest import DatasetFacts as DatasetFacts
from harness.records.manifest import FileDigest as FileDigest
from harness.records.manifest import Manifest as Manifest
from harness.records.manifest import ResolvedExperiment as ResolvedExperiment
from harness.records.manifest_file import file_digests as file_digests
from harness.records.manifest_file import read_manifest as read_manifest
from harness.records.manifest_file import resolved_experiment as resolved_experiment
from harness.records.manifest_file import write_manifest as write_manifest
from harness.records.properties_csv import DIGITS as DIGITS
from harness.records.properties_csv import DOCUMENT_LENGTH as DOCUMENT_LENGTH
from harness.records.properties_csv import LABELS as LABELS
from harness.records.properties_csv import PROPERTIES_FILE as PROPERTIES_FILE
from harness.records.properties_csv import QUERY_LENGTH as QUERY_LENGTH
from harness.records.properties_csv import QUOTATION_MARKS as QUOTATION_MARKS
from harness.records.properties_csv import RAREST_WORD as RAREST_WORD
from harness.records.properties_csv import SCRIPT as SCRIPT
from harness.records.properties_csv import SHARED_WORDS as SHARED_WORDS
from harness.records.properties_csv import TRUNCATED_BY as TRUNCATED_BY
from harness.records.properties_csv import PropertyKind as PropertyKind
from harness.records.properties_csv import PropertyValue as PropertyValue
from harness.records.properties_csv import QueryProperty as QueryProperty
from harness.records.properties_csv import property_kind as property_kind
from harness.records.properties_csv import value_text as value_text
from harness.records.properties_csv import write_properties as write_properties
from harness.records.read_artifact import refuse_changed_file as refuse_changed_file
from harness.records.read_artifact import unreadable_file as unreadable_file
from harness.records.resolved_tables import RetrieverRecord as RetrieverRecord
from harness.records.results import NO_SCORES as NO_SCORES
from harness.records.results import Results as Results
from harness.records.results import holds_results_folders as holds_results_folders
from harness.records.results import read_complete_manifest as read_complete_manifest
from harness.records.results import read_results as read_results
from harness.records.run import QueryRanking as QueryRanking
from harness.records.run import Run as Run
from harness.records.run import StageLatency as StageLatency
from harness.records.run import write_run_files as write_run_files
from harness.records.staging import REPORT_FILE as REPORT_FILE
from harness.records.staging import publish as publish
from harness.records.staging import staging_folder as staging_folder
from harness.records.staging import staging_path as staging_path
from harness.records.staging import stored_identity as stored_identity
from harness.records.stored_dataset import stored_dataset as stored_dataset
from harness.records.table_schema import TABLE_NAMES as TABLE_NAMES
