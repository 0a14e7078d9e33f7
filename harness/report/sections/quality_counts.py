"""Every count of the data."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from harness.english import count_of, count_queries
from harness.evaluation.property_slices import differs_by_query
from harness.experiment import RelevanceConfig
from harness.records import DatasetFacts, Manifest, RetrieverQuality
from harness.records.facts import JudgeRecord
from harness.report.numbers import number_text
from harness.report.view import View
from harness.wording.reading import QUALITY_PHRASES

COUNT_PHRASES = {
    "truncated": "truncated documents",
    "truncated-query": "truncated queries",
    "truncated-pair": "queries with a truncated pair",
    "empty": "empty documents",
    "zero-vector": "documents with zero vectors",
    "zero-vector-query": "queries with zero vectors",
    "not-in-corpus": "hits with unknown ids",
    "matched-hit": "ids of hits that were matched by file name, folder or title",
    "not-answered-query": "queries for which nothing was returned",
    "repeated-hit-query": "queries with a document returned twice",
    "nothing-matches-query": "queries whose filter no document matches",
    "tied-run-query": "queries whose hits all have one score",
    "rising-run-query": "queries whose scores rise with rank",
    "no-shared-word": "queries of which no document has a word",
    "no-hit-query": (
        "queries with which no document that is searched shares a dimension "
        "of its sparse vector"
    ),
    "changed-passage": "documents with a passage that is not in their text",
    "short-context": "queries whose passages end before the measured context",
    "collapsed": "further hits of the same page, file or section",
    "lost_tokens": "tokens lost by truncation",
    "retries": "retries",
    "declined": "requests that the model's endpoint declined",
    "agent_calls_ended": "queries whose agent answered at the limit of calls",
    "agent_tokens_ended": "queries whose agent met the limit of tokens",
    "agent_out_of_form": "queries whose agent gave no answer that can be read",
    "unanswered": (
        "requests without a usable response, which may be billed (estimated cost)"
    ),
}
"""The names of the kinds of counts; any other kind has its own name."""
HIDDEN_COUNTS = (
    "cached_tokens",
    "shared_hits",
    "exact_hits",
    "shared_hits_at_10",
    "exact_hits_at_10",
)
"""Counts that other sections show as costs or recall; high ones are no problem."""
MAX_LISTED_IDS = 20
"""Ids of one kind, or values of one field, that are listed, at most."""
MAX_VALUE_WORDS = 4
"""Words of a value, at most, where a text lists several."""
MAX_LISTED_GRADES = 30
"""Grades that are listed, at most: the highest."""


class DatasetCount(NamedTuple):
    """A count of the data set."""

    phrase: str
    number: int
    ids: Sequence[str]
    """The first ids, `MAX_LISTED_IDS` at most."""


class ListedIds(NamedTuple):
    """Ids of one kind that some retrievers share."""

    retrievers: tuple[str, ...]
    ids: tuple[str, ...]
    """The first ids, `MAX_LISTED_IDS` at most."""
    is_cut: bool
    """Whether there are more ids."""


@dataclass(frozen=True, slots=True)
class QualityTables:
    """The counts of the data and of each retriever."""

    dataset: list[DatasetCount]
    """The counts that are of no retriever."""
    cut: bool
    """Whether documents were truncated."""
    nonzero: Mapping[str, Mapping[str, float]]
    """Phrase -> retriever -> number."""
    ids: Mapping[str, list[ListedIds]]
    """Phrase -> its ids; retrievers with the same ids are together."""
    unjudged: Mapping[str, float]
    """Retriever -> share of its first hits without a label."""
    claims: str
    """The sentence on measures by claims; "" without them."""


class FieldCount(NamedTuple):
    """A field of the queries."""

    name: str
    values: list[tuple[str, int]]
    """The most frequent ones, with the number of queries of each.

    Empty if they differ from query to query.
    """
    distinct: int
    """How many different values there are."""


@dataclass(frozen=True, slots=True)
class DatasetContents:
    """The contents of the data set."""

    facts: DatasetFacts
    labels: str
    """Relevant documents per query: "3 to 10, median 4"."""
    lengths: str
    """Characters per query, likewise."""
    grades: list[tuple[int, int]]
    """Grades with their numbers of labels, the highest grade first."""
    fields: list[FieldCount]
    relevance: RelevanceConfig


def quality_tables(view: View) -> QualityTables:
    """The counts of excluded, truncated, empty, tied or retried items.

    They are of the data, and of each retriever with its parts.
    """
    counts: dict[str, dict[str, float]] = {}
    ids: dict[str, dict[str, tuple[str, ...]]] = {}
    for retriever in view.retrievers:
        quality = quality_with_parts(view.manifest, retriever)
        for kind, kind_ids in quality.notes.items():
            phrase = _phrase(kind)
            counts.setdefault(phrase, {})[retriever] = len(kind_ids)
            ids.setdefault(phrase, {})[retriever] = tuple(kind_ids)
        for stage_counts in quality.counts.values():
            for kind, number in stage_counts.items():
                if kind not in HIDDEN_COUNTS:
                    row = counts.setdefault(_phrase(kind), {})
                    row[retriever] = row.get(retriever, 0) + number
    tied = f"queries tied at rank {view.cutoff}"
    short = f"queries with fewer than {view.cutoff} hits"
    if view.cutoff == 1:
        short = "queries without a hit"
    for retriever, digest in view.ranking_digests.items():
        counts.setdefault(tied, {})[retriever] = digest.tied_queries
        counts.setdefault(short, {})[retriever] = digest.short_queries
    nonzero = {kind: row for kind, row in counts.items() if any(row.values())}
    return QualityTables(
        dataset=_dataset_counts(view.manifest.ledger.dataset),
        cut=COUNT_PHRASES["truncated"] in nonzero,
        nonzero=nonzero,
        ids={
            phrase: list_shared_ids(ids_by_name) for phrase, ids_by_name in ids.items()
        },
        unjudged=unjudged_shares(view),
        claims=claims_sentence(view.manifest.judge, view.n),
    )


def _dataset_counts(ids_by_kind: Mapping[str, Sequence[str]]) -> list[DatasetCount]:
    """Return the counts of the data, in the words of `harness check`."""
    return [
        DatasetCount(
            QUALITY_PHRASES.get(kind, _phrase(kind)), len(ids), ids[:MAX_LISTED_IDS]
        )
        for kind, ids in ids_by_kind.items()
    ]


def list_shared_ids(ids_by_retriever: Mapping[str, tuple[str, ...]]) -> list[ListedIds]:
    """The first ids of each retriever; those with the same ids share one list."""
    retrievers_by_ids: dict[tuple[str, ...], list[str]] = {}
    for retriever, ids in ids_by_retriever.items():
        retrievers_by_ids.setdefault(ids, []).append(retriever)
    return [
        ListedIds(tuple(retrievers), ids[:MAX_LISTED_IDS], len(ids) > MAX_LISTED_IDS)
        for ids, retrievers in retrievers_by_ids.items()
    ]


def claims_sentence(judge: JudgeRecord | None, queries: int) -> str:
    """Which judge judged how many claims, and its weakness; "" if none did.

    >>> claims_sentence(None, 138)
    ''
    """
    if judge is None or judge.counts is None:
        return ""
    weakness = ""
    if judge.judge.startswith("lexical"):
        weakness = "; it compares words only: a weak judge, which misses paraphrases"
    counts = judge.counts
    verdicts = count_of(counts.verdicts, "verdict")
    claims = count_of(counts.claims, "claim")
    return (
        f"Measures by claims rest on {verdicts} of the judge {judge.judge} on "
        f"{claims} of {counts.queries:,} of {count_queries(queries)}, "
        f"{counts.unreadable:,} of them unreadable{weakness}. "
        "They are undefined for the other queries."
    )


def unjudged_shares(view: View) -> dict[str, float]:
    """Retriever -> share of its hits within the primary cutoff without a label.

    A mean over queries with a hit. Empty if claims decide, and if labels list relevant
    documents only: then no label and irrelevant are the same.
    """
    if not view.scores.has_irrelevant_labels:
        return {}
    judged_shares = view.evaluation.judged_shares
    return {
        retriever: 1 - judged_shares[retriever]
        for retriever in view.retrievers
        if retriever in judged_shares
    }


def _phrase(kind: str) -> str:
    """Return the name of a kind of counts."""
    return COUNT_PHRASES.get(kind, kind.replace("_", " ").replace("-", " "))


def describe_dataset(view: View) -> DatasetContents:
    """The contents of the data set."""
    relevant_counts: list[int] = []
    text_lengths: list[int] = []
    grade_counts: Counter[int] = Counter()
    texts_by_field: dict[str, list[str]] = {}
    for query_id in view.ids:
        grades = list(view.grades[query_id].values())
        grade_counts.update(grades)
        relevant_counts.append(sum(grade > 0 for grade in grades))
        query = view.results.queries[query_id].query
        text_lengths.append(len(query.text))
        for field, text in query.fields.items():
            texts_by_field.setdefault(field, []).append(str(text))
    return DatasetContents(
        facts=view.manifest.dataset,
        labels=_range_text(relevant_counts),
        lengths=_range_text(text_lengths),
        grades=sorted(grade_counts.items(), reverse=True)[:MAX_LISTED_GRADES],
        fields=[count_field(field, texts) for field, texts in texts_by_field.items()],
        relevance=view.resolved.relevance,
    )


def count_field(name: str, texts: Sequence[str]) -> FieldCount:
    """Count the values of a field; one text may list several, between commas.

    Texts with long parts are prose, no lists. Values that differ from query to query
    are counted, and none of them is listed; empty ones do not count.

    >>> count_field("tags", ["a, b", "a", "b"]).values
    [('a', 2), ('b', 2)]
    >>> count_field("answer", ["Yes.", "No, since it is not for sale.", "Two."])
    FieldCount(name='answer', values=[], distinct=3)
    """
    texts = [text for text in texts if text.strip()]
    parts = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    has_prose = any(len(part.split()) > MAX_VALUE_WORDS for part in parts)
    if has_prose or differs_by_query(Counter(parts)):
        parts = list(texts)
    counts = Counter(parts)
    differs = len(texts) > 1 and differs_by_query(counts)
    values = [] if differs else counts.most_common(MAX_LISTED_IDS)
    return FieldCount(name, values, len(counts))


def _range_text(numbers: Sequence[int]) -> str:
    """Return the fewest, the most and the median, or the number that all are.

    >>> _range_text([3, 10, 4]), _range_text([1, 1])
    ('3 to 10, median 4', '1')
    """
    fewest, median, most = map(number_text, np.quantile(numbers, [0, 0.5, 1]))
    return fewest if fewest == most else f"{fewest} to {most}, median {median}"


def quality_with_parts(manifest: Manifest, retriever: str) -> RetrieverQuality:
    """Return a retriever's counts with those of its parts.

    Ids are listed once, counts are summed.
    """
    notes: dict[str, tuple[str, ...]] = {}
    counts: dict[str, dict[str, float]] = {}
    for part in manifest.resolved.retriever_with_parts(retriever):
        quality = manifest.ledger.retrievers[part]
        for kind, ids in quality.notes.items():
            notes[kind] = tuple(dict.fromkeys([*notes.get(kind, ()), *ids]))
        for stage, stage_counts in quality.counts.items():
            row = counts.setdefault(stage, {})
            for kind, number in stage_counts.items():
                row[kind] = row.get(kind, 0) + number
    return RetrieverQuality(notes=notes, counts=counts)
