"""Judgments merged into a data set.

New lines are added to the data set's file of judgments, which is written anew, or not
at all if one line does not fit. That file becomes labels whenever the data set is
read (`harness.dataset.merge_judgments`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.dataset import Dataset, DatasetReference, load_dataset
from harness.dataset.check_corpus import MAX_COMPARED_IDS
from harness.dataset.judgment import (
    JUDGMENTS_FILE,
    Judgment,
    JudgmentKey,
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
    PooledQuery,
    build_pool,
    build_pooled_query,
    digest_texts,
)
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.files.text_files import explain_write_errors, open_text_file
from retrievers.types import Document, Query


class MergedJudgments(NamedTuple):
    """The result of a merge."""

    path: Path
    """The file of judgments in the data set's folder."""
    judgment_count: int
    """Number of judgments in the file."""
    new_judgment_count: int
    """How many more these are than before."""
    people_query_count: int
    """Number of queries that people judged completely."""
    mixed_query_count: int
    """Number of queries that people did not finish."""
    model_query_count: int
    """Number of queries that only a model judged."""
    disputes: tuple[Dispute, ...]
    """Pairs of the data set's queries on which people differ by two grades or more."""
    later_round_judges: tuple[str, ...]
    """Judges whose corrections are refused, and kept as later rounds."""


def merge_into_dataset(
    paths: Sequence[Path],
    reference: DatasetReference,
    correcting_judges: Collection[str] = (),
    *,
    latest_counts: bool = False,
) -> MergedJudgments:
    """Add judgments to those of a data set; all of them or none.

    Args:
        paths: files of judgments.
        reference: the data set.
        correcting_judges: people whose corrections replace their earlier grades; other
            corrections become later rounds.
        latest_counts: whether each line replaces an earlier one of its judge about the
            same pair: people export one page again and again.

    Raises:
        InputError: a line cannot be read, judges a query, document or text that the
            data set does not have, or contradicts another judgment of the same judge;
            then nothing is written.
    """
    if reference.scheme or not reference.folder.is_dir():
        remedy = "labels are stored in the data set's folder"
        raise InputError(Problem(reference.name, "is not a folder", remedy))
    path = reference.folder / JUDGMENTS_FILE
    dataset = load_dataset(reference)
    problems = ReadProblems()
    existing = list(read_judgment_file(path, problems)) if path.is_file() else []
    before = resolve_corrections(existing, problems)
    read_lines: list[PlacedJudgment] = []
    for new_path in paths:
        read_lines += _read_labels(new_path, problems)
    if latest_counts:
        # Every judge corrects their own earlier lines, none of which is refused.
        read_lines = list(_as_corrections(before, read_lines))
        correcting_judges = {placed.judgment.judge for placed in read_lines}
    new_lines = list(corrections_as_rounds(before, read_lines, correcting_judges))
    merged = resolve_corrections([*existing, *new_lines], problems)
    if problems:
        raise InputError(problems.problems)
    _check_judgments([placed.judgment for placed in new_lines], dataset)
    _replace_file(path, merged)
    sources = [labels.source for labels in merge_judgments(merged).values()]
    return MergedJudgments(
        path,
        judgment_count=len(merged),
        new_judgment_count=len(merged) - len(before),
        people_query_count=sources.count("people"),
        mixed_query_count=sources.count("mixed"),
        model_query_count=sources.count("model"),
        disputes=_own_disputes(merged, dataset),
        later_round_judges=_later_round_judges(read_lines, new_lines),
    )


def _own_disputes(
    judgments: Sequence[Judgment], dataset: Dataset
) -> tuple[Dispute, ...]:
    """Return the disputes about queries of a data set.

    Another file of queries in its folder may have others, whose texts are not known.
    """
    query_ids = {query.id for query in dataset.stored_queries}
    disputes = people_disputes(judgments)
    return tuple(dispute for dispute in disputes if dispute.query_id in query_ids)


def _read_labels(path: Path, problems: ReadProblems) -> list[PlacedJudgment]:
    """Return the judgments of a file; that it has none is a problem."""
    placed_judgments = list(read_judgment_file(path, problems))
    # A file whose lines all have a problem is not called empty, too.
    if not (placed_judgments or problems):
        remedy = "judge first, then name the file with the exported labels"
        problems.add(path, "has no labels", remedy)
    return placed_judgments


def corrections_as_rounds(
    earlier_judgments: Iterable[Judgment],
    new_judgments: Iterable[PlacedJudgment],
    correcting_judges: Collection[str],
) -> Iterator[PlacedJudgment]:
    """Yield judgments; refused corrections become later rounds of their judge.

    A correction replaces the earlier grade if its judge is in `correcting_judges`, or
    if a model gave no grade before. Otherwise it is refused: anyone could overwrite
    another person's grades with a file in their name.

    Args:
        earlier_judgments: the existing judgments, with corrections resolved.
        new_judgments: the lines to add.
        correcting_judges: judges whose corrections replace their earlier grades.
    """
    latest = {judgment.round_key: judgment for judgment in earlier_judgments}
    for location, judgment in new_judgments:
        earlier = latest.get(judgment.round_key)
        is_allowed = judgment.judge in correcting_judges
        if earlier is not None and earlier.kind != "human" and earlier.grade is None:
            is_allowed = True
        if earlier is not None and judgment.corrects and not is_allowed:
            judgment = _as_later_round(judgment, latest)
        latest[judgment.round_key] = judgment
        yield PlacedJudgment(location, judgment)


