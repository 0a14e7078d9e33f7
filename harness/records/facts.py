"""Facts in a manifest about a judge or a retriever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, NamedTuple

from pydantic import PlainValidator

from retrievers.types import RetrieverFacts, parse_count, parse_facts

WHOLE_DOCUMENTS = "whole documents"
"""The passages of a retriever that returns none."""
SHORT_CONTEXT_NOTE = "short-context"
"""The note of a query whose passages, down to the depth, do not fill a context."""


def _parse_provenance(stored: object) -> RetrieverFacts:
    """Return the facts that a manifest has of a retriever."""
    if not isinstance(stored, Mapping):
        raise ValueError(f"is {stored!r:.40}, not a table")
    return parse_facts(stored)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCounts:
    """How much a judge judged."""

    queries: int
    """Queries that have claims."""
    claims: int
    """Claims of these queries."""
    verdicts: int
    """Pairs of a claim and the text of a document on which it was asked."""
    unreadable: int
    """Pairs without a verdict that could be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRecord:
    """The judge that judged claims."""

    judge: str
    prompt: str
    """A digest of its prompt."""
    depth: int | None
    """The hits of a query that were judged; None: all."""
    counts: JudgeCounts | None
    """How much it judged; None if it failed."""
    truncated: int = 0
    """Items that were judged by the start of a text: it was too long."""
    without_schema: int = 0
    """Replies of a server that supports no schema."""


NO_CUTOFF = "all"
"""The stored depth of a judge that judged all hits."""


def stored_judge(record: JudgeRecord | None) -> dict[str, str]:
    """Return a judge as a manifest has it; empty if there was none.

    >>> counts = JudgeCounts(queries=1, claims=2, verdicts=3, unreadable=0)
    >>> record = JudgeRecord(judge="j", prompt="", depth=None, counts=counts)
    >>> stored_judge(record)["depth"], parse_judge(stored_judge(record)) == record
    ('all', True)
    """
    if record is None:
        return {}
    depth = NO_CUTOFF if record.depth is None else str(record.depth)
    stored = {"judge": record.judge, "prompt": record.prompt, "depth": depth}
    if record.counts is not None:
        for name, count in asdict(record.counts).items():
            stored[name] = str(count)
    if record.truncated:
        stored["truncated"] = str(record.truncated)
    if record.without_schema:
        stored["without_schema"] = str(record.without_schema)
    return stored


def parse_judge(stored: object) -> JudgeRecord | None:
    """Return the judge in a manifest; None if there was none.

    Raises:
        ValueError: one of its facts is missing, or is no number.
    """
    if not isinstance(stored, Mapping):
        raise ValueError(f"is {stored!r:.40}, not a table")
    if not stored:
        return None
    _check_judge(stored)
    depth = None
    if stored["depth"] != NO_CUTOFF:
        depth = _parse_count("depth", stored["depth"])
    counts = None
    if "verdicts" in stored:  # not if the judge failed
        counts = JudgeCounts(
            queries=_parse_count("queries", stored.get("queries", "")),
            claims=_parse_count("claims", stored.get("claims", "")),
            verdicts=_parse_count("verdicts", stored["verdicts"]),
            unreadable=_parse_count("unreadable", stored.get("unreadable", "")),
        )
    return JudgeRecord(
        judge=stored["judge"],
        prompt=stored["prompt"],
        depth=depth,
        counts=counts,
        truncated=_parse_count("truncated", stored.get("truncated", "0")),
        without_schema=_parse_count(
            "without_schema", stored.get("without_schema", "0")
        ),
    )


def _check_judge(stored: Mapping[str, object]) -> None:
    """Refuse a judge without one of its facts, or with one that is no text.

    Raises:
        ValueError: it names the first such fact.
    """
    for key in ("judge", "prompt", "depth"):
        if key not in stored:
            raise ValueError(f"{key!r} is missing")
    for key, text in stored.items():
        if not isinstance(text, str):
            raise ValueError(f"{key} is {text!r:.40}, not a text")


def _parse_count(key: str, text: str) -> int:
    count = parse_count(text)
    if count is None:
        raise ValueError(f"{key} is {text!r:.40}, not a whole number")
    return count


StoredJudge = Annotated[JudgeRecord | None, PlainValidator(parse_judge)]
Provenance = Annotated[RetrieverFacts, PlainValidator(_parse_provenance)]


class RetrieverFailure(NamedTuple):
    """A retriever that failed, and why."""

    retriever: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieverOutcome:
    """Whether one retriever finished, and what it used."""

    error: str
    """Why it failed, in one message; "" if it finished."""
    provenance: Provenance
    """Model, revision, price, store: unknown if it failed."""
