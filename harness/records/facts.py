"""What a manifest says of the machine, the judge, each retriever."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, PlainValidator

from harness.records.jsonl import parse_record
from retrievers.types import RetrieverFacts, parse_facts

JUDGE_FACTS = ("judge", "prompt", "depth")
"""What a manifest has of every judge of claims."""
JUDGE_COUNTS = ("queries", "claims", "verdicts", "unreadable")
"""What it has of a judge that gave verdicts, in whole numbers."""
WHOLE_DOCUMENTS = "whole documents"
"""The passages of a retriever that returns none."""
SHORT_CONTEXT_NOTE = "short-context"
"""Notes a query whose passages end at the depth, and before a measured context."""
MAX_DIGITS = 18


def _parse_provenance(stored: object) -> RetrieverFacts:
    """Return the facts that a manifest has of a retriever."""
    if not isinstance(stored, Mapping):
        raise ValueError(f"is {stored!r:.40}, not a table")
    return parse_facts(stored)


def _check_judge(facts: Mapping[str, str]) -> Mapping[str, str]:
    """Refuse a judge without one of its facts; no judge at all is allowed."""
    if not facts:
        return facts
    for key in JUDGE_FACTS:
        if key not in facts:
            raise ValueError(f"{key!r} is missing")
    if "verdicts" in facts:  # not if the judge failed
        for key in JUDGE_COUNTS:
            _refuse_no_count(key, facts.get(key, ""))
    if facts["depth"] != "all":
        _refuse_no_count("depth", facts["depth"])
    return facts


def _refuse_no_count(key: str, text: str) -> None:
    if not text.isdecimal() or len(text) > MAX_DIGITS:
        raise ValueError(f"{key} is {text!r:.40}, not a whole number")


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """The facts about a machine that are read back."""

    cores: int | None = None
    load: float | None = None


def _check_machine(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuse a machine whose cores or load are no numbers."""
    parse_record(MachineFacts, json.dumps(facts))
    return facts


MachineTable = Annotated[Mapping[str, Any], AfterValidator(_check_machine)]
JudgeFacts = Annotated[Mapping[str, str], AfterValidator(_check_judge)]
Provenance = Annotated[RetrieverFacts, PlainValidator(_parse_provenance)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieverOutcome:
    """Whether one retriever finished, and what it used."""

    error: str
    """Why it failed, in one message; "" if it finished."""
    provenance: Provenance
    """Model, revision, price, store: empty if it failed."""
