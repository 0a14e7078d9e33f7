"""Warnings about a run, one record per kind.

`run_warnings` makes them, `warning_sentences` has their words. evaluation.json stores
the kind and three lists (`StoredFields`): numbers there are floats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, ClassVar, NamedTuple, TypeAlias

from pydantic import PlainSerializer, PlainValidator, TypeAdapter


class WarningKind(Enum):
    """What a reader of the verdict must know."""

    FRAGILE = "fragile"
    HALF_READ = "half read"
    UNKNOWN_HITS = "unknown hits"
    MATCHED_IDS = "matched ids"
    UNJUDGED = "unjudged"
    JUDGED_GAP = "judged gap"
    SHORT_CONTEXTS = "short contexts"
    WHOLE_DOCUMENTS = "whole documents"
    ESTIMATED_TOKENS = "estimated tokens"
    CHANGED_ANSWERS = "changed answers"
    UNKNOWN_REPEATABILITY = "unknown repeatability"
    NO_HITS = "no hits"
    TIED_RUN = "tied run"
    RISING_SCORES = "rising scores"
    NO_SHARED_WORD = "no shared word"
    UNCONVERTED_FILES = "unconverted files"
    CLICKS = "clicks"


class StoredFields(NamedTuple):
    """The fields of a warning by their part of the stored form, in order.

    A field that is a tuple takes what the others of its part leave: so a part has at
    most one.
    """

    retrievers: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fragile:
    """Three queries with the largest loss would reverse the result of a pair."""

    kind: ClassVar = WarningKind.FRAGILE
    stored: ClassVar = StoredFields(("a", "b"))
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class HalfRead:
    """Models read only the start of many documents."""

    kind: ClassVar = WarningKind.HALF_READ
    stored: ClassVar = StoredFields(("retrievers",), ("least_share", "greatest_share"))
    retrievers: tuple[str, ...]
    """Those that truncate many documents, and those that use them."""
    least_share: float
    """Smallest share of documents that one of them truncates."""
    greatest_share: float


@dataclass(frozen=True, slots=True)
class UnknownHits:
    """Hits of a retriever have unknown ids."""

    kind: ClassVar = WarningKind.UNKNOWN_HITS
    stored: ClassVar = StoredFields(
        ("retriever",), ("unknown", "returned"), ("example",)
    )
    retriever: str
    unknown: float
    """Hits with unknown ids."""
    returned: float
    """All hits."""
    example: str
    """One of the ids."""


@dataclass(frozen=True, slots=True)
class MatchedIds:
    """A retriever writes ids differently."""

    kind: ClassVar = WarningKind.MATCHED_IDS
    stored: ClassVar = StoredFields(("retriever",), ("counts",), ("ways", "example"))
    retriever: str
    counts: tuple[float, ...]
    """How many ids were matched in each of `ways`."""
    ways: tuple[str, ...]
    example: str
    """One id, as "returned -> document (by way)"."""


@dataclass(frozen=True, slots=True)
class Unjudged:
    """First hits of a retriever have no label."""

    kind: ClassVar = WarningKind.UNJUDGED
    stored: ClassVar = StoredFields(
        ("retriever", "leader"),
        ("unjudged_share", "unjudged_share_of_leader", "cutoff"),
    )
    retriever: str
    leader: str
    unjudged_share: float
    """Share of its first hits that have no label."""
    unjudged_share_of_leader: float
    cutoff: float
    """How many hits of a query are its first hits."""


@dataclass(frozen=True, slots=True)
class JudgedGap:
    """Many more hits of one retriever have a label than of another."""

    kind: ClassVar = WarningKind.JUDGED_GAP
    stored: ClassVar = StoredFields(("more", "less"), ("more_share", "less_share"))
    more: str
    """The retriever whose hits have more labels."""
    less: str
    more_share: float
    """Share of its first hits that have a label."""
    less_share: float

    @property
    def gap(self) -> float:
        """The difference of both shares."""
        return self.more_share - self.less_share


@dataclass(frozen=True, slots=True)
class ShortContexts:
    """Passages of a retriever end before the context that is measured."""

    kind: ClassVar = WarningKind.SHORT_CONTEXTS
    stored: ClassVar = StoredFields(("retriever",), ("queries",))
    retriever: str
    queries: float
    """Queries whose passages end too early."""


@dataclass(frozen=True, slots=True)
class WholeDocuments:
    """Retrievers return no passages: whole documents are measured."""

    kind: ClassVar = WarningKind.WHOLE_DOCUMENTS
    stored: ClassVar = StoredFields(("retrievers",))
    retrievers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EstimatedTokens:
    """The tokens of contexts are words times 4/3."""

    kind: ClassVar = WarningKind.ESTIMATED_TOKENS
    stored: ClassVar = StoredFields()


@dataclass(frozen=True, slots=True)
class ChangedAnswers:
    """A retriever answers differently when asked again, and has one trial."""

    kind: ClassVar = WarningKind.CHANGED_ANSWERS
    stored: ClassVar = StoredFields(("retriever",), ("changed", "compared"))
    retriever: str
    changed: float
    """Queries whose answer changed."""
    compared: float
    """Queries that were asked again."""


@dataclass(frozen=True, slots=True)
class UnknownRepeatability:
    """Retrievers that may answer differently have one trial, and were not compared."""

    kind: ClassVar = WarningKind.UNKNOWN_REPEATABILITY
    stored: ClassVar = StoredFields(("retrievers",))
    retrievers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoHits:
    """A saved run or a service returned nothing for queries that have an answer."""

    kind: ClassVar = WarningKind.NO_HITS
    stored: ClassVar = StoredFields(("retriever",), ("without", "queries"), ("query",))
    retriever: str
    without: float
    """Queries without a hit."""
    queries: float
    """All queries."""
    query: str
    """The id of the first one without a hit."""


@dataclass(frozen=True, slots=True)
class TiedRun:
    """A saved run or a service gives all hits of queries one score."""

    kind: ClassVar = WarningKind.TIED_RUN
    stored: ClassVar = StoredFields(("retriever",), ("tied", "queries"))
    retriever: str
    tied: float
    """Queries whose hits all have one score."""
    queries: float
    """All queries."""


@dataclass(frozen=True, slots=True)
class RisingScores:
    """Scores of a saved run rise with rank, as distances do."""

    kind: ClassVar = WarningKind.RISING_SCORES
    stored: ClassVar = StoredFields(("retriever",), ("rising", "queries"))
    retriever: str
    rising: float
    """Queries whose scores rise with rank."""
    queries: float
    """All queries."""


@dataclass(frozen=True, slots=True)
class NoSharedWord:
    """BM25 finds nothing for queries whose words are in no document."""

    kind: ClassVar = WarningKind.NO_SHARED_WORD
    stored: ClassVar = StoredFields((), ("without", "queries"), ("query_ids",))
    without: float
    """Queries for which nothing is found."""
    queries: float
    """All queries."""
    query_ids: tuple[str, ...]
    """The queries for which nothing is found."""


@dataclass(frozen=True, slots=True)
class UnconvertedFiles:
    """Files of the data set could not be converted: no retriever can find them."""

    kind: ClassVar = WarningKind.UNCONVERTED_FILES
    stored: ClassVar = StoredFields((), (), ("files",))
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClickLabels:
    """The labels are clicks."""

    kind: ClassVar = WarningKind.CLICKS
    stored: ClassVar = StoredFields((), ("queries",))
    queries: float
    """Queries whose labels are clicks."""


RunWarning: TypeAlias = (
    Fragile
    | HalfRead
    | UnknownHits
    | MatchedIds
    | Unjudged
    | JudgedGap
    | ShortContexts
    | WholeDocuments
    | EstimatedTokens
    | ChangedAnswers
    | UnknownRepeatability
    | NoHits
    | TiedRun
    | RisingScores
    | NoSharedWord
    | UnconvertedFiles
    | ClickLabels
)
WARNING_TYPES: Mapping[str, type[RunWarning]] = {
    warning_type.kind.value: warning_type
    for warning_type in (
        Fragile,
        HalfRead,
        UnknownHits,
        MatchedIds,
        Unjudged,
        JudgedGap,
        ShortContexts,
        WholeDocuments,
        EstimatedTokens,
        ChangedAnswers,
        UnknownRepeatability,
        NoHits,
        TiedRun,
        RisingScores,
        NoSharedWord,
        UnconvertedFiles,
        ClickLabels,
    )
}
"""Kind in evaluation.json -> the class of the warning."""
NOTE_KINDS = (
    WarningKind.UNKNOWN_REPEATABILITY,
    WarningKind.WHOLE_DOCUMENTS,
    WarningKind.ESTIMATED_TOKENS,
)
"""Kinds that say how something was measured; they change no verdict."""


def store_warning(warning: RunWarning) -> dict[str, Any]:
    """Return a warning in its stored form: kind, retrievers, numbers, words.

    >>> store_warning(UnknownHits("x", unknown=1, returned=2, example="d1"))["numbers"]
    [1.0, 2.0]
    """
    stored: StoredFields = warning.stored
    return {
        "kind": warning.kind.value,
        "retrievers": list(_contents(warning, stored.retrievers)),
        "numbers": [float(number) for number in _contents(warning, stored.numbers)],
        "words": list(_contents(warning, stored.words)),
    }


def _contents(warning: RunWarning, fields: Sequence[str]) -> Iterator[Any]:
    """Yield the values of some fields; those of a tuple one by one."""
    for field in fields:
        content = getattr(warning, field)
        if isinstance(content, tuple):
            yield from content
        else:
            yield content


def read_warning(stored: Any) -> RunWarning:
    """Return a warning from its stored form; a warning is returned unchanged.

    >>> form = store_warning(MatchedIds("x", (1, 2), ("title", "folder"), "d1"))
    >>> read_warning(form).ways
    ('title', 'folder')

    Raises:
        ValueError: it is of another form.
    """
    if isinstance(stored, RunWarning):
        return stored
    try:
        warning_type = WARNING_TYPES[stored["kind"]]
        fields: dict[str, Any] = {}
        for part, part_fields in warning_type.stored._asdict().items():
            fields |= dict(_read_part(warning_type, part_fields, list(stored[part])))
        warning: RunWarning = TypeAdapter(warning_type).validate_python(fields)
    except (KeyError, TypeError, IndexError) as error:
        message = "is no warning: it has kind, retrievers, numbers and words"
        raise ValueError(message) from error
    return warning


def _read_part(
    warning_type: type[RunWarning], fields: Sequence[str], contents: list[Any]
) -> Iterator[tuple[str, Any]]:
    """Yield the fields of one part of the stored form.

    Raises:
        IndexError: it has more or fewer contents than fields.
    """
    left_over = len(contents) - (len(fields) - 1)
    position = 0
    for field in fields:
        is_tuple = str(warning_type.__annotations__[field]).startswith("tuple")
        if is_tuple:
            yield field, tuple(contents[position : position + left_over])
            position += left_over
        else:
            yield field, contents[position]
            position += 1
    if position != len(contents):
        raise IndexError(fields)


StoredWarning = Annotated[
    RunWarning, PlainValidator(read_warning), PlainSerializer(store_warning)
]
"""A field of evaluation.json."""
