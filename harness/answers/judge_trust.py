"""People's verdicts beside a judge's: agreement, and the means and differences that use both.

People give verdicts on a sample as rows of verdicts.jsonl signed "person:NAME". The unit is the query. Where people
judged every pair of a random sample of the queries, a measure is computed there by their verdicts and by the judge's,
and on the other queries by the judge's alone: prediction-powered inference (`harness.stats.prediction`) then gives
estimates that the judge's errors do not bend.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness import records
from harness.answers.answer_measures import MEASURES, Reading
from harness.answers.cases import Case, pairs_of
from harness.answers.rankings import PERSON, judged_documents
from harness.answers.systems import System
from harness.english import count, minus
from harness.evaluation.compare import family
from harness.evaluation.evaluation import Evaluation, settings_of
from harness.evaluation.labellers import interval_words, weighted, why_no_estimate
from harness.evaluation.question_units import clusters_of
from harness.measures import parse, score
from harness.records import WORDS, By, Readings, Results, Word
from harness.stats.agreement import cohen_kappa, confusion
from harness.stats.differences import UNIT, Range, units_of
from harness.stats.intervals import NONE
from harness.stats.prediction import ENOUGH, Predicted, predicted
from retrievers.types import Floats, Query

Verdicts = Mapping[tuple[str, str], Word | None]
"""(Claim, digest of the passage) -> verdict."""
BY_VERDICTS = ("ragchecker.", "ragas.faithfulness", "ragas.context_precision", "ragas.context_utilization",
               "ragas.context_recall")  # fmt: skip
"""How the names of the measures of answers begin that are computed from verdicts and nothing else."""
ByName = Mapping[str, Mapping[str, Floats]]
"""Measure -> retriever or system -> (n,) values, NaN where undefined."""


class WithPerson(NamedTuple):
    """One person's verdicts beside the judge's."""

    person: str
    both: int
    """Pairs on which both gave a verdict."""
    same: int
    kappa: float
    """Cohen's, of the three verdicts; NaN where one of the two used only one of them."""

    def sentence(self) -> str:
        """What stands beside every measure that the judge's verdicts make."""
        if not self.both:
            return f"{self.person} judged none of these pairs"
        kappa = "" if self.kappa != self.kappa else minus(f", Cohen's kappa {self.kappa:.2f}")
        return f"{self.person} agrees with the judge on {self.same:,} of {self.both:,} verdicts{kappa}"


def with_people(folder: Path, readings: Readings) -> list[WithPerson]:
    """Compare the judge's verdicts of a folder with those of every person who gave some there."""
    mine = readings.verdicts.get(1, {})
    compared = []
    for person, theirs in by_person(folder).items():
        pairs = [(WORDS.index(word), WORDS.index(mine_too)) for pair, word in theirs.items()
                 if word is not None and (mine_too := mine.get(pair)) is not None]  # fmt: skip
        table = confusion([a for a, _ in pairs], [b for _, b in pairs], range(len(WORDS)))
        same = sum(a == b for a, b in pairs)
        compared.append(WithPerson(person, len(pairs), same, float(cohen_kappa(table))))
    return compared


def by_person(folder: Path) -> dict[str, Verdicts]:
    """What each person said in a folder, in the first round."""
    people = (by for by in records.judges_in(folder) if by.judge.startswith(PERSON))
    return {by.judge.removeprefix(PERSON): records.read_readings(folder, by).verdicts.get(1, {}) for by in people}


def settled(people: Iterable[Verdicts]) -> dict[tuple[str, str], Word | None]:
    """What people say of each pair together; None where two of them differ, or nobody could tell.

    >>> settled([{("c", "p"): "entailed"}, {("c", "p"): "neutral", ("d", "p"): "entailed"}])
    {('c', 'p'): None, ('d', 'p'): 'entailed'}
    """
    given: dict[tuple[str, str], set[Word]] = {}
    for verdicts in people:
        for pair, word in verdicts.items():
            given.setdefault(pair, set()).update([] if word is None else [word])
    return {pair: next(iter(words)) if len(words) == 1 else None for pair, words in given.items()}


