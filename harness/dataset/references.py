"""Reference answers and their claims, in whatever row of whatever format they stand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from harness.dataset.source import Findings, Place, parse_json
from retrievers.types import Claim, Reference


def read_reference(answers: Any, claims: Any, place: Place, problems: Findings) -> Reference:
    """Read a query's reference answers (a text, or several) and claims (a list); empty after a complaint.

    A claim is a text, or an object with `text` and `vital`: whether an answer without it would be no answer. In one
    cell of text, claims are JSON, or stand one a line.

    >>> rent = read_reference("A fee.", ["monthly", {"text": "in advance", "vital": False}], Place("q"), Findings())
    >>> rent.answers, [claim.vital for claim in rent.claims]
    (('A fee.',), [True, False])
    """
    answers = [answers] if isinstance(answers, str) and answers.strip() else answers or []
    if not isinstance(answers, list | tuple) or not all(isinstance(one, str) and one.strip() for one in answers):
        problems.wrong(place, "'reference' is no text and no list of texts", "leave it out where empty")
        answers = []
    listed = _cell(claims) if isinstance(claims, str) else claims or []
    parsed = [_claim(one) for one in listed] if isinstance(listed, list | tuple) else [None]
    if None in parsed:
        remedy = 'a list such as ["The fee is monthly.", {"text": "Students pay half.", "vital": false}]'
        problems.wrong(place, "'claims' is no list of texts", remedy)
        parsed = []
    return Reference(tuple(answers), tuple(one for one in parsed if one is not None))


def as_json(reference: Reference) -> dict[str, Any]:
    """The reference as a row of queries has it; nothing where there is none."""
    claims = [claim.text if claim.vital else claim._asdict() for claim in reference.claims]
    return {key: value for key, value in (("reference", list(reference.answers)), ("claims", claims)) if value}


def from_json(row: Mapping[str, Any]) -> Reference:
    """Read what `as_json` wrote."""
    claims = (Claim(one) if isinstance(one, str) else Claim(**one) for one in row.get("claims", ()))
    return Reference(tuple(row.get("reference", ())), tuple(claims))


def _claim(claim: object) -> Claim | None:
    if isinstance(claim, str):
        return Claim(claim) if claim.strip() else None
    if isinstance(claim, dict) and claim.keys() <= {"text", "vital"}:
        text, vital = claim.get("text"), claim.get("vital", True)
        return Claim(text, vital) if isinstance(text, str) and text.strip() and isinstance(vital, bool) else None
    return None


def _cell(text: str) -> Any:
    """What one cell of a table lists."""
    if text.lstrip().startswith("["):
        try:
            return parse_json(text)
        except (json.JSONDecodeError, ValueError):
            return text
    return [line.strip() for line in text.splitlines() if line.strip()]
