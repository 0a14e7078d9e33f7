"""The labels of a data set, matched to its documents."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from harness.dataset.labels import Labels
from harness.dataset.read_problems import ReadProblems
from harness.dataset.source import PlacedLabels, SourceLocation
from retrievers.ids import IdMatch

MAX_SHOWN_PASSAGE_LENGTH = 80
"""Characters of a passage in a note: about one line of a terminal."""


class UnmatchedLabel(NamedTuple):
    """A label that names no document."""

    location: SourceLocation
    query_id: str
    document: str


class TableColumn(NamedTuple):
    """A column of a table."""

    file: str
    column: str


@dataclass(slots=True)
class MatchedLabels:
    """The labels of a data set with the ids of their documents.

    Counts are of the names in each query's labels: a name that occurs twice counts
    once.
    """

    labels: dict[str, Labels] = field(default_factory=dict)
    matched_by: Counter[str] = field(default_factory=Counter)
    """How labels identify their documents, by id or title, say -> how many do."""
    unmatched: list[UnmatchedLabel] = field(default_factory=list)
    lost_label_counts: Counter[str] = field(default_factory=Counter)
    """Why labels are lost -> how many are."""
    queries_without_relevant: list[PlacedLabels] = field(default_factory=list)
    """The labels, as they were read, of queries that lose all relevant documents."""

    def add(
        self,
        placed: PlacedLabels,
        matches: Mapping[str, IdMatch],
        problems: ReadProblems,
    ) -> None:
        """Add the labels of a query under document ids.

        A label that names no document is not added: it is counted in
        `lost_label_counts`, and noted in `problems`, from which `harness check` prints
        it.
        """
        labels = placed.labels
        id_by_name: dict[str, str] = {}
        for document, position in _first_positions(labels.documents).items():
            match = matches.get(document)
            if match is not None:
                id_by_name[document] = match.document
                self.matched_by[match.matched_by] += 1
            elif labels.quoted:
                self._note_unknown_passage(placed.query_id, document, problems)
            else:
                location = placed.location.of_document(position)
                label = UnmatchedLabel(location, placed.query_id, document)
                self._note_unknown_document(label, problems)
        if any(id_by_name.get(name) != name for name in labels.documents):
            labels = labels.with_renamed_documents(id_by_name)
        if placed.labels.relevant and not labels.relevant:
            self.queries_without_relevant.append(placed)
        # Quotations have become ids like all others.
        self.labels[placed.query_id] = replace(labels, quoted=False)

    def add_unknown_query(self, placed: PlacedLabels, problems: ReadProblems) -> None:
        """Count the labels of a query that does not exist, and note the query."""
        problems.note("dangling-query", placed.query_id)
        count = len(set(placed.labels.documents))
        self.lost_label_counts["are of queries that do not exist"] += count

    def _note_unknown_passage(
        self, query_id: str, quotation: str, problems: ReadProblems
    ) -> None:
        self.lost_label_counts["are passages that no document holds"] += 1
        passage = " ".join(quotation.split())[:MAX_SHOWN_PASSAGE_LENGTH]
        problems.note("unmatched-context", f"{query_id}: {passage}")

    def _note_unknown_document(
        self, label: UnmatchedLabel, problems: ReadProblems
    ) -> None:
        self.lost_label_counts["name no document"] += 1
        self.unmatched.append(label)
        query = query_or_line(label.query_id, label.location, problems)
        problems.note("dangling-document", f"{query} {label.document}")


def _first_positions(documents: Iterable[str]) -> dict[str, int]:
    """Return the first position of each document, in their order."""
    positions: dict[str, int] = {}
    for position, document in enumerate(documents):
        positions.setdefault(document, position)
    return positions


def query_or_line(
    query_id: str, location: SourceLocation, problems: ReadProblems
) -> str:
    """Return the query's id, or the line if queries have no ids of their own."""
    if has_unnamed_queries(problems, location):
        return str(location)
    return query_id


def has_unnamed_queries(problems: ReadProblems, location: SourceLocation) -> bool:
    """Whether queries of a table have no ids, so that messages show the line."""
    columns = problems.columns_used.get(location.file)
    if columns is None:
        return False
    return {"query_id", "label_query"}.isdisjoint(columns.values())


def columns_read_as(
    problems: ReadProblems, kinds: Iterable[str]
) -> Iterator[TableColumn]:
    """Yield each column that was read as one of these kinds."""
    for file, columns in problems.columns_used.items():
        for column, kind in columns.items():
            if kind in kinds:
                yield TableColumn(file, column)
