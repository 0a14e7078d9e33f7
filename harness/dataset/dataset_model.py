"""Where a data set is, and what it is once it has been checked: documents, queries, labels, a digest of them all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from retrievers.errors import InputError, Problem
from retrievers.types import Claim, Document, Query, Reference
from retrievers.user_objects import OBJECT

SCHEMES = ("hf:", "irds:", OBJECT)
"""Beginnings of names that are not paths: Hugging Face's hub, ir_datasets, what is in memory."""
LabelSource = Literal["", "people", "model", "mixed"]
JOINED = "#"
"""Between the values of several fields, or columns, by which labels name documents: `manual.pdf#3`."""
BY_MODEL = "llm:"
"""Stands before the name of a model in `labelled_by` of a file of queries: its labels are no person's."""


def reference_of(written: str | Path) -> DatasetReference:
    """The reference that a path or a name on the command line stands for.

    Raises:
        InputError: it is a URL.

    >>> reference_of("hf:mteb/scifact@main").scheme
    'hf:'
    """
    text = str(written).replace("\\", "/") if isinstance(written, Path) else written
    refuse_urls(text)
    return DatasetReference(text if text.startswith(SCHEMES) else Path(written))


def refuse_urls(*names: str | None) -> None:
    """Raise InputError where the name of a data set, or of a part of one, is a URL, as those of databases were."""
    if url := next((name for name in names if name and "://" in name), None):
        raise InputError(
            Problem(
                url.partition("://")[0],
                "databases are retired",
                "write their tables as CSV files",
            )
        )


@dataclass(frozen=True, slots=True)
class DatasetReference:
    """Where a data set is, and which part of it is meant."""

    path: Path | str
    """A folder, a zip archive or a file; a name that begins with one of `SCHEMES`."""
    split: str | None = None
    queries: tuple[str, ...] = ()
    format: str | None = None
    documents: str | None = None
    """A file of documents, or a folder of them, within the data set."""
    labels: str | None = None
    """A file of labels within the data set."""
    columns: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What the columns of tables are called."""
    match: tuple[str, ...] = ()
    """Fields by which labels name documents; their ids where there are none."""
    header: bool | None = None
    """Whether the first row of a table names its columns; None: it does, unless it looks like data."""
    drop_dangling: bool = False
    """Whether labels of what is not there are counted instead of refused."""

    def __post_init__(self) -> None:
        refuse_urls(
            self.path if isinstance(self.path, str) else None,
            self.documents,
            self.labels,
            *self.queries,
        )

    @property
    def scheme(self) -> str:
        """`hf:` or `irds:` where the reference is not a path, else empty."""
        return next(
            (scheme for scheme in SCHEMES if str(self.path).startswith(scheme)), ""
        )

    @property
    def name(self) -> str:
        """The reference as people write it."""
        return str(self.path) if self.scheme else Path(self.path).as_posix()

    @property
    def folder(self) -> Path:
        """The path; ValueError where the reference is none."""
        if self.scheme:
            raise ValueError(f"{self.path} is not a path")
        return Path(self.path)


@dataclass(frozen=True, slots=True)
class Labels:
    """What was said about one query, kept as it was said: one of the three forms, none if it has no labels."""

    grades: Mapping[str, int] | None = None
    """Document id -> grade; judged documents that are not relevant have grade 0 or below."""
    ranked: tuple[str, ...] | None = None
    """Relevant documents, best first."""
    groups: tuple[tuple[str, ...], ...] | None = None
    """Relevant documents as alternatives (inner) that are all needed (outer)."""
    by: str = ""
    """Who labelled it, where that is known."""
    source: LabelSource = ""
    """Whose grades these are, where they were merged from judgments: people's, a model's, or of both ("mixed")."""
    model: Mapping[str, int] = field(default_factory=dict)
    """What a model said about a query that people judged, too; it is not a label."""
    given: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
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

    def renamed(self, names: Mapping[str, str]) -> Labels:
        """The same labels with documents under other ids; those without one are left out.

        What becomes one document keeps its best place or grade.

        >>> Labels(grades={"p1": 1, "p2": 3, "p3": 2}).renamed({"p1": "a", "p2": "a"}).grades
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
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {
            name: value
            for name, value in values.items()
            if value != getattr(UNJUDGED, name)
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Labels:
        """Read what `as_json` wrote."""
        return cls(
            **{name: _frozen(row[name]) for name in cls.__slots__ if name in row}
        )


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


UNJUDGED = Labels()


def reference_as_json(reference: Reference) -> dict[str, Any]:
    """A reference as a row of queries has it; nothing where there is none."""
    claims = [
        claim.text if claim.vital else claim._asdict() for claim in reference.claims
    ]
    return {
        key: value
        for key, value in (("reference", list(reference.answers)), ("claims", claims))
        if value
    }


def reference_from_json(row: Mapping[str, Any]) -> Reference:
    """Read what `reference_as_json` wrote."""
    claims = (
        Claim(one) if isinstance(one, str) else Claim(**one)
        for one in row.get("claims", ())
    )
    return Reference(tuple(row.get("reference", ())), tuple(claims))


def source_named(by: str) -> LabelSource:
    """Whose labels a file holds, by its `labelled_by`; "" if it names people, or no one.

    >>> source_named("ann, ben"), source_named("llm:judge-1"), source_named("ann, llm:judge-1")
    ('', 'model', 'mixed')
    """
    models = [name.strip().startswith(BY_MODEL) for name in by.split(",")]
    return "model" if all(models) else "mixed" if any(models) else ""


def _renamed(grades: Mapping[str, int], names: Mapping[str, str]) -> dict[str, int]:
    renamed: dict[str, int] = {}
    for name, grade in (
        (names[doc], grade) for doc, grade in grades.items() if doc in names
    ):
        renamed[name] = max(grade, renamed.get(name, grade))
    return renamed


@dataclass(frozen=True, slots=True)
class Dataset:
    """A checked data set; the corpus is read anew each time, never kept in memory."""

    path: str
    format: str
    queries: tuple[Query, ...]
    """The queries that are asked, in file order: those with a relevant document or with claims; all of them
    where there are no labels, or where the labels are judgments that still grow."""
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
    recorded: tuple[Query, ...] = ()
    """The queries that results keep: asked or judged, in file order."""
    ledger: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What was counted and not refused: kind -> ids."""
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of tables: file -> column -> the kind that it was read as, "" where it is not used."""
    sizes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Table or folder of documents -> what it holds (rows, Markdown files) -> how many."""
    found_columns: Mapping[str, str] = field(default_factory=dict)
    """The column of labels that was found by its values, as it would be declared."""
    matched: Mapping[str, int] = field(default_factory=dict)
    """By what labels name their documents ("id", "file name", "title", "text", "field") -> how many do."""
    unknown: tuple[str, ...] = ()
    """What labels name and no document is, each as often as it is named."""
    field_names: frozenset[str] = frozenset()
    """Fields that documents have."""
    same_as: Mapping[str, str] = field(default_factory=dict)
    """Where labels name a field (a page, say): document -> the first document with the same value, which stands for
    all of them in labels and rankings."""
    sample: tuple[Document, ...] = field(default=(), repr=False)
    """As many documents as the first pass was to keep."""
    documents: Callable[[], Iterator[Document]] = field(
        repr=False, default=lambda: iter(())
    )
    """A fresh pass over the corpus, in file order."""

    def texts(self, ids: Collection[str]) -> dict[str, Document]:
        """The documents with these ids, found in one pass."""
        wanted = set(ids)
        return {doc.id: doc for doc in self.documents() if doc.id in wanted}
