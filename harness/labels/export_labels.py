"""Labels in other forms.

The labels of a data set become TREC qrels, or a file of queries with their labels.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from harness.dataset import (
    MODEL_LABELLER_PREFIX,
    Dataset,
    Labels,
    reference_as_json,
)
from harness.dataset.judgment import JUDGMENTS_FILE, read_judgments
from harness.labels.pool import check_new_file
from harness.scoring.grades import deciding_labels
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import explain_write_errors, open_text_file
from retrievers.files.trec_files import write_trec_qrels


class ExportedLabels(NamedTuple):
    """How many queries were exported."""

    people_query_count: int
    """Number of queries with labels of no model."""
    model_query_count: int
    """Number of queries that a model judged, completely or in part."""
    omitted_query_count: int
    """Number of queries that a model judged, completely or in part, and that are
    omitted, because people judged others completely.
    """


def export_labels(
    dataset: Dataset,
    path: Path,
    form: Literal["trec", "json"],
    *,
    with_model: bool = False,
) -> ExportedLabels:
    """Write the labels of a data set as TREC qrels, or as `queries.json`.

    Args:
        dataset: with the labels.
        path: a new file.
        form: of the file; JSON has the labellers of each query, models as `llm:NAME`.
        with_model: also write the queries that a model judged, completely or in part,
            if people judged others completely; by default those are omitted, as in
            scores.

    Raises:
        InputError: the file exists or cannot be written, or there are no labels.
    """
    check_new_file(path)  # an existing one may be the file of judgments
    all_labels = {
        query_id: labels for query_id, labels in dataset.labels.items() if labels.judged
    }
    if not all_labels:
        remedy = "use harness labels merge to add some"
        raise InputError(Problem(dataset.path, "has no labels", remedy))
    labels_by_query = all_labels if with_model else deciding_labels(all_labels)
    with explain_write_errors(path):
        if form == "trec":
            qrels = {
                query_id: _grades_of(labels)
                for query_id, labels in labels_by_query.items()
            }
            write_trec_qrels(path, qrels)
        else:
            rows = _query_rows(dataset, labels_by_query)
            with open_text_file(path, "w") as file:
                file.write(json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
    by_model = [
        labels
        for labels in labels_by_query.values()
        if labels.source in ("model", "mixed")
    ]
    return ExportedLabels(
        people_query_count=len(labels_by_query) - len(by_model),
        model_query_count=len(by_model),
        omitted_query_count=len(all_labels) - len(labels_by_query),
    )


def _query_rows(
    dataset: Dataset, labels_by_query: Mapping[str, Labels]
) -> list[dict[str, Any]]:
    """Return the rows of `queries.json`."""
    labellers = _labellers_by_query(dataset, labels_by_query)
    rows: list[dict[str, Any]] = []
    for query in dataset.judged_queries:
        if query.id not in labels_by_query:
            continue
        row: dict[str, Any] = {"id": query.id, "query": query.text}
        if query.history:
            row["history"] = list(query.history)
        row |= reference_as_json(query.reference)
        if query.excluded:
            row["excluded_documents"] = list(query.excluded)
        if query.fields:
            row["fields"] = dict(query.fields)
        if labellers[query.id]:
            row["labelled_by"] = labellers[query.id]
        labels = labels_by_query[query.id]
        row["relevant_documents"] = _labels_as_json(labels)
        if labels.groups is not None and labels.spans:
            row["spans"] = _offsets(labels, labels.spans[0].document)
        rows.append(row)
    return rows


def _labellers_by_query(
    dataset: Dataset, labels_by_query: Mapping[str, Labels]
) -> dict[str, str]:
    """Return the labellers of each query: people by name, models as `llm:NAME`."""
    people: dict[str, set[str]] = {}
    models: dict[str, set[str]] = {}
    path = Path(dataset.path) / JUDGMENTS_FILE
    for judgment in read_judgments([path]) if path.is_file() else []:
        if judgment.design == "next":
            continue
        if judgment.kind == "human":
            people.setdefault(judgment.query_id, set()).add(judgment.judge)
        else:
            model = MODEL_LABELLER_PREFIX + judgment.judge
            models.setdefault(judgment.query_id, set()).add(model)
    labellers: dict[str, str] = {}
    for query_id, labels in labels_by_query.items():
        names: list[str] = []
        if labels.source != "model":
            names += sorted(people.get(query_id, ()))
        if labels.source != "people":
            names += sorted(models.get(query_id, set()).difference(names))
        labellers[query_id] = labels.labelled_by
        # Labels that judgments made have the name of a model without its prefix.
        if labels.source and names:
            labellers[query_id] = ", ".join(names)
    return labellers


def _grades_of(labels: Labels) -> dict[str, int]:
    """Return the grades of labels; 1 for each document of a list."""
    if labels.grades is not None:
        return dict(labels.grades)
    return dict.fromkeys(labels.documents, 1)


def _labels_as_json(labels: Labels) -> object:
    """Return labels as `queries.json` has them.

    Document -> grade; groups of alternatives; or an ordered list. With spans it is a
    list of objects, except of a group, which then has a single document.
    """
    if labels.groups is not None:
        return [list(group) for group in labels.groups]
    if labels.spans:
        return [_label_with_spans(labels, document) for document in labels.documents]
    if labels.grades is not None:
        return dict(labels.grades)
    return list(labels.ranked or ())


def _label_with_spans(labels: Labels, document: str) -> dict[str, Any]:
    label: dict[str, Any] = {"document_id": document}
    if labels.grades is not None:
        label["grade"] = labels.grades[document]
    label["spans"] = _offsets(labels, document)
    return label


def _offsets(labels: Labels, document: str) -> list[list[int]]:
    """Return the start and the end of each labelled span of a document."""
    # An empty document has an empty span, which no file may have.
    return [
        [span.start, span.end]
        for span in labels.spans
        if span.document == document and span.start < span.end
    ]
