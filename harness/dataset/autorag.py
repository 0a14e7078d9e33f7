"""AutoRAG's pair of Parquet files: qa (qid, query, retrieval_gt, …) and corpus (doc_id, contents, metadata).

`retrieval_gt` lists groups, all needed, each of alternatives; a plain list is one group (AutoRAG 0.3.27).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.dataset.archives import is_zip
from harness.dataset.columns import Columns, plain_id
from harness.dataset.files import listing, pick
from harness.dataset.label_rows import list_of
from harness.dataset.model import Labels
from harness.dataset.reference import DatasetReference
from harness.dataset.source import Findings, Place
from harness.dataset.tables import RowSource, TableSource, rows_of
from retrievers.errors import Problem
from retrievers.types import Document, Query

COLUMNS = {"document_id": "doc_id", "text": "contents", "query_id": "qid", "query": "query"}


def matches(reference: DatasetReference) -> bool:
    """Whether a folder holds the pair."""
    if reference.scheme or not (reference.folder.is_dir() or is_zip(reference.folder)):
        return False
    return listing(reference.folder).keys() >= {"qa.parquet", "corpus.parquet"}


def read(reference: DatasetReference) -> AutoRagSource:
    """Open the pair."""
    files = listing(reference.folder)
    corpus, qa = (pick(files, name, reference.folder) for name in ("corpus.parquet", "qa.parquet"))
    rows = rows_of(qa)
    return AutoRagSource(TableSource(rows_of(corpus), rows, None, Columns(COLUMNS)), rows)


@dataclass(frozen=True, slots=True)
class AutoRagSource:
    """The pair of files."""

    tables: TableSource
    asked: RowSource

    def documents(self, problems: Findings) -> Iterator[tuple[Place, Document]]:
        """The rows of the corpus."""
        return self.tables.documents(problems)

    def queries(self, problems: Findings) -> Iterator[tuple[Place, Query]]:
        """The questions."""
        for place, query in self.tables.queries(problems):
            yield place, Query(query.id, query.text, reference=query.reference)

    def labels(self, problems: Findings) -> Iterator[tuple[Place, str, Labels]]:
        """The groups of `retrieval_gt`."""
        for place, row in self.asked(Findings()):
            query, groups = plain_id(row.get("qid")), row.get("retrieval_gt")
            if query is None:
                continue  # told with the queries
            if groups is None:
                problems.append(Problem(str(place), "'retrieval_gt' is missing", "groups of document ids"))
                continue
            flat = [groups] if isinstance(groups, str) else groups
            if isinstance(flat, list) and flat and not any(isinstance(one, list) for one in flat):
                flat = [flat]
            labels = list_of(flat, place, problems)
            if labels is not None:
                yield place, query, labels if labels.groups is not None else Labels(groups=())
