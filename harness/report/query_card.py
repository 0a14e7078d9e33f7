"""The card of one query: two rankings side by side.

`scripts/card.js` draws the same from the same evidence.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from harness.report.query_evidence import Evidence, LabelledDocument, QueryEvidence

MAX_LATER_DOCUMENTS = 5
"""Labelled documents that are shown below the first hits."""
LONG_QUERY = 110
"""Characters above which a query is set in smaller letters."""


class CardHit(NamedTuple):
    """One line of a ranking."""

    document: int
    """Its number on the page."""
    rank: int
    """0 if the document is not among the hits that were kept."""
    title: str
    grade: int
    """As of a `LabelledDocument`; 0 for a document that is not marked."""
    is_later: bool
    """Whether it is a labelled document that is not among the first hits."""
    is_first_later: bool
    """Whether it is the first of these, above which the card has a rule."""

    @property
    def rank_text(self) -> str:
        """The rank, or a dash."""
        return str(self.rank) if self.rank else "–"


class CardSide(NamedTuple):
    """One retriever's ranking."""

    retriever: str
    number: int
    """Its place among the retrievers of the page."""
    score: float | None
    """Its score on the query; None without labels."""
    hits: tuple[CardHit, ...]


class CardLink(NamedTuple):
    """A line that joins the same document on both sides, by the number of its line."""

    left: int
    right: int
    is_lost: bool
    """Whether the left retriever ranks it lower."""


class Card(NamedTuple):
    """Two rankings of one query."""

    query: QueryEvidence
    finding: str
    """The document whose ranks differ most, in a sentence; may be empty."""
    left: CardSide
    right: CardSide | None
    """The second retriever; None if there is only one."""
    links: tuple[CardLink, ...]

    @property
    def height(self) -> int:
        """The number of lines of the longer side."""
        right_hits = self.right.hits if self.right else ()
        return max(len(self.left.hits), len(right_hits), 1)

    @property
    def agents_text(self) -> str:
        """What the agents among the two did; empty if none is one."""
        agents = self.query.agents
        sides = [side for side in (self.left, self.right) if side and agents]
        return " · ".join(
            f"{side.retriever}: {agents[side.number]}"
            for side in sides
            if agents[side.number]
        )

    @property
    def is_long(self) -> bool:
        """Whether the query is set in smaller letters."""
        return len(self.query.text) > LONG_QUERY


def build_card(evidence: Evidence, query: QueryEvidence) -> Card:
    """Return the card of a query with its first pair of retrievers."""
    first, second = query.pair
    left = _build_side(evidence, query, first)
    if first == second:
        finding = _single_finding(evidence, query, first)
        return Card(query, finding, left, None, ())
    right = _build_side(evidence, query, second)
    links = tuple(_links(evidence, left.hits, right.hits))
    return Card(query, _finding(evidence, query), left, right, links)


def _build_side(evidence: Evidence, query: QueryEvidence, number: int) -> CardSide:
    """Return the first hits, then labelled documents that come later."""
    labelled = {label.document: label for label in query.labelled}
    first_hits = query.hits[number][: evidence.cutoff]
    hits: list[CardHit] = []
    for rank, document in enumerate(first_hits, start=1):
        label = labelled.get(document)
        grade = label.grade if label else 0
        title = evidence.documents[document]
        hits.append(CardHit(document, rank, title, grade, False, False))
    later: list[LabelledDocument] = []
    if evidence.is_labelled:
        later = [label for label in query.labelled if label.document not in first_hits]
    later.sort(key=lambda label: label.ranks[number] or math.inf)
    for position, label in enumerate(later[:MAX_LATER_DOCUMENTS]):
        hits.append(
            CardHit(
                label.document,
                label.ranks[number],
                evidence.documents[label.document],
                label.grade,
                is_later=True,
                is_first_later=position == 0,
            )
        )
    score = query.scores[number] if query.scores else None
    return CardSide(evidence.retrievers[number], number, score, tuple(hits))


def _links(
    evidence: Evidence, left: Sequence[CardHit], right: Sequence[CardHit]
) -> list[CardLink]:
    right_lines = {hit.document: line for line, hit in enumerate(right)}
    links: list[CardLink] = []
    for line, hit in enumerate(left):
        if hit.grade and hit.document in right_lines:
            right_line = right_lines[hit.document]
            is_lost = evidence.is_labelled and right_line < line
            links.append(CardLink(line, right_line, is_lost))
    return links


def _finding(evidence: Evidence, query: QueryEvidence) -> str:
    """Return the labelled document whose two ranks cost most, as a sentence.

    Without labels, how many documents the two have in common.
    """
    first, second = query.pair
    names = evidence.retrievers[first], evidence.retrievers[second]
    if not evidence.is_labelled:
        common = set(query.hits[first]) & set(query.hits[second])
        return (
            f"{names[0]} and {names[1]} have {len(common)} of their first "
            f"{evidence.cutoff} documents in common."
        )
    if not query.labelled:
        return ""

    def cost(label: LabelledDocument) -> float:
        return label.grade * abs(
            _discount(label.ranks[first]) - _discount(label.ranks[second])
        )

    label = max(query.labelled, key=cost)
    if not cost(label):
        return "Both rank the labelled documents alike."
    title = f"“{evidence.documents[label.document]}” (grade {label.grade})"
    ranks = label.ranks[first], label.ranks[second]
    return (
        f"{title}: {_rank_words(ranks[0])} in {names[0]}, "
        f"{_rank_words(ranks[1])} in {names[1]}."
    )


def _single_finding(evidence: Evidence, query: QueryEvidence, number: int) -> str:
    """Return the rank of the document with the highest grade."""
    if not query.labelled or not evidence.is_labelled:
        return ""
    label = query.labelled[0]
    title = f"“{evidence.documents[label.document]}” (grade {label.grade})"
    return f"{title}: {_rank_words(label.ranks[number])}."


def _discount(rank: int) -> float:
    return 1 / math.log2(rank + 1) if rank else 0.0


def _rank_words(rank: int) -> str:
    return f"rank {rank}" if rank else "missing"
