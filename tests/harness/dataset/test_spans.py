"""Labelled spans of documents, as they are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.dataset import load_dataset
from harness.dataset.reference import declared_columns
from retrievers.passage import Span
from tests.support.small import refusal

TEXT = "Pears grow on trees.\nThey are green, and  sweet."
OTHER = "Cars drive on roads."


def data(folder: Path, **queries: Any) -> Path:
    """A folder with two documents, and queries with a row each."""
    folder.mkdir()
    rows = [{"_id": "pear", "text": TEXT}, {"_id": "car", "text": OTHER}]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    lines = [
        json.dumps({"_id": id_, "text": id_, **row}) for id_, row in queries.items()
    ]
    (folder / "queries.jsonl").write_text("\n".join(lines))
    return folder


def spans_of(folder: Path) -> tuple[Span, ...]:
    """The spans of the query q."""
    return load_dataset(folder).labels["q"].spans


@pytest.mark.parametrize(
    ("written", "spans"),
    [
        ([[0, 5]], [Span("pear", 0, 5)]),
        (["grow on"], [Span("pear", 6, 13)]),
        ("grow on", [Span("pear", 6, 13)]),
        (["trees. They   are"], [Span("pear", 14, 29)]),
        (
            [{"start": 0, "end": 5}, {"text": "green"}],
            [Span("pear", 0, 5), Span("pear", 30, 35)],
        ),
        (
            [{"content": "Pears", "start_index": 0, "end_index": 5}],
            [Span("pear", 0, 5)],
        ),
        (["Pears", [0, 5]], [Span("pear", 0, 5)]),
        ([{"text": "ee", "start": 30, "end": 32}], [Span("pear", 32, 34)]),
        ([{"text": "ee"}], [Span("pear", 16, 18)]),
        ([{"text": " ", "start": 0, "end": 5}], [Span("pear", 0, 5)]),
        ([], []),
    ],
)  # fmt: skip
def test_a_label_has_offsets_or_quotations(
    tmp_path: Path, written: Any, spans: list[Span]
) -> None:
    label = {"document_id": "pear", "spans": written}
    assert spans_of(data(tmp_path / "d", q={"relevant": [label]})) == tuple(spans)


def test_a_relevant_document_without_spans_is_labelled_whole(tmp_path: Path) -> None:
    labels = [
        {"document_id": "pear", "grade": 2, "spans": [[0, 5]]},
        {"document_id": "car", "grade": 1},
    ]
    expected = (Span("car", 0, len(OTHER)), Span("pear", 0, 5))
    assert spans_of(data(tmp_path / "d", q={"relevant": labels})) == expected


def test_rows_of_labels_have_spans(tmp_path: Path) -> None:
    folder = data(tmp_path / "d", q={})
    rows = [
        {"query-id": "q", "corpus-id": "pear", "score": 2, "spans": ["sweet"]},
        {"query-id": "q", "corpus-id": "car", "score": 1, "spans": [[0, 4]]},
    ]
    (folder / "labels.jsonl").write_text("\n".join(map(json.dumps, rows)))
    labels = load_dataset(folder).labels["q"]
    assert labels.spans == (Span("car", 0, 4), Span("pear", 42, 47))
    assert labels.grades == {"pear": 2, "car": 1}


def test_a_cell_of_a_table_has_a_list(tmp_path: Path) -> None:
    folder = data(tmp_path / "d", q={})
    (folder / "queries.jsonl").unlink()
    (folder / "queries.csv").write_text(
        'question,references,corpus_id\nwhy,"[{""content"": ""green""}]",pear\n'
    )
    columns = {
        "query": "question",
        "label_document": "corpus_id",
        "spans": "references",
    }
    from harness.dataset import DatasetReference

    reference = DatasetReference(folder, columns=declared_columns(columns))
    [labels] = load_dataset(reference).labels.values()
    assert labels.spans == (Span("pear", 30, 35),)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (["grow in"], "quotation 'grow in' is not in document 'pear'"),
        ([[40, 49]], "span [40, 49] is not within document 'pear'"),
        ([[5, 5]], "span [5, 5] is not within document 'pear'"),
        ([[-1, 5]], "span [-1, 5] is not within document 'pear'"),
        ([0, 5], "is no list of spans"),
        ([{"start": 3}], "is no list of spans"),
        ([{"start": 6, "end": 10, "text": "Apples"}], "quotation 'Apples' is not in"),
    ],
)
def test_a_span_that_does_not_stand_there_is_named(
    tmp_path: Path, written: Any, message: str
) -> None:
    label = {"document_id": "pear", "spans": written}
    folder = data(tmp_path / "d", q={"relevant": [label]})
    error = str(refusal(load_dataset, folder))
    assert message in error
    assert "queries.jsonl:1" in error


def test_spans_beside_several_documents_are_refused(tmp_path: Path) -> None:
    row = {"relevant": ["pear", "car"], "spans": ["green"]}
    error = refusal(load_dataset, data(tmp_path / "d", q=row))
    assert "has spans and 2 documents" in str(error)


def test_spans_change_the_digest(tmp_path: Path) -> None:
    digests = {
        load_dataset(
            data(
                tmp_path / str(end),
                q={"relevant": [{"id": "pear", "spans": [[0, end]]}]},
            )
        ).digest
        for end in (3, 4)
    }  # fmt: skip
    assert len(digests) == 2
