"""Drafts that a person keeps."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.dataset.judgment import read_judgments
from harness.dataset.read_problems import ReadProblems
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

KEEP_POLICY = "Keep what a real person might type and what this document answers. Drop what is unclear, copied, or nobody asks."


class DraftQuery(NamedTuple):
    """A query that a model wrote."""

    id: str
    query: str
    style: str
    need: str
    """Shared by paraphrases."""
    origin: str
    """`llm:MODEL`."""
    document_id: str
    """Id of its document."""

    def line(self) -> str:
        """The draft as one line of a file, and of a table of queries."""
        return json.dumps(self._asdict(), ensure_ascii=False) + "\n"


def drafts_pool(drafts: Sequence[DraftQuery], texts: Mapping[str, Document]) -> Pool:
    """The drafts as a pool, for the judging page: 1 keeps a query, 0 drops it."""
    lines = tuple(
        build_pooled_query(one.id, one.query, [texts[one.document_id]])
        for one in drafts
    )
    return build_pool(
        KEEP_POLICY,
        PoolDesign(depth=1, seed=0, population=len(lines), sampled=len(lines)),
        lines,
    )


def write_drafts(path: Path, drafts: Iterable[DraftQuery]) -> None:
    """Write drafts as lines; InputError if the file exists or cannot be written."""
    write_new_file(path, (one.line() for one in drafts))


def select_kept_drafts(path: Path, judgments: Sequence[Path]) -> list[DraftQuery]:
    """Return the drafts that a person kept.

    Raises:
        InputError: a file cannot be read, or the judgments are of other drafts.
    """
    drafts = {one.id: one for one in _read(path)}
    judged = read_judgments(judgments)
    if foreign := next((one for one in judged if one.query_id not in drafts), None):
        what = f"query {foreign.query_id!r} is not one of the drafts"
        raise InputError(
            Problem(str(path), what, "use the labels that this file's page exported")
        )
    kept = {one.query_id for one in judged if one.round == 1 and one.grade == 1}
    return [one for id_, one in drafts.items() if id_ in kept]


def _read(path: Path) -> Iterator[DraftQuery]:
    problems = ReadProblems()
    for place, row in read_json_lines(path, problems):
        if row.keys() != set(DraftQuery._fields) or not all(
            isinstance(value, str) for value in row.values()
        ):
            problems.add(
                place, "is not a draft", "use a file of `harness queries draft`"
            )
        else:
            yield DraftQuery(**row)
    if problems:
        raise InputError(problems.problems)
