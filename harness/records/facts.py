"""What a manifest says of the machine, the judge, each retriever."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator

from harness.records.jsonl import parse_record

JUDGE_FACTS = ("judge", "prompt", "depth")
"""What a manifest has of every judge of claims."""
JUDGE_COUNTS = ("queries", "claims", "verdicts", "unreadable")
"""What it has of a judge that gave verdicts, in whole numbers."""
COUNT_FACTS = (
    "trials",
    "answers_compared",
    "answers_changed",
    "vectors",
    "dimensions",
    "points",
    "indexed_points",
)
"""Keys of the provenance whose text is a whole number."""
NUMBER_FACTS = ("vector_bytes", "usd_per_thousand_searches", "_per_text", "_per_query")
"""Ends of such keys whose text is a number."""
PASSAGES_FACT = "passages"
"""Key of the provenance of a retriever whose passages are not what it returned."""
WHOLE_DOCUMENTS = "whole documents"
TRIALS_FACT = "trials"
"""Key of the provenance of a retriever that may answer differently each time."""
COMPARED_FACT = "answers_compared"
"""Key of the provenance: timed answers that were compared with those of the run."""
CHANGED_FACT = "answers_changed"
"""Key of the provenance: those of them that were different."""
UNTIMED_FACT = "not_timed"
"""Key of the provenance: why single queries could not be timed."""
SHORT_CONTEXT_NOTE = "short-context"
"""Notes a query whose passages end at the depth, and before a measured context."""
MAX_DIGITS = 18


def _check_provenance(provenance: Mapping[str, str]) -> Mapping[str, str]:
    """Refuse facts that are not the numbers that they should be."""
    for key, text in provenance.items():
        if key in COUNT_FACTS:
            _refuse_no_count(key, text)
        if key.endswith(NUMBER_FACTS):
            _refuse_no_number(key, text)
    return provenance


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


def _refuse_no_number(key: str, text: str) -> None:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise ValueError(f"{key} is {text!r:.40}, not a number from 0")


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
Provenance = Annotated[Mapping[str, str], AfterValidator(_check_provenance)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieverOutcome:
    """Whether one retriever finished, and what it used."""

    error: str
    """Why it failed, in one message; "" if it finished."""
    provenance: Provenance
    """Model, revision, price, store: empty if it failed."""
