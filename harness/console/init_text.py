"""A new experiment file as text."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.english import count_of
from harness.wording.reading import column_lines, reading_line

if TYPE_CHECKING:
    from harness.init.write_experiment import NewExperiment

FEW_QUERIES = 25
"""With fewer queries, most differences stay undecided."""


def new_experiment_lines(experiment: NewExperiment) -> Iterator[str]:
    """Yield how the data set was read, and the next steps."""
    yield from _dataset_lines(experiment)
    path = experiment.path.as_posix()
    # A leading hyphen would be read as an option.
    argument = shlex.quote(f"./{path}" if path.startswith("-") else path)
    mapping = ""
    if experiment.dataset.tables:
        mapping = " with this mapping; change it there, or by --columns"
    yield f"wrote {path}{mapping}; next:"
    yield f"  harness check {argument}"
    yield f"  harness run {argument}"
    if not experiment.dataset.labels:
        command = f"harness pool {shlex.quote(f'results/{experiment.path.stem}')}"
        yield f"  {command}    what to judge; docs/labels.md shows the whole way"


def _dataset_lines(experiment: NewExperiment) -> Iterator[str]:
    """Yield how the data set was read, what is not used, and what it cannot show."""
    from harness.init.template import labelled_queries_text

    dataset = experiment.dataset
    documents = count_of(dataset.document_count, "document")
    queries = labelled_queries_text(dataset)
    yield f"{dataset.path}: {dataset.format}, {documents}, {queries}"
    unread = reading_line(dataset)
    if unread:
        yield unread
    yield from column_lines(dataset)
    repeats = len(dataset.data_quality.get("repeated-row", ()))
    blank = len(dataset.data_quality.get("blank-query", ()))
    if repeats or blank:
        counts = [f"{repeats:,} that repeat an earlier one"] if repeats else []
        counts += [f"{blank:,} blank"] if blank else []
        yield f"rows of queries that are not used: {', '.join(counts)}"
    if experiment.dropped_labels:
        yield _dropped_labels_line(experiment.dropped_labels)
    for query in dataset.data_quality.get("lost-query", ()):
        yield f"a query loses all its labels: {query}"
    if dataset.found_column is not None:
        yield (
            f"column {dataset.found_column.column!r} is read as the labels, "
            "because of its name; change it with --columns"
        )
    if experiment.repeated_files:
        files = ", ".join(experiment.repeated_files)
        yield f"ignored, queries with the same ids again: {files}"
    count = len(dataset.queries)
    if dataset.labels and count < FEW_QUERIES:
        subject = "query is" if count == 1 else "queries are"
        expectation = "unless the differences are large"
        yield f"{count} {subject} too few for a verdict, {expectation}"


def _dropped_labels_line(count: int) -> str:
    """Return how many labels are skipped, and why."""
    reason = "name a missing document or query and are skipped"
    if count == 1:
        reason = "names a missing document or query and is skipped"
    remedy = 'dangling = "drop"; without it, each is an error'
    return f"{count_of(count, 'label')} {reason} ({remedy})"
