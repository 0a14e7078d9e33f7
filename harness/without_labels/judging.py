"""What people judge of a `harness try`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from harness.dataset import Dataset
from harness.dataset.judgment import Judgment, read_judgments
from harness.evaluation.judging_pace import SECONDS_PER_KEY
from harness.labels.draw_pool import PoolOptions, collect_material, draw_pool
from harness.labels.judging_order import judging_order, pair_key
from harness.labels.judging_page import (
    JudgingPageOptions,
    unchanged_judgments,
    write_judging_page,
)
from harness.labels.merge import MergedJudgments, merge_into_dataset
from harness.labels.pool import Pool
from harness.records import Results
from harness.without_labels.experiment import POOL_DEPTH
from harness.without_labels.layout import TryFolder

TRY_POLICY = (
    "Imagine that you asked the question. Grade each document by what it says.\n"
    "\n"
    "Right: it answers the question. Partly: it answers a part, or the answer is "
    "hidden or unclear. No: it does not answer, though it may share words with the "
    "question.\n"
    "If no document answers, say so for all of them with one key."
)
TRY_GRADES = {2: "right", 1: "partly", 0: "no"}
"""Grade -> its word; the page has a key for each."""


class JudgingState(NamedTuple):
    """How far people have judged a trial."""

    pairs: int
    """Pairs of question and document in the pool."""
    labels: int
    """Labels that the pool needs: some documents are judged twice."""
    remaining: int
    """Labels that nobody has given; the page, which has one person's, may lack more."""
    page: Path

    @property
    def minutes(self) -> int:
        """How many minutes the missing labels take, at least 1."""
        return max(1, round(self.remaining * SECONDS_PER_KEY / 60))


def write_trial_page(
    folder: TryFolder, dataset: Dataset, results: Results, next_command: str
) -> JudgingState:
    """Write the page of a trial: what each retriever found first, for each question.

    What was judged before stays in the pool: no label is lost if more documents or
    questions change what is found. The page has the labels of the person who gave most.

    Raises:
        InputError: no retriever found a document; the labels cannot be read, or the
            page cannot be written.
    """
    judgments = read_judgments([folder.judgments]) if folder.judgments.is_file() else []
    pool = _draw_trial_pool(dataset, results, judgments)
    options = JudgingPageOptions(
        grades=TRY_GRADES,
        next_command=next_command,
        answered=_judgments_of_main_judge(judgments),
        continues=True,
    )
    write_judging_page(folder.judging_page, pool, options)
    order = [pair_key(pool, pair) for pair in judging_order(pool)]
    judged = {
        (judgment.query_id, judgment.document_id, judgment.round)
        for judgment in unchanged_judgments(pool, judgments)
    }
    remaining = [key for key in order if key not in judged]
    return JudgingState(
        pool.pair_count, len(order), len(remaining), folder.judging_page
    )


def _draw_trial_pool(
    dataset: Dataset, results: Results, judgments: Sequence[Judgment]
) -> Pool:
    material = collect_material([results], dataset, POOL_DEPTH)
    documents_by_query = dict(material.top_documents)
    for judgment in judgments:
        if judgment.query_id in documents_by_query:
            documents_by_query[judgment.query_id] |= {judgment.document_id}
    material = replace(material, top_documents=documents_by_query)
    return draw_pool(material, PoolOptions(depth=POOL_DEPTH, policy=TRY_POLICY))


def _judgments_of_main_judge(judgments: Sequence[Judgment]) -> tuple[Judgment, ...]:
    """Return the judgments of the person who gave most: a page belongs to one."""
    by_judge: dict[str, list[Judgment]] = {}
    for judgment in judgments:
        if judgment.kind == "human":
            by_judge.setdefault(judgment.judge, []).append(judgment)
    if not by_judge:
        return ()
    judge = max(by_judge, key=lambda name: len(by_judge[name]))
    return tuple(by_judge[judge])


def take_labels(folder: TryFolder, path: Path) -> MergedJudgments:
    """Add the labels of an exported file to a trial.

    Raises:
        InputError: a line is no label of this trial; then nothing is written.
    """
    return merge_into_dataset([path], folder.reference, latest_counts=True)
