"""What is printed of two states of a corpus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from harness.english import (
    count_of,
    count_pairs,
    p_relation,
    p_text,
    with_minus_sign,
)
from harness.evaluation.verdict import Verdict

if TYPE_CHECKING:
    from harness.evaluation.corpus_change import ChangedRetriever, CorpusChange
    from harness.scoring.states import StateQueries

_VERDICT_WORDS = {
    Verdict.BETTER: "better after",
    Verdict.WORSE: "worse after",
    Verdict.EQUIVALENT: "equivalent",
    Verdict.UNDECIDED: "undecided",
}


def state_queries_sentence(queries: StateQueries) -> str:
    """Return the sentence that says how many queries are compared, and why not others.

    >>> from harness.scoring.states import StateQueries
    >>> queries = StateQueries(
    ...     ids=("q1", "q2"),
    ...     without_label_before=(),
    ...     without_label_after=("q3",),
    ...     changed_text=(),
    ...     without_value=4,
    ... )
    >>> print(state_queries_sentence(queries))
    Compared on 2 queries with a label in both states. Left out: 1 without a label now,\
 4 without a value.
    """
    counts = {
        "without a label then": len(queries.without_label_before),
        "without a label now": len(queries.without_label_after),
        "with another text": len(queries.changed_text),
        "without a value": queries.without_value,
    }
    left_out = [f"{number:,} {reason}" for reason, number in counts.items() if number]
    compared = count_of(len(queries.ids), "query")
    sentence = f"Compared on {compared} with a label in both states."
    if not left_out:
        return sentence
    return f"{sentence} Left out: {', '.join(left_out)}."


def corpus_change_lines(change: CorpusChange) -> Iterator[str]:
    """Yield the lines that `harness compare OLD NEW --corpus-changed` prints."""
    documents = change.documents
    counts = [
        f"{len(documents.added):,} added",
        f"{len(documents.removed):,} removed",
        f"{len(documents.changed):,} changed",
    ]
    yield f"documents: {', '.join(counts)}"
    yield state_queries_sentence(change.queries)
    yield f"{change.measure}, each retriever against itself:"
    for changed in change.retrievers:
        yield from _retriever_lines(change, changed)


def _retriever_lines(change: CorpusChange, changed: ChangedRetriever) -> Iterator[str]:
    """Yield what changed in the scores, labels and first hits of one retriever."""
    row = changed.comparison  # after minus before
    means = f"{changed.before:.3f} before, {changed.after:.3f} after"
    gap = f"{row.mean_difference:+z.3f}"
    if row.ci_low is not None and row.ci_high is not None:
        gap += f", {row.ci_low:+z.3f} to {row.ci_high:+z.3f}"
    gap = with_minus_sign(gap)
    outcome = _VERDICT_WORDS[changed.verdict]
    if changed.reason is not None:
        outcome += f", {changed.reason.value}"
    p = p_relation(p_text(row.p_adjusted))
    yield f"{changed.retriever}: {means} ({gap}), p {p}: {outcome}"
    labels = changed.labels
    shares = f"{labels.judged_before:.2f} before, {labels.judged_after:.2f} after"
    yield f"  Judged@{change.cutoff}: {shares}"
    if labels.to_label:
        pairs = count_pairs(labels.to_label)
        where = f"new documents among the first {change.cutoff} hits"
        if change.cutoff == 1:
            where = "new documents as the first hit"
        pool = f"harness pool --depth {change.cutoff} draws them, among others"
        yield f"  to judge: {pairs}, {where} ({pool})"
    if changed.displaced:
        lost = f"{changed.displaced:,} of {len(change.queries.ids):,} queries lost"
        yield f"  {lost} a relevant document to documents that are new"


class ChangedRetrieverRow(NamedTuple):
    """A retriever over two states of a corpus, as `--json` prints it."""

    retriever: str
    before: float
    after: float
    mean_difference: float
    ci_low: float | None
    ci_high: float | None
    p_adjusted: float
    verdict: str
    reason: str | None
    judged_before: float
    judged_after: float
    to_label: int
    """How many new documents among the queries' first hits have no label."""
    displaced: int
    """How many queries lost a relevant first hit to a new document that is not."""


def changed_retriever_rows(change: CorpusChange) -> list[ChangedRetrieverRow]:
    """Return the retrievers as rows for JSON."""
    return [_changed_retriever_row(changed) for changed in change.retrievers]


def _changed_retriever_row(changed: ChangedRetriever) -> ChangedRetrieverRow:
    row = changed.comparison  # after minus before
    return ChangedRetrieverRow(
        retriever=changed.retriever,
        before=changed.before,
        after=changed.after,
        mean_difference=row.mean_difference,
        ci_low=row.ci_low,
        ci_high=row.ci_high,
        p_adjusted=row.p_adjusted,
        verdict=changed.verdict.value,
        reason=None if changed.reason is None else changed.reason.value,
        judged_before=changed.labels.judged_before,
        judged_after=changed.labels.judged_after,
        to_label=changed.labels.to_label,
        displaced=changed.displaced,
    )
