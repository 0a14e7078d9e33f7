"""The queries of a run with their labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from harness.dataset import Dataset, Labels, LabelSource, reference_as_json
from harness.records.jsonl import parse_record
from retrievers.types import Claim, Query, Reference, Span

Grade = Annotated[int, Field(gt=-(2**31), lt=2**31)]
"""The range of grades that measures compute with."""


def labelled_query_row(query: Query, dataset: Dataset) -> dict[str, Any]:
    """Return a query with its labels as a line of labels.jsonl."""
    row: dict[str, Any] = {
        "query_id": query.id,
        "text": query.text,
        "fields": dict(query.fields),
    }
    if query.history:
        row["history"] = query.history
    if query.excluded:
        row["excluded"] = query.excluded
    labels = dataset.labels.get(query.id, Labels())
    return {**row, **reference_as_json(query.reference), **labels.as_json()}


class LabelledQuery(NamedTuple):
    """A query with its labels, if it has any, before any grade rule."""

    query: Query
    labels: Labels


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRow:
    """A line of labels.jsonl: a query, and the fields of `Labels` that are set.

    Its keys are those of `Labels.as_json`; `labels` has the names of the fields.
    """

    query_id: str
    text: str
    fields: Mapping[str, str]
    history: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    reference: tuple[str, ...] = ()
    claims: tuple[str | Claim, ...] = ()
    grades: Mapping[str, Grade] | None = None
    ranked: tuple[str, ...] | None = None
    groups: tuple[tuple[str, ...], ...] | None = None
    by: str = ""
    source: LabelSource = ""
    model: Mapping[str, Grade] = field(default_factory=dict)
    given: Mapping[str, Mapping[str, Grade]] = field(default_factory=dict)
    inclusion: Annotated[float, Field(gt=0, le=1)] = 1.0
    population: Annotated[int, Field(ge=0)] = 0
    quoted: bool = False
    spans: tuple[Span, ...] = ()

    @property
    def query(self) -> Query:
        """The query with its reference answers."""
        reference = Reference(self.reference, tuple(map(_read_claim, self.claims)))
        return Query(
            self.query_id,
            self.text,
            self.fields,
            reference,
            self.history,
            self.excluded,
        )

    @property
    def labels(self) -> Labels:
        """The labels of the query."""
        return Labels(
            grades=self.grades,
            ranked=self.ranked,
            groups=self.groups,
            labelled_by=self.by,
            source=self.source,
            model=self.model,
            grades_by_labeller=self.given,
            inclusion=self.inclusion,
            population=self.population,
            quoted=self.quoted,
            spans=self.spans,
        )


def labelled_query_from_json(line: bytes | str) -> LabelledQuery:
    """Read a line of labels.jsonl.

    Raises:
        ValueError: it is not a query with labels.
    """
    row = parse_record(LabelRow, line)
    return LabelledQuery(row.query, row.labels)


def _read_claim(claim: str | Claim) -> Claim:
    return Claim(claim) if isinstance(claim, str) else claim
