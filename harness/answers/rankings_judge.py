"""The judged claims of a run.

Each claim of a query is judged against each document that a retriever found for it,
down to the depth of the measures. `ask_judge` judges the answers of systems.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.answers.ask_missing import ask_missing
from harness.answers.case import reference_text
from harness.answers.judge import Judge, identity_of
from harness.dataset import Dataset
from harness.measures import Measure, QueryClaims
from harness.records import judge_files
from harness.records.facts import JudgeCounts, JudgeRecord
from harness.records.judge_readings import (
    PEOPLE_JUDGE,
    ClaimPassage,
    EntailmentWord,
    JudgedClaims,
    JudgeIdentity,
    JudgeReadings,
    claims_by_query,
    claims_of_query,
    short_digest,
)
from retrievers.errors import BackendError
from retrievers.types import Query, Ranking

RunRankings = Mapping[str, Mapping[str, Ranking]]
"""Retriever -> query id -> its ranking."""
DocumentTexts = Mapping[str, str]
"""Document id -> its text."""
_UNDEFINED = "measures by claims are undefined"


def store_authored_claims(folder: Path, queries: Iterable[Query]) -> None:
    """Store the claims that came with the data, unless they are already stored."""
    identity = JudgeIdentity(PEOPLE_JUDGE)
    stored_claims = judge_files.read_readings(folder, identity).claims
    new_claims: dict[str, list[str]] = {}
    for query in queries:
        text = reference_text(query)
        if query.reference.claims and text not in stored_claims:
            new_claims[text] = [claim.text for claim in query.reference.claims]
    judge_files.append_claims(folder, identity, new_claims)


def judge_hits(
    folder: Path,
    earlier: Path,
    judge: Judge,
    dataset: Dataset,
    *,
    rankings: RunRankings,
    depth: int | None,
) -> JudgedClaims:
    """Judge the hits of a run, down to a rank.

    Replies of an earlier run are reused. If the judge fails, its measures are
    undefined, with a warning; the rankings are kept.

    Args:
        folder: where claims and verdicts are written.
        earlier: folder of an earlier run.
        judge: gives the verdicts.
        dataset: its queries with claims, or with references to take them from.
        rankings: of the run.
        depth: the rank; None: all stored hits.
    """
    identity = identity_of(judge)
    earlier_readings = judge_files.read_readings(earlier, identity)
    retrieved = _retrieved_texts(
        dataset, judged_documents(dataset.queries, rankings, depth)
    )
    record = JudgeRecord(
        judge=identity.judge,
        prompt=identity.prompt,
        depth=depth,
        counts=None,
    )
    try:
        claims = judge_rankings(
            folder, judge, dataset.queries, retrieved, earlier_readings=earlier_readings
        )
    except BackendError as error:
        warning = f"claims were not judged: {_UNDEFINED}: {error}"
        return JudgedClaims({}, record, warning)
    verdicts = judge_files.read_readings(folder, identity).verdicts
    unreadable = sum(word is None for word in verdicts.values())
    if judge.unreadable_example and unreadable == len(verdicts):
        warning = (
            f"the judge gave {len(verdicts):,} verdicts, none of them readable "
            f"({judge.unreadable_example}), so that {_UNDEFINED}: "
            "check the judge's model and its server"
        )
        return JudgedClaims({}, record, warning)
    claim_count = sum(len(query_claims.claims) for query_claims in claims.values())
    counts = JudgeCounts(
        queries=len(claims),
        claims=claim_count,
        verdicts=len(verdicts),
        unreadable=unreadable,
    )
    return JudgedClaims(claims, replace(record, counts=counts))


def judged_documents(
    queries: Sequence[Query], rankings: RunRankings, depth: int | None
) -> dict[str, set[str]]:
    """Return the documents that measures by claims use, over all retrievers.

    Query id, of each query with claims or a reference answer -> document ids.
    """
    documents_by_query = {
        query.id: set[str]()
        for query in queries
        if query.reference.claims or query.reference.answers
    }
    for rankings_by_query in rankings.values():
        for query_id, documents in documents_by_query.items():
            if query_id in rankings_by_query:
                documents.update(rankings_by_query[query_id].doc_ids[:depth])
    return documents_by_query


def claims_depth(measures: Sequence[Measure]) -> int | None:
    """Return the deepest cutoff of the measures by claims.

    None if one of them has no cutoff; 0 if no measure is by claims.
    """
    cutoffs = [measure.cutoff for measure in measures if measure.uses_claims]
    if None in cutoffs:
        return None
    return max((cutoff for cutoff in cutoffs if cutoff), default=0)


def _retrieved_texts(
    dataset: Dataset, documents_by_query: Mapping[str, set[str]]
) -> dict[str, DocumentTexts]:
    """Return the texts of each query's documents, without unknown documents."""
    documents = dataset.texts(set().union(*documents_by_query.values()))
    texts = {doc_id: document.content for doc_id, document in documents.items()}
    retrieved: dict[str, DocumentTexts] = {}
    for query_id, doc_ids in documents_by_query.items():
        known_ids = sorted(doc_ids & texts.keys())
        retrieved[query_id] = {doc_id: texts[doc_id] for doc_id in known_ids}
    return retrieved


