"""What was said about a query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

LabelSource = Literal["", "people", "model", "mixed"]
FIELD_SEPARATOR = "#"
"""Between the values of several fields, or columns, by which labels name documents: `manual.pdf#3`."""
MODEL_LABELLER_PREFIX = "llm:"
"""Stands before the name of a model in `labelled_by` of a file of queries: its labels are no person's."""


@dataclass(frozen=True, slots=True)
class Labels:
    """What was said about one query, kept as it was said: one of the three forms, none if it has no labels."""

    grades: Mapping[str, int] | None = None
    """Document id -> grade; judged documents that are not relevant have grade 0 or below."""
    ranked: tuple[str, ...] | None = None
    """Relevant documents, best first."""
    groups: tuple[tuple[str, ...], ...] | None = None
    """Relevant documents as alternatives (inner) that are all needed (outer)."""
    labelled_by: str = ""
    """Who labelled it, where that is known."""
    source: LabelSource = ""
    """Whose grades these are, where they were merged from judgments: people's, a model's, or of both ("mixed")."""
    model: Mapping[str, int] = field(default_factory=dict)
    """What a model said about a query that people judged, too; it is not a label."""
    grades_by_labeller: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """What each person gave, where several judged the query."""
    inclusion: float = 1.0
    """The probability with which the query came into the sample that people judged."""
    population: int = 0
    """How many queries that sample was drawn from; 0 where that is not known, or several samples differ in it."""
    quoted: bool = False
    """Whether documents may be named by passages of their texts, as they are until the documents are known."""

    @property
    def documents(self) -> tuple[str, ...]:
        """The ids that the labels name, in their order; an id twice in a list is named twice."""
        if self.grades is not None:
            return tuple(self.grades)
        if self.groups is not None:
            return tuple(doc for group in self.groups for doc in group)
        return self.ranked or ()

    @property
    def judged(self) -> bool:
        """Whether anybody said what is relevant."""
        return (
            self.grades is not None
            or self.ranked is not None
            or self.groups is not None
        )

    @property
    def relevant(self) -> tuple[str, ...]:
        """The ids that are relevant: all that are listed, or graded 1 and above."""
        if self.grades is not None:
            return tuple(doc for doc, grade in self.grades.items() if grade >= 1)
        return self.documents

    def with_renamed_documents(self, names: Mapping[str, str]) -> Labels:
        """The same labels with documents under other ids; those without one are left out.

        What becomes one document keeps its best place or grade.

        >>> Labels(grades={"p1": 1, "p2": 3, "p3": 2}).with_renamed_documents({"p1": "a", "p2": "a"}).grades
        {'a': 3}
        """

        def listed(documents: Iterable[str]) -> tuple[str, ...]:
            return tuple(dict.fromkeys(names[doc] for doc in documents if doc in names))

        kept = replace(self, model=_renamed(self.model, names))
        if self.grades is not None:
            return replace(kept, grades=_renamed(self.grades, names))
        if self.groups is not None:
            return replace(kept, groups=tuple(filter(None, map(listed, self.groups))))
        return (
            kept if self.ranked is None else replace(kept, ranked=listed(self.ranked))
        )

    def as_json(self) -> dict[str, Any]:
        """The labels as the results folder and the digest spell them."""
        return {
            STORED_NAMES.get(field.name, field.name): getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != getattr(NO_LABELS, field.name)
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Labels:
        """Read what `as_json` wrote."""
        stored = {name: STORED_NAMES.get(name, name) for name in cls.__slots__}
        return cls(
            **{name: _frozen(row[key]) for name, key in stored.items() if key in row}
        )


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


STORED_NAMES = {"labelled_by": "by", "grades_by_labeller": "given"}
"""Field -> its key in labels.jsonl, which the digest of a data set covers."""
NO_LABELS = Labels()


def label_source(by: str) -> LabelSource:
    """Whose labels a file holds, by its `labelled_by`; "" if it names people, or no one.

    >>> label_source("ann, ben"), label_source("llm:judge-1"), label_source("ann, llm:judge-1")
    ('', 'model', 'mixed')
    """
    models = [name.strip().startswith(MODEL_LABELLER_PREFIX) for name in by.split(",")]
    return "model" if all(models) else "mixed" if any(models) else ""


def _renamed(grades: Mapping[str, int], names: Mapping[str, str]) -> dict[str, int]:
    renamed: dict[str, int] = {}
    for name, grade in (
        (names[doc], grade) for doc, grade in grades.items() if doc in names
    ):
        renamed[name] = max(grade, renamed.get(name, grade))
    return renamed
