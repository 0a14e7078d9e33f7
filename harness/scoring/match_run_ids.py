"""The ids of a run, matched to those of the judgments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from harness.measures.score import Grades
from retrievers.errors import InputError, Problem
from retrievers.files.trec_files import RunScores
from retrievers.ids import KnownDocuments, count_matches_by_way


class MatchedRun(NamedTuple):
    """A run whose ids were matched with those of the judgments."""

    run: RunScores
    note: str
    """How ids were matched; "" if they were not."""


def match_run_ids(run: RunScores, judgments: Grades, where: str) -> MatchedRun:
    """Match the ids of a run without a judged hit with those of the judgments.

    Args:
        run: query id -> document id -> score.
        judgments: query id -> document id -> grade.
        where: the name of the run in messages.

    Raises:
        UnmatchedRun: they cannot be matched.
    """
    judged_documents: set[str] = set()
    for judged in judgments.values():
        judged_documents.update(judged)
    returned: dict[str, None] = {}
    for query_id, hits in run.items():
        if query_id in judgments:
            returned.update(dict.fromkeys(hits))
    documents = KnownDocuments(judged_documents)
    matches = documents.match(returned)
    if returned and not matches:
        run_example = next(iter(returned))
        judged_example = min(documents.ids, default="nothing")
        examples = (
            f"ids look like {run_example!r} here and {judged_example!r} in the qrels"
        )
        problem = f"no hit is judged in any query: {examples}"
        remedy = "give the qrels of the same documents"
        raise UnmatchedRun(Problem(where, problem, remedy))
    new_ids = {document: match.document for document, match in matches.items()}
    renamed = {query_id: _rename_hits(hits, new_ids) for query_id, hits in run.items()}
    ways = [
        f"{number:,} by {way}"
        for way, number in count_matches_by_way(matches.values()).items()
        if way != "id"
    ]
    return MatchedRun(renamed, f"ids matched: {', '.join(ways)}" if ways else "")


def _rename_hits(
    hits: Mapping[str, float], new_ids: Mapping[str, str]
) -> dict[str, float]:
    """Rename hits; of two that are renamed alike, the higher score counts."""
    renamed: dict[str, float] = {}
    for document in sorted(hits, key=hits.__getitem__):
        renamed[new_ids.get(document, document)] = hits[document]
    return renamed


class UnmatchedRun(InputError):
    """No hit of a run is judged in any query: it has no scores, and others do."""