def judge_rankings(
    folder: Path,
    judge: Judge,
    queries: Sequence[Query],
    retrieved: Mapping[str, DocumentTexts],
    *,
    earlier_readings: JudgeReadings,
) -> dict[str, QueryClaims]:
    """Judge every claim against every document retrieved for its query.

    The verdicts are stored in a folder.

    Args:
        folder: where claims.jsonl, verdicts.jsonl and passages.jsonl are written.
        judge: gives the verdicts.
        queries: of the run.
        retrieved: query id -> the documents that measures use.
        earlier_readings: this judge's replies in an earlier run.

    Returns:
        The claims of each query that has any, with the verdicts.

    Raises:
        BackendError: the judge failed permanently; a chat model's replies so far are in
            the cache.
    """
    readings = JudgeReadings()
    readings.claims = _claims_of_references(folder, judge, queries, earlier_readings)
    pairs = list(_claim_passages(queries, retrieved, readings))
    verdicts: dict[ClaimPassage, EntailmentWord | None] = {}
    for pair in pairs:
        earlier_word = earlier_readings.verdict_word(*pair)
        if earlier_word is not None:
            verdicts[pair] = earlier_word
    new_verdicts = ask_missing(pairs, verdicts.__contains__, judge.verdicts)
    verdicts.update(new_verdicts)
    in_order = {pair: verdicts[pair] for pair in pairs}
    judge_files.append_verdicts(folder, identity_of(judge), in_order)
    for pair, word in verdicts.items():
        readings.verdicts[pair.claim, short_digest(pair.text)] = word
    texts: dict[str, str] = {}
    for query_texts in retrieved.values():
        texts.update(query_texts)
    judge_files.write_passages(folder, dict(sorted(texts.items())))
    digests = {doc_id: short_digest(text) for doc_id, text in texts.items()}
    return claims_by_query(queries, readings, digests)


def _claims_of_references(
    folder: Path,
    judge: Judge,
    queries: Sequence[Query],
    earlier_readings: JudgeReadings,
) -> dict[str, tuple[str, ...] | None]:
    """Return the claims of reference answers that came without claims.

    The judge extracts them, if it has not in an earlier run. Reference answer -> its
    claims, None if the reply was unreadable. These and the claims that came with the
    data are stored, each text once.
    """
    store_authored_claims(folder, queries)
    references = [
        query.reference.answers[0]
        for query in queries
        if query.reference.answers and not query.reference.claims
    ]
    claims: dict[str, tuple[str, ...] | None] = {}
    for text in references:
        earlier_claims = earlier_readings.claims.get(text)
        if earlier_claims is not None:
            claims[text] = earlier_claims
    new_claims = ask_missing(references, claims.__contains__, judge.claims)
    claims.update(new_claims)
    judge_files.append_claims(folder, identity_of(judge), claims)
    return claims


def _claim_passages(
    queries: Sequence[Query],
    retrieved: Mapping[str, DocumentTexts],
    readings: JudgeReadings,
) -> Iterator[ClaimPassage]:
    """Yield each claim of a query with each text that was retrieved for it."""
    for query in queries:
        claims = claims_of_query(query, readings)
        for _, text in sorted(retrieved.get(query.id, {}).items()):
            yield from (ClaimPassage(claim, text) for claim in claims)
