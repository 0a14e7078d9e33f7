"""A data set as text."""

from collections.abc import Iterator
from typing import Any

from harness.dataset import Dataset
from harness.english import count_of, first_names
from harness.preflight.dataset_summary import DatasetSummary
from harness.preflight.truncation import TruncationEstimate

MAX_LANGUAGES = 5
"""Languages shown, at most."""


def summary_lines(summary: DatasetSummary, dataset: Dataset) -> Iterator[str]:
    """Yield a data set in figures: sizes, languages, documents cut off, labels."""
    documents = count_of(dataset.document_count, "document")
    sample = "all " if dataset.document_count > 1 else ""
    if summary.sampled != dataset.document_count:
        sample = f"a seeded sample of {summary.sampled:,} of "
    yield f"in {sample}{documents}:"
    tokens = summary.tokens
    quantiles = f"95 % below {tokens.percentile_95:,}; longest {tokens.longest:,}"
    yield f"  about {tokens.median:,} tokens per document ({quantiles})"
    yield f"  languages: {_languages(summary)}"
    if summary.quoted:
        quoted = f"{len(summary.quoted):,} ({first_names(summary.quoted)})"
        yield f"  queries copied from a document: {quoted}"
    for estimate in summary.reaches:
        yield f"  {_truncation_line(estimate)}"
    yield from _label_lines(summary, dataset)


def _languages(summary: DatasetSummary) -> str:
    sampled = max(summary.sampled, 1)
    shares = [
        f"{language} {100 * documents / sampled:.0f} %"
        for language, documents in summary.languages[:MAX_LANGUAGES]
    ]
    return ", ".join(shares) or "none is clear"


def _truncation_line(estimate: TruncationEstimate) -> str:
    """Return how many documents are longer than a model reads."""
    about = "" if estimate.exact else "about "
    are = "is" if estimate.beyond == 1 else "are"
    sampled = count_of(estimate.sampled, "document")
    unread = ""
    if estimate.lost:
        unread = (
            f"; {about}{estimate.lost:,} of {count_of(estimate.tokens, 'token')} unread"
        )
    return (
        f"{estimate.retriever}: {about}{estimate.beyond:,} of {sampled} {are} longer "
        f"than the {estimate.limit:,} tokens that it reads{unread}"
    )


def _label_lines(summary: DatasetSummary, dataset: Dataset) -> Iterator[str]:
    """Yield how many documents have labels, per query and in all."""
    fewest, median, most = summary.per_query  # relevant documents
    if not most:
        yield (
            "labels: no query has a relevant document yet; "
            "harness pool starts labelling"
        )
        return
    fewer = f"{fewest:,} to " if fewest < most else ""
    relevant = count_of(most, "relevant document")
    yield f"labels: {fewer}{relevant} per query (median {median:,g})"
    if summary.grades:
        grades = [f"{grade}: {count:,}" for grade, count in summary.grades]
        yield f"  grades: {', '.join(grades)}"
    have = "has" if summary.labelled == 1 else "have"
    unlabelled = dataset.document_count - summary.labelled
    others = ""
    if unlabelled:
        verb = "counts" if unlabelled == 1 else "count"
        others = f"; the other {unlabelled:,} {verb} as not relevant"
    yield f"  {count_of(summary.labelled, 'document')} {have} labels{others}"


def summary_object(summary: DatasetSummary) -> dict[str, Any]:
    """Return a summary as the object that `--json` prints."""
    return {
        **summary._asdict(),
        "languages": dict(summary.languages),
        "grades": dict(summary.grades),
        "reaches": [reach._asdict() for reach in summary.reaches],
    }