def _as_later_round(
    judgment: Judgment, latest: Mapping[JudgmentKey, Judgment]
) -> Judgment:
    """Return a refused correction in the first round that it does not contradict.

    That is its own round if it repeats the grade, and the second round as a rule; a
    later one if that has another grade of this judge already.
    """
    later = judgment.model_copy(update={"corrects": False})
    while True:
        earlier = latest.get(later.round_key)
        if earlier is None or earlier.grade == later.grade:
            return later
        later = later.model_copy(update={"round": later.round + 1})


def _as_corrections(
    earlier_judgments: Iterable[Judgment], new_judgments: Iterable[PlacedJudgment]
) -> Iterator[PlacedJudgment]:
    """Yield judgments; those whose key an earlier one has become corrections."""
    earlier_keys = {judgment.round_key for judgment in earlier_judgments}
    for location, judgment in new_judgments:
        is_repeated = judgment.round_key in earlier_keys
        earlier_keys.add(judgment.round_key)
        changes = {"corrects": judgment.corrects or is_repeated}
        yield PlacedJudgment(location, judgment.model_copy(update=changes))


def _replace_file(path: Path, judgments: Iterable[Judgment]) -> None:
    """Write a file of judgments anew; one that cannot be replaced stays as it is."""
    temporary = path.with_name(f"{JUDGMENTS_FILE}.part")
    with explain_write_errors(path):
        with open_text_file(temporary, "w") as file:
            file.writelines(judgment.line() for judgment in judgments)
        temporary.replace(path)


def _later_round_judges(
    read_lines: Sequence[PlacedJudgment], new_lines: Sequence[PlacedJudgment]
) -> tuple[str, ...]:
    """Return the judges of lines that became another round than they were read as."""
    judges: set[str] = set()
    for read_line, new_line in zip(read_lines, new_lines, strict=True):
        if read_line.judgment.round != new_line.judgment.round:
            judges.add(new_line.judgment.judge)
    return tuple(sorted(judges))


def adjudication_pool(
    disputes: Sequence[Dispute], reference: DatasetReference, policy: str
) -> Pool:
    """Return the disputed pairs as a pool.

    Its judgments take precedence over earlier ones: its design is "adjudication".
    """
    dataset = load_dataset(reference)
    texts_by_id = {
        query.id: query.text_with_history for query in dataset.stored_queries
    }
    documents = dataset.texts({dispute.document_id for dispute in disputes})
    pooled_queries: list[PooledQuery] = []
    for dispute in disputes:
        query_text = texts_by_id[dispute.query_id]
        document = documents[dispute.document_id]
        pooled_queries.append(
            build_pooled_query(dispute.query_id, query_text, [document])
        )
    design = PoolDesign(
        depth=0,
        seed=0,
        population=len(texts_by_id),
        sampled=len(pooled_queries),
        design="adjudication",
    )
    return build_pool(policy, design, tuple(pooled_queries))


def _check_judgments(judgments: Sequence[Judgment], dataset: Dataset) -> None:
    """Refuse judgments of queries, documents or texts that the data set does not have.

    Raises:
        InputError: with every such judgment.
    """
    queries = {query.id: query for query in dataset.stored_queries}
    documents = dataset.texts({judgment.document_id for judgment in judgments})
    problems = ReadProblems()
    for judgment in judgments:
        problem = _judgment_problem(judgment, queries, documents)
        if problem is not None:
            problems.append(problem)
    if problems:
        raise InputError(problems.problems)


def _judgment_problem(
    judgment: Judgment, queries: Mapping[str, Query], documents: Mapping[str, Document]
) -> Problem | None:
    """Return the problem of a judgment that does not belong to a data set."""
    where = f"query {judgment.query_id!r}, document {judgment.document_id!r}"
    if judgment.prompt == digest_texts(KEEP_POLICY):
        problem = "keeps or drops a draft; it is not a grade of a document"
        return Problem(where, problem, "harness queries keep")
    query = queries.get(judgment.query_id)
    if query is None:
        remedy = ""
        if len(queries) <= MAX_COMPARED_IDS:
            remedy = did_you_mean(judgment.query_id, queries)
        problem = "the data set has no such query: a pool of other queries?"
        return Problem(where, f"{problem} {remedy}".rstrip())
    document = documents.get(judgment.document_id)
    if document is None:
        problem = "the data set has no such document: a pool of another corpus?"
        return Problem(where, problem)
    if judgment.text != judged_text_digest(query.text_with_history, document):
        problem = "the query or the document has changed since it was judged"
        return Problem(where, problem, "make a new pool and judge it again")
    return None
