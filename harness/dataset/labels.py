"""The labels of a query.

They stay in the form in which they were given; `harness.scoring.grades` makes grades of
lists by the rule that an experiment declares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple

from retrievers.types import Span

LabelSource = Literal["", "people", "model", "mixed"]
"""Who labelled: "people" if judgments were merged; else "" is people, or unknown."""
FIELD_SEPARATOR = "#"
"""Separates the values of several fields, or columns, that identify a document.

For example `manual.pdf#3`.
"""
MODEL_LABELLER_PREFIX = "llm:"
"""Begins the name of a model in `labelled_by` of a file of queries."""
STORED_NAMES = {"labelled_by": "by", "grades_by_labeller": "given"}
"""Field -> its key in labels.jsonl, which the digest of a data set covers."""


class WrittenSpan(NamedTuple):
    """Characters of a document as a label gives them: offsets, or a quotation."""

    document: str
    start: int | None
    """None if there is only a quotation."""
    end: int | None
    quotation: str = ""
    """Text of the document; empty if there are only offsets."""


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of one query as they were given: in one of three forms, or none."""

    grades: Mapping[str, int] | None = None
    """Document id -> grade; a grade of 0 or below is judged and not relevant."""
    ranked: tuple[str, ...] | None = None
    """Relevant documents, best first."""
    groups: tuple[tuple[str, ...], ...] | None = None
    """Relevant documents as alternatives (inner) that are all needed (outer)."""
    labelled_by: str = ""
    """The labellers, if they are known."""
    source: LabelSource = ""
    """Whose judgments were merged: people's, a model's, or of both ("mixed")."""
    model: Mapping[str, int] = field(default_factory=dict)
    """A model's grades for a query that people judged too; they are not labels."""
    grades_by_labeller: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The grades of each person, if several judged the query."""
    inclusion: float = 1.0
    """The probability that the query was in the sample that people judged."""
    population: int = 0
    """Number of queries from which that sample was drawn.

    0 if it is unknown, or differs between samples.
    """
    quoted: bool = False
    """Whether labels may quote documents; False once the documents are matched."""
    spans: tuple[Span, ...] = ()
    """The labelled characters of documents, in order."""
    written_spans: tuple[WrittenSpan, ...] = ()
    """The spans as they are written; empty once they are placed in their documents."""

    @property
    def documents(self) -> tuple[str, ...]:
        """The ids in the labels, in their order; an id may occur twice in a list."""
        if self.grades is not None:
            return tuple(self.grades)
        if self.groups is not None:
            return tuple(doc for group in self.groups for doc in group)
        return self.ranked or ()

    @property
    def judged(self) -> bool:
        """Whether the query has labels in any form."""
        forms = (self.grades, self.ranked, self.groups)
        return any(form is not None for form in forms)

    @property
    def relevant(self) -> tuple[str, ...]:
        """The ids that are relevant: all that are listed, or graded 1 and above."""
        if self.grades is not None:
            return tuple(doc for doc, grade in self.grades.items() if grade >= 1)
        return self.documents

    def with_renamed_documents(self, id_by_name: Mapping[str, str]) -> Labels:
        """Return the labels with other document ids; documents without one are dropped.

        If two documents get the same id, the better rank or grade stays. Labels of AND
        groups lose a group if all its documents are dropped.

        >>> labels = Labels(grades={"p1": 1, "p2": 3, "p3": 2})
        >>> labels.with_renamed_documents({"p1": "a", "p2": "a"}).grades
        {'a': 3}
        """
        renamed = replace(
            self,
            model=_rename_grades(self.model, id_by_name),
            grades_by_labeller={
                person: _rename_grades(grades, id_by_name)
                for person, grades in self.grades_by_labeller.items()
            },
            written_spans=tuple(
                span._replace(document=id_by_name[span.document])
                for span in self.written_spans
                if span.document in id_by_name
            ),
        )
        if self.grades is not None:
            return replace(renamed, grades=_rename_grades(self.grades, id_by_name))
        if self.groups is not None:
            groups = [_rename_documents(group, id_by_name) for group in self.groups]
            return replace(renamed, groups=tuple(filter(None, groups)))
        if self.ranked is not None:
            return replace(renamed, ranked=_rename_documents(self.ranked, id_by_name))
        return renamed

    def as_json(self) -> dict[str, Any]:
        """Return the labels as the results folder and the digest store them."""
        return {
            STORED_NAMES.get(field.name, field.name): getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != getattr(NO_LABELS, field.name)
        }


def _rename_documents(
    documents: Iterable[str], id_by_name: Mapping[str, str]
) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(id_by_name[doc] for doc in documents if doc in id_by_name)
    )


def _rename_grades(
    grades: Mapping[str, int], id_by_name: Mapping[str, str]
) -> dict[str, int]:
    renamed: dict[str, int] = {}
    for document, grade in grades.items():
        document_id = id_by_name.get(document)
        if document_id is not None:
            renamed[document_id] = max(grade, renamed.get(document_id, grade))
    return renamed


NO_LABELS = Labels()


def label_source(labelled_by: str) -> LabelSource:
    """Return whose labels a file has, by its `labelled_by`; empty if people's.

    >>> label_source("ann, ben"), label_source("llm:judge-1")
    ('', 'model')
    >>> label_source("ann, llm:judge-1")
    'mixed'
    """
    labellers = [name.strip() for name in labelled_by.split(",")]
    are_models = [name.startswith(MODEL_LABELLER_PREFIX) for name in labellers]
    if all(are_models):
        return "model"
    return "mixed" if any(are_models) else ""
