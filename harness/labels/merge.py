"""Judgments merged into a data set."""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.dataset import Dataset, DatasetReference, load_dataset
from harness.dataset.judgment import (
    JUDGMENTS_FILE,
    Judgment,
    PlacedJudgment,
    judged_text_digest,
    read_judgment_file,
    resolve_corrections,
)
from harness.dataset.merge_judgments import merge_judgments
from harness.dataset.read_problems import ReadProblems
from harness.labels.disputes import Dispute, people_disputes
from harness.labels.keep_drafts import KEEP_POLICY
from harness.labels.pool import (
    Pool,
    PoolDesign,
    build_pool,
    build_pooled_query,
    digest_texts,
)
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.files.text_files import explain_write_errors, open_text_file


def corrections_as_rounds(
    earlier_judgments: Iterable[Judgment],
    new_judgments: Iterable[PlacedJudgment],
    correcting_judges: Collection[str],
) -> Iterator[PlacedJudgment]:
    """Yield judgments; a correction that another person may have sent becomes a second round.

    A correction counts if its judge is in `correcting_judges`, or if a model gave no grade before; otherwise anyone could
    overwrite another person's grades with a file in their name.

    Args:
        earlier_judgments: the existing judgments, with corrections resolved.
        new_judgments: the lines to add.
        correcting_judges: judges whose corrections count.
    """
    known = {
        (*one.key, one.judge, one.design, one.round): one for one in earlier_judgments
    }
    for place, judgment in new_judgments:
        key = (*judgment.key, judgment.judge, judgment.design, judgment.round)
        first = known.get(key)
        written_over = first is not None and (
            first.kind == "human" or first.grade is not None
        )
        if (
            written_over
            and judgment.corrects
            and judgment.judge not in correcting_judges
        ):
            yield PlacedJudgment(
                place,
                judgment.model_copy(
                    update={"corrects": False, "round": judgment.round + 1}
                ),
            )
        else:
            known[key] = judgment
            yield PlacedJudgment(place, judgment)


class MergedJudgments(NamedTuple):
    """The result of a merge."""

    path: Path
    judgments: int
    added: int
    people: int
    """Queries that people judged completely."""
    mixed: int
    """Queries that people did not finish."""
    model: int
    """Queries that only a model judged."""
    disputed: tuple[Dispute, ...]
    opinions: tuple[str, ...]
    """Judges whose corrections were not accepted and are kept as a second round."""


def merge_into_dataset(
    paths: Sequence[Path],
    reference: DatasetReference,
    correcting_judges: Collection[str] = (),
) -> MergedJudgments:
    """Add judgments to a data set's own; all of them or none.

    Args:
        paths: files of judgments.
        reference: the data set.
        correcting_judges: people whose corrections of their own grades count; other corrections are second rounds.

    Raises:
        InputError: a line cannot be read, judges a query, document or text that the data set does not have, or
            contradicts another judgment of the same judge; then nothing is written.
    """
    if reference.scheme or not reference.folder.is_dir():
        raise InputError(
            Problem(
                reference.name,
                "is not a folder",
                "labels are stored in the data set's folder",
            )
        )
    path = reference.folder / JUDGMENTS_FILE
    dataset, seen = load_dataset(reference), ReadProblems()
    there = list(read_judgment_file(path, seen)) if path.is_file() else []
    before = resolve_corrections(there, seen)
    said = [line for file in paths for line in read_judgment_file(file, seen)]
    joining = list(corrections_as_rounds(before, said, correcting_judges))
    whole = resolve_corrections([*there, *joining], seen)
    if seen:
        raise InputError(seen.problems)
    _check([one for _, one in joining], dataset)
    opinions = {
        new.judge
        for (_, old), (_, new) in zip(said, joining, strict=True)
        if old.round != new.round
    }
    temporary = path.with_name(f"{JUDGMENTS_FILE}.part")
    with explain_write_errors(path):
        with open_text_file(temporary, "w") as file:
            file.writelines(one.line() for one in whole)
        os.replace(temporary, path)  # noqa: PTH105 - replaces on Windows, too
    sources = [labels.source for labels in merge_judgments(whole).values()]
    return MergedJudgments(
        path,
        len(whole),
        len(whole) - len(before),
        sources.count("people"),
        sources.count("mixed"),
        sources.count("model"),
        tuple(people_disputes(whole)),
        tuple(sorted(opinions)),
    )


def adjudication_pool(
    disputed: Sequence[Dispute], reference: DatasetReference, policy: str
) -> Pool:
    """The disputed pairs as a pool, whose judgments take precedence."""
    dataset = load_dataset(reference)
    queries = {query.id: query for query in dataset.stored_queries}
    texts = dataset.texts({one.document_id for one in disputed})
    lines = tuple(
        build_pooled_query(
            one.query_id, queries[one.query_id].text, [texts[one.document_id]]
        )
        for one in disputed
    )
    drawn = PoolDesign(
        depth=0,
        seed=0,
        population=len(queries),
        sampled=len(lines),
        design="adjudication",
    )
    return build_pool(policy, drawn, lines)


def _check(judgments: Sequence[Judgment], dataset: Dataset) -> None:
    """Refuse judgments of queries, documents or texts that the data set does not have."""
    queries = {query.id: query for query in dataset.stored_queries}
    texts = dataset.texts({one.document_id for one in judgments})
    seen = ReadProblems()
    for one in judgments:
        where = f"query {one.query_id!r}, document {one.document_id!r}"
        if one.prompt == digest_texts(KEEP_POLICY):
            seen.add(
                where,
                "keeps or drops a draft; it is not a grade of a document",
                "harness queries keep",
            )
        elif one.query_id not in queries:
            remedy = (
                did_you_mean(one.query_id, queries) if len(queries) <= 2_000 else ""
            )
            seen.add(
                where,
                f"the data set has no such query: a pool of other queries? {remedy}",
            )
        elif one.document_id not in texts:
            seen.add(
                where, "the data set has no such document: a pool of another corpus?"
            )
        elif one.text != judged_text_digest(
            queries[one.query_id].text, texts[one.document_id]
        ):
            what = "the query or the document has changed since it was judged"
            seen.add(where, what, "make a new pool and judge it again")
    if seen:
        raise InputError(seen.problems)
