"""A sample of a judge's verdicts for people: every pair of some queries, on the page that pools are judged on.

Whole queries are drawn, since measures are computed query by query: what people say of them can then stand beside what
the judge said, and correct it (`harness.answers.judge_trust`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from harness import records
from harness.answers.cases import pairs_of
from harness.answers.judges import build_judge
from harness.answers.rankings import PERSON, judged_documents, pairs_by_query
from harness.answers.work import cases_of, read_inputs, readings_for
from harness.dataset.judgments import Judgment, read_judgments
from harness.labels.pool import DrawnPool, Pool, PooledQuery, pool_of, pooled_query, shuffled_place
from harness.labels.pool import digest_of as policy_digest
from harness.measures import parse
from harness.records import By, ClaimPassage, Word, append_judged, dataset_of, digest_of, judges_in, read_readings
from retrievers.cache import Cache, default_path
from retrievers.errors import InputError, Problem
from retrievers.meter import Meter
from retrievers.types import Document

PairsByQuery = dict[str, list[ClaimPassage]]
"""Query id -> its claims with the passages on which its measures rest."""
CHOICES = {
    0: "neutral: the passage does not settle it",
    1: "entailed: the passage states it, or it follows from the passage",
    2: "contradicted: the passage says otherwise",
}
WORDS: Mapping[int, Word] = {0: "neutral", 1: "entailed", 2: "contradicted"}
POLICY = """\
Does the passage support the claim? Use nothing but the passage: what you know besides does not count.

