"""A data set to an experiment file.

The data set is read and checked first, so that the file says what was recognised; if
anything fails, no new file is left. `template` has the text.
"""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from harness.build.extras import all_extras_named
from harness.dataset import Dataset, DatasetReference, load_dataset, parse_reference
from harness.dataset.choose_reader import parse_sheet_path
from harness.dataset.extras import missing_dataset_extras
from harness.init import spans
from harness.init.find_files import find_files
from harness.init.returned_run import (
    declared_run_column,
    without_run_column,
    write_returned_run,
)
from harness.init.schema_file import write_schema
from harness.init.spans_folder import spans_to_folder
from harness.init.template import (
    ExperimentDraft,
    experiment_text,
)
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import explain_write_errors
from retrievers.texts.languages import preload_language_model

LANGUAGE_SAMPLE = 200
"""Documents that are read to detect the language."""
MAX_NAME_LENGTH = 64
"""Characters that the name of an experiment may have."""


@dataclass(frozen=True, slots=True)
class NewExperiment:
    """An experiment file that was just written."""

    path: Path
    dataset: Dataset
    repeated_files: Sequence[str] = ()
    """Files of labels that are ignored: other files have queries with the same ids."""
    dropped_labels: int = 0
    """Number of labels of unknown documents, and of unknown queries, that it drops."""


def write_experiment(
    reference: Path | DatasetReference, output: Path | None = None
) -> NewExperiment:
    """Read a data set and write an experiment for it.

    Args:
        reference: documents and labelled queries, in any form that `harness.dataset`
            reads.
        output: the file to write; by default it is named after the data set, and in
            the working directory.

    Raises:
        InputError: the folder has no documents or no labels (with an example of them),
            its data has errors, or the file exists or is not named .toml.
    """
    if output is not None and output.suffix != ".toml":
        problem = "does not end in .toml"
        remedy = "name the experiment file NAME.toml"
        raise InputError(Problem(output.as_posix(), problem, remedy))
    preload_language_model()
    if not isinstance(reference, DatasetReference):
        reference = parse_reference(reference)
    name = valid_name(output.stem if output else _dataset_name(reference))
    path = output or Path(f"{name}.toml")
    with _removed_on_error(path, path.with_suffix(""), path.with_suffix(".trec")):
        return _write_parts(reference, name, path)


@contextmanager
def _removed_on_error(*paths: Path) -> Iterator[None]:
    """Remove what the block makes at some paths, if the block fails.

    What was there before stays.
    """
    free_paths = [path for path in paths if not os.path.lexists(path)]
    try:
        yield
    except BaseException:
        for path in free_paths:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        raise


def _write_parts(reference: DatasetReference, name: str, path: Path) -> NewExperiment:
    """Write an experiment, and the data set or the run that it is about.

    A file of spans becomes a folder of documents and queries, with the run of the
    search in production; a column of returned documents becomes such a run.
    """
    production = None
    has_conversations = False
    if spans.holds_spans(reference):
        spans_folder = spans_to_folder(reference, path.with_suffix(""))
        reference, production, has_conversations = spans_folder
    run_column = declared_run_column(reference)
    if run_column:
        reference = without_run_column(reference)
    with all_extras_named(partial(missing_dataset_extras, reference)):
        reference, repeated_files = find_files(reference)
        dataset, dropped_labels = _load_with_dropped_labels(reference)
    if run_column:
        production = path.with_suffix(".trec")
        write_returned_run(reference, dataset, run_column, production)
    draft = ExperimentDraft(
        name=name,
        reference=_with_found_column(reference, dataset),
        dataset=dataset,
        dropped_labels=dropped_labels,
        production=production,
        has_conversations=has_conversations,
    )
    with explain_write_errors(path, "remove it, or name another with --output"):
        path.parent.mkdir(parents=True, exist_ok=True)
        # "x": no link leads to another file.
        with path.open("x", encoding="utf-8") as file:
            file.write(experiment_text(draft))
    write_schema(path.parent)
    return NewExperiment(path, dataset, repeated_files, dropped_labels)


def _with_found_column(
    reference: DatasetReference, dataset: Dataset
) -> DatasetReference:
    """Return a reference that declares the column that was read as labels, if any."""
    if dataset.found_column is None:
        return reference
    return replace(reference, columns=(*reference.columns, dataset.found_column))


def _dataset_name(reference: DatasetReference) -> str:
    """Return the name of a data set: of its folder, file or sheet, or in its scheme."""
    if reference.scheme:
        return Path(reference.name).stem
    if reference.folder.is_file():
        return reference.folder.stem
    sheet_path = parse_sheet_path(reference.name)
    if sheet_path is not None and not reference.folder.exists():
        return f"{sheet_path.workbook.stem}-{sheet_path.sheet}"
    return reference.folder.resolve().name


def valid_name(text: str) -> str:
    """Return the nearest name that an experiment may have."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")
    return name[:MAX_NAME_LENGTH] or "experiment"


def _load_with_dropped_labels(reference: DatasetReference) -> tuple[Dataset, int]:
    """Return the data set, and how many labels of unknown ids were dropped.

    Raises:
        InputError: with all its problems; or more than one label in ten is lost.
    """
    try:
        dataset = load_dataset(
            reference, drop_dangling=True, sample_size=LANGUAGE_SAMPLE
        )
    except InputError:
        if reference.scheme:  # a hub that cannot be reached is not tried again
            raise
        # Without `drop_dangling` all problems are reported.
        return load_dataset(reference), 0
    quality = dataset.data_quality
    unknown_documents = len(quality.get("dangling-document", ()))
    unknown_queries = len(quality.get("dangling-query", ()))
    return dataset, unknown_documents + unknown_queries
