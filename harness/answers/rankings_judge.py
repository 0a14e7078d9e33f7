"""The judged claims of a run."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from harness.answers.case import reference_text
from harness.answers.judge import Judge, JudgeReplies, ask_missing, identity_of
from harness.dataset import Dataset
from harness.measures import Measure, QueryClaims
from harness.records import judge_files
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


def store_authored_claims(folder: Path, queries: Iterable[Query]) -> None:
    """Store the claims that came with the data, where they are not yet stored."""
    people = judge_files.read_readings(folder, JudgeIdentity(PEOPLE_JUDGE)).claims
    authored = {
        reference_text(q): [c.text for c in q.reference.claims]
        for q in queries
        if q.reference.claims
    }
    new = {text: claims for text, claims in authored.items() if text not in people}
    judge_files.append_claims(folder, JudgeIdentity(PEOPLE_JUDGE), new)


RunRankings = Mapping[str, Mapping[str, Ranking]]
"""Retriever -> query id -> its answer."""
_UNDEFINED = "measures by claims are undefined"


def judge_rankings(
    folder: Path,
    judge: Judge,
    queries: Sequence[Query],
    retrieved: Mapping[str, Mapping[str, str]],
    earlier_readings: JudgeReadings,
) -> dict[str, QueryClaims]:
    """Judge every claim against every document retrieved for its query, and store the verdicts in a folder.

    Args:
        folder: where claims.jsonl, verdicts.jsonl and passages.jsonl are written.
        judge: to ask.
        queries: of the run.
        retrieved: query id -> document id -> its text, for the documents that measures use.
        earlier_readings: this judge's replies in an earlier run.

    Returns:
        The claims of each query that has any, with the verdicts.

    Raises:
        BackendError: the judge failed permanently; a chat model's replies so far are in the cache.
    """
    by, read = identity_of(judge), JudgeReadings()
    read.claims = _claims(folder, by, judge, queries, earlier_readings)
    pairs = list(_pairs(queries, retrieved, read))
    given: dict[ClaimPassage, EntailmentWord | None] = {
        pair: word
        for pair in pairs
        if (word := earlier_readings.verdict_word(*pair)) is not None
    }
    ask: Callable[[Sequence[ClaimPassage]], JudgeReplies[EntailmentWord]] = (
        judge.verdicts
    )
    words: dict[ClaimPassage, EntailmentWord | None] = {
        **given,
        **ask_missing(pairs, given.__contains__, ask),
    }
    judge_files.append_verdicts(
        folder, by, {pair: words[pair] for pair in dict.fromkeys(pairs)}
    )
    read.verdicts = {
        (claim, short_digest(text)): word for (claim, text), word in words.items()
    }
    texts = {
        document: text
        for by_document in retrieved.values()
        for document, text in by_document.items()
    }
    judge_files.write_passages(folder, dict(sorted(texts.items())))
    digests = {document: short_digest(text) for document, text in texts.items()}
    return claims_by_query(queries, read, digests)


def judge_hits(
    folder: Path,
    earlier: Path,
    judge: Judge,
    dataset: Dataset,
    rankings: RunRankings,
    measures: Sequence[Measure],
) -> JudgedClaims:
    """Judge the hits of a run, down to the deepest cutoff of its measures; replies of an earlier run are reused.

    If the judge fails, its measures are undefined, with a warning; the rankings are kept.

    Args:
        folder: where claims and verdicts are written.
        earlier: folder of an earlier run.
        judge: who decides.
        dataset: its queries with claims, or with references to take them from.
        rankings: of the run.
        measures: those by claims.
    """
    by = identity_of(judge)
    known = judge_files.read_readings(earlier, by)
    wanted = judged_documents(dataset.queries, rankings, measures)
    texts = {
        id_: doc.content
        for id_, doc in dataset.texts(
            {id_ for ids in wanted.values() for id_ in ids}
        ).items()
    }
    retrieved = {
        query: {id_: texts[id_] for id_ in sorted(ids) if id_ in texts}
        for query, ids in wanted.items()
    }
    facts = {
        "judge": by.judge,
        "prompt": by.prompt,
        "depth": str(claims_depth(measures) or "all"),
    }
    try:
        claims = judge_rankings(folder, judge, dataset.queries, retrieved, known)
    except BackendError as error:
        return JudgedClaims({}, facts, f"claims were not judged: {_UNDEFINED}: {error}")
    verdicts = judge_files.read_readings(folder, by).verdicts
    unreadable = sum(word is None for word in verdicts.values())
    if judge.unreadable_example and unreadable == len(verdicts):
        gave = f"the judge gave {len(verdicts):,} verdicts, none of them readable ({judge.unreadable_example})"
        return JudgedClaims(
            {},
            facts,
            f"{gave}, so that {_UNDEFINED}: check the judge's model and its server",
        )
    counts = {
        "queries": len(claims),
        "claims": sum(len(one.claims) for one in claims.values()),
        "verdicts": len(verdicts),
        "unreadable": unreadable,
    }
    return JudgedClaims(
        claims, facts | {key: str(number) for key, number in counts.items()}
    )


def judged_documents(
    queries: Sequence[Query], rankings: RunRankings, measures: Sequence[Measure]
) -> dict[str, set[str]]:
    """The documents that measures by claims use: query id -> document ids, over all retrievers.

    The deepest cutoff of the measures counts; without a cutoff, all stored hits.
    """
    depth = claims_depth(measures)
    documents_of = {
        query.id: set[str]()
        for query in queries
        if query.reference.claims or query.reference.answers
    }
    for answers in rankings.values():
        for query, documents in documents_of.items():
            if query in answers:
                documents.update(answers[query].doc_ids[:depth])
    return documents_of


def claims_depth(measures: Sequence[Measure]) -> int | None:
    """The deepest cutoff of the measures by claims; None if one has none."""
    cutoffs = [measure.cutoff for measure in measures if measure.uses_claims]
    return (
        None
        if None in cutoffs
        else max((cutoff for cutoff in cutoffs if cutoff), default=0)
    )


def _claims(
    folder: Path,
    by: JudgeIdentity,
    judge: Judge,
    queries: Sequence[Query],
    known: JudgeReadings,
) -> dict[str, tuple[str, ...] | None]:
    """The claims that the judge extracts from references without claims. All are stored, each text once."""
    store_authored_claims(folder, queries)
    bare = [
        q.reference.answers[0]
        for q in queries
        if q.reference.answers and not q.reference.claims
    ]
    given = {
        text: known.claims[text] for text in bare if known.claims.get(text) is not None
    }
    claims = {**given, **ask_missing(bare, given.__contains__, judge.claims)}
    judge_files.append_claims(folder, by, claims)
    return claims


def _pairs(
    queries: Sequence[Query],
    retrieved: Mapping[str, Mapping[str, str]],
    read: JudgeReadings,
) -> Iterator[ClaimPassage]:
    for query in queries:
        claims = claims_of_query(query, read)
        for _, text in sorted(retrieved.get(query.id, {}).items()):
            yield from (ClaimPassage(claim, text) for claim in claims)