class TrustedMean(NamedTuple):
    """A mean, or a difference of two, by people alone and with the judge's help."""

    measure: str
    a: str
    b: str
    """"" for the mean of one."""
    estimate: Predicted

    def sentence(self) -> str:
        """The same in words."""
        what = f"{self.a} less {self.b}" if self.b else self.a
        one, sign = self.estimate, "+" if self.b else ""
        mean = interval_words(one.people, NONE, sign)
        people = f"{self.measure}, {what}: {mean} by people's verdicts on {count(one.n)}"
        if one.powered is None:
            return f"{people}; no estimate with the judge's: {why_no_estimate(one)}."
        both = interval_words(one.powered.estimate, one.interval, sign)
        return f"{people}, {both} with the judge's on {one.others:,} more."


class Trust(NamedTuple):
    """How far a judge's verdicts can be trusted."""

    people: tuple[WithPerson, ...]
    whole: int
    """Queries of which people judged every pair."""
    estimates: tuple[TrustedMean, ...]
    weight: str | None = None
    """The field that weighs the queries, for which there are no estimates."""

    def sentences(self) -> Iterator[str]:
        """Agreement, and why there are no estimates where there are none."""
        if not self.people:
            yield "no person checked a sample of the verdicts"
        for one in self.people:
            yield one.sentence()
        if self.people and self.weight is not None:
            yield weighted(self.weight)
        elif self.people and self.whole < ENOUGH:
            yield f"people judged every pair of {count(self.whole)}; from {ENOUGH} on, intervals use both"


def trust_in_results(results: Results) -> Trust | None:
    """Compare people's verdicts in a results folder with its judge's; None where no claims were judged."""
    facts = results.manifest.judge
    if "verdicts" not in facts:
        return None
    folder = results.folder / records.FOLDER
    read = records.read_readings(folder, By(facts["judge"], facts["prompt"]))
    given = by_person(folder)
    measures = [parse(name) for name in results.manifest.resolved.measures]
    claimed = [measure for measure in measures if measure.claimed]
    queries = [asked.query for asked in results.queries.values()]
    rankings = {name: dict(results.answers(name)) for name in results.retrievers}
    passages, words = records.read_passages(folder), settled(given.values())
    needed = {
        query.id: [
            (claim, passages[doc]) for claim in records.claims_of(query, read) for doc in documents if doc in passages
        ]
        for query in queries
        if (documents := judged_documents([query], rankings, claimed).get(query.id))
    }
    whole = complete(needed, words)
    by_people = records.claimed(
        [query for query in queries if query.id in whole], Readings(claims=read.claims, verdicts={1: words}), passages
    )
    table = results.scores.set_index(["measure", "retriever", "query_id"])["value"].sort_index()
    ids = sorted(set(results.scores["query_id"]))
    judge: dict[str, dict[str, Floats]] = {}
    people: dict[str, dict[str, Floats]] = {}
    for measure in map(str, claimed):
        judge[measure] = {name: table[measure, name].reindex(ids).to_numpy(np.float64) for name in rankings}
        asked = {query: dict[str, int]() for query in ids}
        people[measure] = {
            name: score([parse(measure)], asked, {query: answers[query].doc_ids for query in ids}, claims=by_people).of(
                parse(measure)
            )
            for name, answers in rankings.items()
        }
    baseline = results.manifest.resolved.baseline
    pairs = family(list(rankings), baseline if baseline in rankings else None)
    settings = settings_of(results.manifest)
    clusters = clusters_of([results.queries[query].query for query in ids], settings.cluster)
    design = PeopleSample(pairs, [query in whole for query in ids], clusters)
    estimated = () if settings.weight else estimates(people, judge, design, settings.level)
    return Trust(tuple(with_people(folder, read)), len(whole), tuple(estimated), settings.weight)


