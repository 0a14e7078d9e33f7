"""Which pairs of a claim and a passage people are asked about: those of a results folder, or of a folder of answers."""

from __future__ import annotations

from pathlib import Path

from harness import records
from harness.answers.evidence import pairs_of
from harness.answers.inputs import cases_of, read_inputs, readings_for
from harness.answers.judges import build_judge
from harness.answers.rankings import heads, pairs_by_query
from harness.measures import parse
from harness.records import By, ClaimPassage, dataset_of
from retrievers.cache import Cache, default_path
from retrievers.errors import InputError, Problem
from retrievers.meter import Meter

PairsByQuery = dict[str, list[ClaimPassage]]
"""Query id -> its claims with the passages on which its measures rest."""


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
    found_by = heads(queries, {name: dict(results.answers(name)) for name in results.retrievers}, claimed)
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
