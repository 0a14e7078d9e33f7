"""What a data set is once it has been checked: documents, queries, labels, and a digest of them all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from retrievers.types import Document, Query


@dataclass(frozen=True, slots=True)
class Labels:
    """What was said about one query, kept as it was said: exactly one of the three forms is set."""

    grades: Mapping[str, int] | None = None
    """Document id -> grade; judged documents that are not relevant have grade 0 or below."""
    ranked: tuple[str, ...] | None = None
    """Relevant documents, best first."""
    groups: tuple[tuple[str, ...], ...] | None = None
    """Relevant documents as alternatives (inner) that are all needed (outer)."""
    by: str = ""
    """Who labelled it, where that is known."""

    @property
    def documents(self) -> tuple[str, ...]:
        """The ids that the labels name, in their order; an id twice in a list is named twice."""
        if self.grades is not None:
            return tuple(self.grades)
        if self.groups is not None:
            return tuple(doc for group in self.groups for doc in group)
        return self.ranked or ()

    @property
    def relevant(self) -> tuple[str, ...]:
        """The ids that are relevant: all that are listed, or graded 1 and above."""
        if self.grades is not None:
            return tuple(doc for doc, grade in self.grades.items() if grade >= 1)
        return self.documents

    def keeping(self, known: Callable[[str], bool]) -> Labels:
        """The same labels without the documents that are not known.

        >>> Labels(ranked=("a", "x", "b")).keeping({"a", "b"}.__contains__).ranked
        ('a', 'b')
        """
        if self.grades is not None:
            return Labels(grades={d: g for d, g in self.grades.items() if known(d)}, by=self.by)
        if self.groups is not None:
            groups = (tuple(filter(known, group)) for group in self.groups)
            return Labels(groups=tuple(group for group in groups if group), by=self.by)
        return Labels(ranked=tuple(filter(known, self.ranked or ())), by=self.by)

    def as_json(self) -> dict[str, Any]:
        """The labels as the results folder and the digest spell them."""
        forms: dict[str, Any] = {"grades": self.grades, "ranked": self.ranked, "groups": self.groups}
        said = {form: value for form, value in forms.items() if value is not None}
        return {**said, "by": self.by} if self.by else said

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Labels:
        """Read what `as_json` wrote."""
        return cls(
            grades=said.get("grades"),
            ranked=None if said.get("ranked") is None else tuple(said["ranked"]),
            groups=None if said.get("groups") is None else tuple(map(tuple, said["groups"])),
            by=said.get("by", ""),
        )


@dataclass(frozen=True, slots=True)
class Dataset:
    """A checked data set; the corpus is read anew each time, never kept in memory."""

    path: str
    format: str
    queries: tuple[Query, ...]
    """The queries that are asked: judged, with at least one relevant document, in file order."""
    judged: tuple[Query, ...]
    """All judged queries, those without a relevant document too."""
    labels: Mapping[str, Labels]
    """The labels of every judged query, by query id."""
    count: int
    """How many documents there are."""
    digest: str
    """SHA-256 of documents, queries and labels."""
    corpus_digest: str
    """SHA-256 of the documents alone: what an index is named after."""
    ledger: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What was counted and not refused: kind -> ids."""
    read_documents: Callable[[], Iterator[Document]] = field(repr=False, default=lambda: iter(()))

    def documents(self) -> Iterator[Document]:
        """A fresh pass over the corpus, in file order."""
        return self.read_documents()

    def texts(self, ids: Collection[str]) -> dict[str, Document]:
        """The documents with these ids, found in one pass."""
        wanted = set(ids)
        return {doc.id: doc for doc in self.documents() if doc.id in wanted}