def trust_in_answers(
    folder: Path, queries: Sequence[Query], systems: Sequence[System], read: Readings, evaluation: Evaluation
) -> Trust:
    """Compare people's verdicts in a folder of answers with its judge's, on the measures that rest on verdicts alone.

    Args:
        folder: of the answers.
        queries: those that are measured.
        systems: whose answers.
        read: what the judge said; its claims are kept, and people's verdicts take the place of its own.
        evaluation: of the values by its verdicts.
    """
    judged, settings = evaluation.scores, evaluation.settings
    given = by_person(folder)
    words = settled(given.values())
    cases = [(system.name, Case(query, system.answer(query.id), read)) for query in queries for system in systems]
    needed: dict[str, list[tuple[str, str]]] = {}
    for _, case in cases:
        digested = [(claim, records.digest_of(text)) for claim, text in pairs_of(case)]
        needed.setdefault(case.query.id, []).extend(digested)
    whole = complete(needed, words)
    known = Readings(claims=read.claims, verdicts={1: words})
    place = {query: i for i, query in enumerate(judged.ids)}
    values = {
        measure: {name: np.full(len(place), np.nan) for name in by_name}
        for measure, by_name in judged.values.items()
        if measure.startswith(BY_VERDICTS)
    }
    for system, case in cases:
        if case.query.id in whole:
            reading = Reading(case._replace(readings=known), "char", {})
            for measure, by_name in values.items():
                value = MEASURES[measure].compute(reading)
                by_name[system][place[case.query.id]] = np.nan if value is None else value
    whole_ones = [query in whole for query in judged.ids]
    design = PeopleSample(family([system.name for system in systems]), whole_ones, judged.clusters)
    estimated = () if settings.weight else estimates(values, judged.values, design, settings.level)
    return Trust(tuple(with_people(folder, read)), len(whole), tuple(estimated), settings.weight)


def complete(needed: Mapping[str, Sequence[tuple[str, str]]], words: Collection[tuple[str, str]]) -> set[str]:
    """The queries of which people were asked about every pair, and answered."""
    return {query for query, pairs in needed.items() if pairs and all(pair in words for pair in pairs)}


class PeopleSample(NamedTuple):
    """What is compared, and what people judged of it."""

    pairs: Sequence[tuple[str, str]]
    whole: Sequence[bool]
    """Of each query, whether people judged it whole."""
    clusters: Sequence[str] | None
    """Each query's cluster, "" for none; None where none are declared."""


def estimates(people: ByName, judge: ByName, design: PeopleSample, level: float) -> Iterator[TrustedMean]:
    """Yield the mean of each retriever and the difference of each pair, where enough queries were judged by people.

    Args:
        people: values by people's verdicts, queries in one order; NaN for those that they did not judge whole.
        judge: values by the judge's, in the same order.
        design: the pairs to compare, and which queries people judged whole.
        level: confidence.
    """
    mask = np.array(design.whole, dtype=bool)
    for measure, by_name in people.items():
        means = [(name, "", by_name[name], judge[measure][name]) for name in by_name]
        differences = [(a, b, by_name[a] - by_name[b], judge[measure][a] - judge[measure][b]) for a, b in design.pairs]
        for a, b, human, model in (*means, *differences):
            both, others = np.flatnonzero(mask & ~np.isnan(human + model)), np.flatnonzero(~mask & ~np.isnan(model))
            if len(both) < ENOUGH:
                continue
            clusters = design.clusters and [design.clusters[place] for place in (*both, *others)]
            units = None if clusters is None else units_of(clusters)
            estimate = predicted(
                human[both], model[both], model[others], level=level, units=units, bounds=Range(-1, 1) if b else UNIT
            )
            yield TrustedMean(measure, a, b, estimate)
