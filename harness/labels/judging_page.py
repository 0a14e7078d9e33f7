"""The page for people who judge.

Its script has the pool as data, in the order of judging, and exports judgments as
lines. No retriever is named on it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.dataset.judgment import Judgment
from harness.labels.answers_page import render_answers_page, write_answers_page
from harness.labels.judging_order import judging_order, round_pairs
from harness.labels.pool import GRADE_MEANINGS, Pool, PooledQuery, digest_texts

MERGE_COMMAND = "harness labels merge judgments.jsonl --into DATASET"
"""What to type with the file that a page exports."""


@dataclass(frozen=True, slots=True)
class JudgingPageOptions:
    """What a judging page offers."""

    grades: Mapping[int, str] = field(default_factory=lambda: GRADE_MEANINGS)
    """The grades with their words."""
    next_command: str = MERGE_COMMAND
    """What to type when everything is judged."""
    answered: Sequence[Judgment] = ()
    """Earlier judgments of one person, which the page shows as done."""
    continues: bool = False
    """Whether judgments that the browser stores of an earlier pool count here.

    They do if the same person judged the same texts by the same policy.
    """
    has_none_key: bool = True
    """Whether one key says that none of a question's documents is right."""


def render_judging_page(
    pool: Pool,
    options: JudgingPageOptions = JudgingPageOptions(),
) -> str:
    """Return the page of a pool as one HTML text."""
    words = {
        "digest": pool.digest,
        "next_command": options.next_command,
        "has_none_key": options.has_none_key,
    }
    page_data = _page_data(pool, options)
    return render_answers_page("Judge documents", "judge", page_data, words=words)


def write_judging_page(
    path: Path,
    pool: Pool,
    options: JudgingPageOptions = JudgingPageOptions(),
) -> None:
    """Write the page of a pool.

    Raises:
        InputError: it cannot be written, or would overwrite another kind of file.
    """
    write_answers_page(path, render_judging_page(pool, options))


def _page_data(pool: Pool, options: JudgingPageOptions) -> dict[str, object]:
    """Return the data of the script, which has the text of a pair once."""
    documents = [
        document.model_dump() for query in pool.queries for document in query.documents
    ]
    return {
        "pool": pool.digest,
        "policy": pool.policy,
        "prompt": digest_texts(pool.policy),
        "design": pool.drawn.design,
        "population": pool.drawn.population,
        "choices": [
            {"value": grade, "words": words} for grade, words in options.grades.items()
        ],
        "continues": options.continues,
        "answered": _answered_rows(pool, options.answered),
        "queries": [_query_row(query) for query in pool.queries],
        "documents": documents,
        "items": _judging_steps(pool),
    }


def _answered_rows(
    pool: Pool, judgments: Sequence[Judgment]
) -> list[dict[str, object]]:
    """Return earlier judgments of pairs whose texts are unchanged, for the script."""
    unchanged = unchanged_judgments(pool, judgments)
    return [judgment.model_dump(mode="json") for judgment in unchanged]


def unchanged_judgments(pool: Pool, judgments: Sequence[Judgment]) -> list[Judgment]:
    """Return the judgments of a pool's pairs whose texts are still the same."""
    digests = {
        (query.query_id, document.id): document.digest
        for query in pool.queries
        for document in query.documents
    }
    return [
        judgment for judgment in judgments if digests.get(judgment.key) == judgment.text
    ]


def _query_row(query: PooledQuery) -> dict[str, object]:
    return {
        "id": query.query_id,
        "text": query.query,
        "inclusion": query.inclusion,
        "asked": len(query.documents),
    }


def _judging_steps(pool: Pool) -> list[dict[str, int]]:
    """Return the steps in the order of judging.

    Each has the number of its text among the documents of `_page_data`; pairs that are
    judged again, in a second round, have the text of the first.
    """
    text_numbers: dict[tuple[int, int], int] = {}
    for number, pair in enumerate(round_pairs(pool, 1)):
        text_numbers[pair.query, pair.document] = number
    return [
        {
            "query": pair.query,
            "document": pair.document,
            "text": text_numbers[pair.query, pair.document],
            "round": pair.round,
        }
        for pair in judging_order(pool)
    ]
