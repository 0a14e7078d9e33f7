"""The queries of a page, with the card of the first one."""

from collections.abc import Mapping
from typing import NamedTuple

from harness.report.query_card import Card, build_card
from harness.report.query_evidence import (
    Evidence,
    EvidenceGroup,
    QueryEvidence,
    pack_json,
)

FIRST_LISTED_QUERIES = 12
"""Queries of the list that the page has without scripts."""


class QueryBrowser(NamedTuple):
    """What the template of a card and its list shows."""

    evidence: Evidence
    packed: str
    """The evidence for the scripts."""
    card: Card | None
    """The card of the first query; None without queries."""
    sentence: str
    """How many queries there are, and which one is shown."""
    shown_group: EvidenceGroup | None
    """The first group that has queries on the page; None without any."""
    listed: tuple[QueryEvidence, ...]
    """Its first queries."""
    more: int
    """How many other queries it has."""


def build_query_browser(
    evidence: Evidence, sentence: str, content: Mapping[str, object] | None = None
) -> QueryBrowser:
    """Return the queries of a page.

    Args:
        evidence: that is shown first.
        sentence: above it.
        content: for the scripts, if it is more than the evidence.
    """
    first = evidence.first_query
    shown_group = next((group for group in evidence.groups if group.queries), None)
    numbers = shown_group.queries if shown_group else ()
    listed = tuple(evidence.queries[i] for i in numbers[:FIRST_LISTED_QUERIES])
    return QueryBrowser(
        evidence,
        pack_json(content or evidence.as_record()),
        build_card(evidence, first) if first else None,
        sentence,
        shown_group,
        listed,
        more=len(numbers) - len(listed),
    )
