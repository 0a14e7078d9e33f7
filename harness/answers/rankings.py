"""Judges retrieved documents: which ones entail the claims of the reference answers?"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from harness.answers.judging import Judge, Replies, asked_once, signed
from harness.dataset import Dataset
from harness.measures import Claimed, Measure
from harness.records import readings
from harness.records.readings import PEOPLE, By, ClaimPassage, ClaimsJudging, Readings, Word
from retrievers.errors import BackendError
from retrievers.types import Query, Ranking

Rankings = Mapping[str, Mapping[str, Ranking]]
"""Retriever -> query id -> its answer."""
_UNDEFINED = "measures by claims are undefined"


def judge_rankings(
    folder: Path, judge: Judge, queries: Sequence[Query], retrieved: Mapping[str, Mapping[str, str]], known: Readings
) -> dict[str, Claimed]:
    """Judge every claim against every document retrieved for its query, and store the verdicts in a folder.

    Args:
        folder: where claims.jsonl, verdicts.jsonl and passages.jsonl are written.
        judge: to ask.
        queries: of the run.
        retrieved: query id -> document id -> its text, for the documents that measures use.
        known: this judge's replies in an earlier run.

    Returns:
        The claims of each query that has any, with the verdicts.

    Raises:
        BackendError: the judge failed permanently; a chat model's replies so far are in the cache.
    """
    by, read = signed(judge), Readings()
    read.claims = _claims(folder, by, judge, queries, known)
    pairs = list(_pairs(queries, retrieved, read))
    given: dict[ClaimPassage, Word | None] = {pair: word for pair in pairs if (word := known.word(*pair)) is not None}
    ask: Callable[[Sequence[ClaimPassage]], Replies[Word]] = judge.verdicts
    words: dict[ClaimPassage, Word | None] = {**given, **asked_once(pairs, given.__contains__, ask)}
    readings.append_verdicts(folder, by, {pair: words[pair] for pair in dict.fromkeys(pairs)})
    read.verdicts = {(claim, readings.digest_of(text)): word for (claim, text), word in words.items()}
    texts = {document: text for by_document in retrieved.values() for document, text in by_document.items()}
    readings.write_passages(folder, dict(sorted(texts.items())))
    digests = {document: readings.digest_of(text) for document, text in texts.items()}
    return readings.claimed(queries, read, digests)


def judge_run(
    folder: Path, earlier: Path, judge: Judge, dataset: Dataset, rankings: Rankings, measures: Sequence[Measure]
) -> ClaimsJudging:
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
    by = signed(judge)
    known = readings.read_readings(earlier, by)
    wanted = judged_documents(dataset.queries, rankings, measures)
    texts = {id_: doc.content for id_, doc in dataset.texts({id_ for ids in wanted.values() for id_ in ids}).items()}
    retrieved = {query: {id_: texts[id_] for id_ in sorted(ids) if id_ in texts} for query, ids in wanted.items()}
    facts = {"judge": by.judge, "prompt": by.prompt, "depth": str(depth_of(measures) or "all")}
    try:
        claims = judge_rankings(folder, judge, dataset.queries, retrieved, known)
    except BackendError as error:
        return ClaimsJudging({}, facts, f"claims were not judged: {_UNDEFINED}: {error}")
    verdicts = readings.read_readings(folder, by).verdicts
    unreadable = sum(word is None for word in verdicts.values())
    if judge.unread and unreadable == len(verdicts):
        gave = f"the judge gave {len(verdicts):,} verdicts, none of them readable ({judge.unread})"
        return ClaimsJudging({}, facts, f"{gave}, so that {_UNDEFINED}: check the judge's model and its server")
    counts = {"queries": len(claims), "claims": sum(len(one.claims) for one in claims.values()),
              "verdicts": len(verdicts), "unreadable": unreadable}  # fmt: skip
    return ClaimsJudging(claims, facts | {key: str(number) for key, number in counts.items()})


def judged_documents(queries: Sequence[Query], rankings: Rankings, measures: Sequence[Measure]) -> dict[str, set[str]]:
    """The documents that measures by claims use: query id -> document ids, over all retrievers.

    The deepest cutoff of the measures counts; without a cutoff, all stored hits.
    """
    depth = depth_of(measures)
    documents_of = {query.id: set[str]() for query in queries if query.reference.claims or query.reference.answers}
    for answers in rankings.values():
        for query, documents in documents_of.items():
            if query in answers:
                documents.update(answers[query].doc_ids[:depth])
    return documents_of


def depth_of(measures: Sequence[Measure]) -> int | None:
    """The deepest cutoff of the measures by claims; None if one has none."""
    cutoffs = [measure.cutoff for measure in measures if measure.claimed]
    return None if None in cutoffs else max((cutoff for cutoff in cutoffs if cutoff), default=0)


def _claims(
    folder: Path, by: By, judge: Judge, queries: Sequence[Query], known: Readings
) -> dict[str, tuple[str, ...] | None]:
    """The claims that the judge extracts from references without claims. All are stored, each text once."""
    authored = {
        " ".join(query.reference.answers[:1]): [claim.text for claim in query.reference.claims]
        for query in queries
        if query.reference.claims
    }
    readings.append_claims(folder, By(PEOPLE), authored)
    bare = [q.reference.answers[0] for q in queries if q.reference.answers and not q.reference.claims]
    given = {text: known.claims[text] for text in bare if known.claims.get(text) is not None}
    claims = {**given, **asked_once(bare, given.__contains__, judge.claims)}
    readings.append_claims(folder, by, claims)
    return claims


def _pairs(
    queries: Sequence[Query], retrieved: Mapping[str, Mapping[str, str]], read: Readings
) -> Iterator[ClaimPassage]:  # fmt: skip
    for query in queries:
        claims = readings.claims_of(query, read)
        for _, text in sorted(retrieved.get(query.id, {}).items()):
            yield from (ClaimPassage(claim, text) for claim in claims)