Entailed: the passage states the claim, perhaps in other words, or the claim follows from it. Contradicted: the passage
says otherwise. Neutral: the passage does not settle it. Where you cannot tell, skip and write a note."""


def pairs_of_results(folder: Path) -> PairsByQuery:
    """Read the pairs that the judge of a results folder was asked about.

    Raises:
        InputError: no claims were judged there, or the documents have changed since.
    """
    results = records.read(folder)
    facts = results.manifest.judge
    if "verdicts" not in facts:
        remedy = "name a measure by claims and a [judge] in the experiment, and run it"
        raise InputError(Problem(str(folder), "holds no verdicts on claims", remedy))
    dataset = dataset_of(results)
    if dataset.corpus_digest != results.manifest.dataset.corpus_digest:
        raise InputError(Problem(str(folder), "its documents have changed since", "run the experiment again"))
    read = records.read_readings(folder / records.FOLDER, By(facts["judge"], facts["prompt"]))
    queries = [asked.query for asked in results.queries.values()]
    claimed = [measure for name in results.manifest.resolved.measures if (measure := parse(name)).claimed]
    found_by = judged_documents(queries, {name: dict(results.answers(name)) for name in results.retrievers}, claimed)
    texts = dataset.texts({doc for documents in found_by.values() for doc in documents})
    retrieved = {
        query: {doc: texts[doc].content for doc in documents if doc in texts} for query, documents in found_by.items()
    }
    return pairs_by_query(queries, retrieved, read)


def pairs_of_answers(experiment: Path, folder: Path, *, code: bool = True) -> PairsByQuery:
    """Read the pairs that the judge of a folder of answers was asked about.

    Raises:
        InputError: nothing was judged there yet, or something is wrong with the experiment, the data or the answers.
    """
    inputs = read_inputs(experiment, folder, code=code)
    with Cache(default_path()) as cache:
        read = readings_for(folder, build_judge(inputs.judge, cache, Meter()))
    pairs: PairsByQuery = {}
    for case in cases_of(inputs.queries, inputs.systems, read):
        pairs.setdefault(case.query.id, []).extend(pair for pair in pairs_of(case))
    return pairs


def verdict_pool(pairs: Mapping[str, Sequence[ClaimPassage]], sample: int, seed: int) -> Pool:
    """Draw whole queries by chance, and ask for a verdict on every pair of theirs.

    Args:
        pairs: query id -> the claims and passages on which its measures rest.
        sample: how many queries.
        seed: a larger sample with the same seed holds a smaller one.

    Raises:
        InputError: there are fewer queries with claims.
    """
    asked = {query: list(dict.fromkeys(given)) for query, given in pairs.items() if given}
    if not 1 <= sample <= len(asked):
        raise InputError(Problem("--sample", f"{sample} queries of {len(asked):,} with claims cannot be drawn"))
    drawn = sorted(asked, key=lambda query: shuffled_place(seed, query))[:sample]
    lines = tuple(line for query in drawn for line in _lines(query, asked[query], sample / len(asked), seed))
    return pool_of(POLICY, DrawnPool(depth=0, seed=seed, population=len(asked), sampled=sample), lines)


def _lines(query: str, pairs: Iterable[ClaimPassage], inclusion: float, seed: int) -> Iterable[PooledQuery]:
    """One line a claim, its passages in an order that a hash draws."""
    passages: dict[str, list[str]] = {}
    for claim, text in pairs:
        passages.setdefault(claim, []).append(text)
    for claim, texts in passages.items():
        ordered = sorted(texts, key=lambda text: shuffled_place(seed, claim, text))
        documents = (Document(digest_of(text), "", text) for text in ordered)
        yield pooled_query(f"{query}#{digest_of(claim)}", claim, documents, inclusion)


def merge_verdicts(paths: Sequence[Path], folder: Path) -> dict[str, int]:
    """Write people's verdicts beside the judge's; all of them or none.

    Returns:
        Person -> how many pairs.

    Raises:
        InputError: a line cannot be read, is of another page, or judges a pair on which nobody was asked there; a
            person gave one pair two verdicts.
    """
    judgments = read_judgments(paths)
    asked = {(digest_of(claim), passage): claim for by in judges_in(folder) if not by.judge.startswith(PERSON)
             for claim, passage in read_readings(folder, by).verdicts.get(1, {})}  # fmt: skip
    problems: list[Problem] = []
    rows: dict[tuple[str, int], dict[tuple[str, str], Word | None]] = {}
    for one in judgments:
        claim = asked.get((one.query_id.rpartition("#")[2], one.document_id))
        if one.prompt != policy_digest(POLICY) or claim is None:
            what = f"judges {one.query_id!r} and {one.document_id!r}, which is not a claim and passage of this folder"
            problems.append(Problem(one.judge, what, "give what the page of `harness answers sample` exported"))
        elif one.grade is not None and one.grade not in WORDS:
            problems.append(Problem(one.judge, f"grade {one.grade} is not a verdict: 0, 1 or 2"))
        else:
            _take(one, claim, rows.setdefault((one.judge, one.round), {}), problems)
    before = {key: read_readings(folder, By(PERSON + key[0])).verdicts.get(key[1], {}) for key in rows}
    for key, words in rows.items():
        known = before[key]
        if changed := next((pair for pair in words if pair in known and known[pair] != words[pair]), None):
            wrong = (
                f"said {known[changed] or 'nothing'} of {changed[0]!r} before, and {words[changed] or 'nothing'} now"
            )
            problems.append(Problem(key[0], wrong, "settle it, and take one of the two out"))
    if problems:
        raise InputError(problems[:20])
    for (person, round_), words in rows.items():
        new = {pair: word for pair, word in words.items() if pair not in before[person, round_]}
        append_judged(folder, By(PERSON + person), new, round_)
    return {person: len(words) for (person, round_), words in rows.items() if round_ == 1}


def _take(one: Judgment, claim: str, words: dict[tuple[str, str], Word | None], problems: list[Problem]) -> None:
    pair, word = (claim, one.document_id), None if one.grade is None else WORDS[one.grade]
    if words.setdefault(pair, word) != word:
        problems.append(Problem(one.judge, f"gave {claim!r} two verdicts on one passage", "settle it"))
