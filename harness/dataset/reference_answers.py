"""Reference answers with their claims.

A claim is a statement that a right answer makes; people may write them, else a judge
takes them from the first answer (`harness.answers`).
"""

from __future__ import annotations

from typing import Any

from harness.dataset.read_problems import ReadProblems
from harness.dataset.source import SourceLocation
from harness.dataset.written_values import parse_cell
from retrievers.types import Claim, Reference


def reference_as_json(reference: Reference) -> dict[str, Any]:
    """Return a reference as a row of queries stores it; {} without a reference."""
    row: dict[str, Any] = {}
    if reference.answers:
        row["reference"] = list(reference.answers)
    if reference.claims:
        row["claims"] = [
            claim.text if claim.vital else claim._asdict() for claim in reference.claims
        ]
    return row


def read_reference_answer(
    answers: Any, claims: Any, location: SourceLocation, problems: ReadProblems
) -> Reference:
    """Return the reference answers and the claims of a query.

    Answers are a text or a list of texts. Claims are a list of texts, or of objects
    with `text` and `vital`: whether an answer needs this claim. In one cell of text,
    claims are JSON, or one per line. Anything else becomes a problem.

    >>> claims = ["monthly", {"text": "in advance", "vital": False}]
    >>> location = SourceLocation("q")
    >>> rent = read_reference_answer("A fee.", claims, location, ReadProblems())
    >>> rent.answers, [claim.vital for claim in rent.claims]
    (('A fee.',), [True, False])
    """
    return Reference(
        _read_answers(answers, location, problems),
        _read_claims(claims, location, problems),
    )


def _read_answers(
    answers: Any, location: SourceLocation, problems: ReadProblems
) -> tuple[str, ...]:
    if isinstance(answers, str) and answers.strip():
        return (answers,)
    if not answers:
        return ()
    if isinstance(answers, list | tuple) and all(map(_is_text, answers)):
        return tuple(answers)
    problem = "'reference' is neither text nor a list of texts"
    problems.add(location, problem, "leave it out where empty")
    return ()


def _is_text(answer: object) -> bool:
    return isinstance(answer, str) and answer.strip() != ""


def _read_claims(
    cell: Any, location: SourceLocation, problems: ReadProblems
) -> tuple[Claim, ...]:
    claims = parse_cell(cell) or []
    # A text that begins like a list or an object is one that cannot be read.
    if isinstance(claims, str) and not claims.lstrip().startswith(("[", "{")):
        claims = [line.strip() for line in claims.splitlines() if line.strip()]
    if isinstance(claims, list | tuple):
        parsed = [_parse_claim(claim) for claim in claims]
        if None not in parsed:
            return tuple(claim for claim in parsed if claim is not None)
    problems.add(
        location,
        "'claims' is not a list of texts",
        'a list such as ["The fee is monthly.", '
        '{"text": "Students pay half.", "vital": false}]',
    )
    return ()


def _parse_claim(claim: object) -> Claim | None:
    if isinstance(claim, str):
        return Claim(claim) if claim.strip() else None
    if not isinstance(claim, dict) or not claim.keys() <= {"text", "vital"}:
        return None
    text = claim.get("text")
    vital = claim.get("vital", True)
    if not isinstance(text, str) or not text.strip() or not isinstance(vital, bool):
        return None
    return Claim(text, vital)
