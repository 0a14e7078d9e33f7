"""Drafts that a person keeps.

The judging page asks whether to keep or drop each draft: its grades 1 and 0 are about
the query, so they never become labels (`merge` refuses them).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.dataset.judgment import read_judgments
from harness.dataset.read_problems import ReadProblems
from harness.dataset.row import Row
from harness.dataset.text_rows import read_json_lines
from harness.labels.pool import (
    Pool,
    PoolDesign,
    build_pool,
    build_pooled_query,
    write_new_file,
)
from retrievers.errors import InputError, Problem
from retrievers.types import Document

KEEP_POLICY = (
    "Keep what a real person might type and what this document answers. "
    "Drop what is unclear, copied, or nobody asks."
)


class DraftQuery(NamedTuple):
    """A query that a model wrote."""

    id: str
    query: str
    style: str
    """A key of `draft_queries.QUERY_STYLES`."""
    need: str
    """Drafts that ask for the same have the same: the id of the first of them.

    An experiment may name the field as `cluster`, since such queries are not
    independent.
    """
    origin: str
    """The model that wrote it, as `llm:MODEL`."""
    document_id: str
    """Id of its document."""

    def line(self) -> str:
        """Return the draft as one line of a file, and of a table of queries."""
        return json.dumps(self._asdict(), ensure_ascii=False) + "\n"


def drafts_pool(drafts: Sequence[DraftQuery], texts: Mapping[str, Document]) -> Pool:
    """Return the drafts as a pool for the judging page: 1 keeps a query, 0 drops it."""
    queries = tuple(
        build_pooled_query(draft.id, draft.query, [texts[draft.document_id]])
        for draft in drafts
    )
    design = PoolDesign(depth=1, seed=0, population=len(queries), sampled=len(queries))
    return build_pool(KEEP_POLICY, design, queries)


def write_drafts(path: Path, drafts: Iterable[DraftQuery]) -> None:
    """Write drafts as lines; InputError if the file exists or cannot be written."""
    write_new_file(path, (draft.line() for draft in drafts))


def select_kept_drafts(path: Path, judgment_paths: Sequence[Path]) -> list[DraftQuery]:
    """Return the drafts that any judge kept in the first round, in the file's order.

    Raises:
        InputError: a file cannot be read, or the judgments are of other drafts.
    """
    drafts = {draft.id: draft for draft in _read_drafts(path)}
    judgments = read_judgments(judgment_paths)
    for judgment in judgments:
        if judgment.query_id not in drafts:
            problem = f"query {judgment.query_id!r} is not one of the drafts"
            remedy = "use the labels that this file's page exported"
            raise InputError(Problem(str(path), problem, remedy))
    kept_ids = {
        judgment.query_id
        for judgment in judgments
        if judgment.round == 1 and judgment.grade == 1
    }
    return [draft for id_, draft in drafts.items() if id_ in kept_ids]


def _read_drafts(path: Path) -> Iterator[DraftQuery]:
    """Yield the drafts of a file.

    Raises:
        InputError: lines are no drafts; after the last line, with all of them.
    """
    problems = ReadProblems()
    for row in read_json_lines(path, problems):
        if _is_draft(row):
            yield DraftQuery(**row.cells)
        else:
            remedy = "use a file of `harness queries draft`"
            problems.add(row.location, "is not a draft", remedy)
    if problems:
        raise InputError(problems.problems)


def _is_draft(row: Row) -> bool:
    if row.cells.keys() != set(DraftQuery._fields):
        return False
    return all(isinstance(cell, str) for cell in row.cells.values())
