"""Labels in other forms."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from harness.dataset import MODEL_LABELLER_PREFIX, Dataset, Labels
from harness.dataset.judgment import JUDGMENTS_FILE, read_judgments
from harness.english import count_of
from harness.labels.pool import check_new_file
from harness.scoring.grades import deciding_labels
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import explain_write_errors, open_text_file
from retrievers.files.trec_files import write_trec_qrels


class ExportedLabels(NamedTuple):
    """Queries with labels."""

    people: int
    model: int
    """Queries that a model judged, completely or in part."""
    omitted: int
    """Queries of a model that were omitted, because people judged others."""

    def sentence(self) -> str:
        """The result as a sentence."""
        of_model = (
            f", {self.model:,} of them judged by a model, completely or in part"
            if self.model
            else ""
        )
        left = (
            f"; {self.omitted:,} that a model judged are omitted (--with-model writes them too)"
            if self.omitted
            else ""
        )
        return (
            f"labels of {count_of(self.people + self.model, 'query')}{of_model}{left}"
        )


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
        with_model: also write the labels of models if there are labels of people; by default those are omitted, as in
            scores.

    Raises:
        InputError: the file exists or cannot be written, or there are no labels.
    """
    check_new_file(path)  # it may be the file of judgments
    there = {query: given for query, given in dataset.labels.items() if given.judged}
    if not there:
        raise InputError(
            Problem(
                dataset.path, "has no labels", "use harness labels merge to add some"
            )
        )
    labels = there if with_model else deciding_labels(there)
    with explain_write_errors(path):
        if form == "trec":
            write_trec_qrels(
                path, {query: _grades(given) for query, given in labels.items()}
            )
        else:
            by = _labellers(dataset, labels)
            rows = [
                {
                    "id": query.id,
                    "query": query.text,
                    **({"fields": dict(query.fields)} if query.fields else {}),
                    **({"labelled_by": by[query.id]} if by[query.id] else {}),
                    "relevant_documents": _written(labels[query.id]),
                }
                for query in dataset.judged_queries
                if query.id in labels
            ]
            with open_text_file(path, "w") as file:
                file.write(json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
    by_model = sum(given.source in ("model", "mixed") for given in labels.values())
    return ExportedLabels(len(labels) - by_model, by_model, len(there) - len(labels))


def _labellers(dataset: Dataset, labels: Mapping[str, Labels]) -> dict[str, str]:
    """The labellers of each query: people by name, models as `llm:NAME`."""
    beside = Path(dataset.path) / JUDGMENTS_FILE
    people: dict[str, set[str]] = {}
    models: dict[str, set[str]] = {}
    for one in read_judgments([beside]) if beside.is_file() else []:
        if one.design != "next":
            of, name = (
                (people, one.judge)
                if one.kind == "human"
                else (models, MODEL_LABELLER_PREFIX + one.judge)
            )
            of.setdefault(one.query_id, set()).add(name)
    by = {}
    for query, given in labels.items():
        persons = people.get(query, set()) if given.source != "model" else set()
        named = persons | (
            models.get(query, set()) if given.source != "people" else set()
        )
        by[query] = (
            ", ".join([*sorted(persons), *sorted(named - persons)])
            if given.source and named
            else given.labelled_by
        )
    return by


def _grades(labels: Labels) -> dict[str, int]:
    return (
        dict(labels.grades)
        if labels.grades is not None
        else dict.fromkeys(labels.documents, 1)
    )


def _written(labels: Labels) -> object:
    if labels.grades is not None:
        return dict(labels.grades)
    return (
        [list(group) for group in labels.groups]
        if labels.groups is not None
        else list(labels.ranked or ())
    )
