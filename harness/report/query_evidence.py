"""What the cards of queries on a page show."""

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from harness.pages import visible_text

FAST_COMPRESSION_LENGTH = 500_000
"""Characters from which on fast compression is used.

The best takes several times longer and saves little.
"""
COMPRESSION_RATIO = 3
"""How many times smaller the JSON is, about, when it is packed."""


class LabelledDocument(NamedTuple):
    """A document that a card marks."""

    document: int
    """Its number."""
    grade: int
    """Without labels, the number of retrievers that have it among their first."""
    ranks: tuple[int, ...]
    """Its rank in each retriever's stored hits; 0 if it is not among them.

    Without labels, among the hits on the card.
    """


class QueryEvidence(NamedTuple):
    """One query with the first hits of every retriever."""

    id: str
    text: str
    scores: tuple[float, ...]
    """A score for each retriever; empty without labels."""
    hits: tuple[tuple[int, ...], ...]
    """Retriever -> the numbers of its first documents."""
    labelled: tuple[LabelledDocument, ...]
    """The documents that its card marks, the highest grade first.

    Without labels, those that several retrievers found.
    """
    pair: tuple[int, int]
    """The retrievers that are compared first; equal if there is only one."""
    properties: str
    """Its properties in which queries differ; "" without any."""
    amount: str
    """The number beside it in the list.

    The gap of the retriever that is examined; without labels, documents to label.
    """
    agents: tuple[str, ...] = ()
    """What each retriever did if it is an agent, else ""; empty without any agent."""


class EvidenceGroup(NamedTuple):
    """A group of queries of the list."""

    title: str
    total: int
    """All its queries, also those that the page has no room for."""
    queries: tuple[int, ...]
    """Numbers of the queries on the page."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the cards of one page show; its fields are those of the page's JSON."""

    title: str
    """Name of the experiment."""
    section: str
    """The end of an image's caption, after the title: "where bm25 fails"."""
    measure: str
    """The measure's name; "" without labels."""
    query_count: int
    cutoff: int
    """Hits of each ranking."""
    is_labelled: bool
    retrievers: tuple[str, ...]
    means: tuple[float, ...]
    """The mean of each retriever; empty without labels."""
    documents: tuple[str, ...]
    """The title of each document, by its number."""
    queries: tuple[QueryEvidence, ...]
    groups: tuple[EvidenceGroup, ...]
    key: str
    """The legend of the boxes around marked documents."""

    def as_record(self) -> dict[str, object]:
        """Return the fields as JSON has them.

        The queries are columns, a list for each of their fields: with similar values
        one after the other, the packed JSON is a sixth smaller.
        """
        record = asdict(self)
        del record["queries"]
        return {**record, "columns": list(zip(*self.queries, strict=True))}

    @property
    def first_query(self) -> QueryEvidence | None:
        """The query of the first card; None without queries on the page."""
        for group in self.groups:
            if group.queries:
                return self.queries[group.queries[0]]
        return None


def pack_json(content: object) -> str:
    """Return JSON as text for a script element.

    `DecompressionStream("deflate")` reads it back.

    >>> unpack_json(pack_json({"a": [1, "é"]}))
    {'a': [1, 'é']}
    """
    code = visible_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")))
    level = 9 if len(code) < FAST_COMPRESSION_LENGTH else 4
    return base64.b64encode(zlib.compress(code.encode("utf-8"), level)).decode("ascii")


def unpack_json(text: str) -> Any:
    """Return what `pack_json` packed, control characters as visible ones."""
    return json.loads(zlib.decompress(base64.b64decode(text)))


def packed_size(content: object) -> int:
    """Return about how many bytes a part of the JSON adds."""
    return len(json.dumps(content, ensure_ascii=False).encode()) // COMPRESSION_RATIO


class DocumentNumbers:
    """Numbers documents in the order in which a page first names them."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, document_id: str) -> int:
        """Return the number of a document."""
        return self._numbers.setdefault(document_id, len(self._numbers))

    def numbers(self, document_ids: Sequence[str]) -> tuple[int, ...]:
        """Return the numbers of documents."""
        return tuple(map(self.number, document_ids))

    @property
    def document_ids(self) -> tuple[str, ...]:
        """The ids in the order of their numbers."""
        return tuple(self._numbers)
