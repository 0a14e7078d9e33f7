"""A run before anything is sent: texts, tokens, calls, dollars, minutes, and the differences it can detect."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from harness.build import Built
from harness.dataset import Dataset
from harness.english import counted
from harness.evaluation.grading import clusters_of
from harness.experiment import Loaded
from harness.identity import run_of
from harness.measures import span
from harness.measures.compute import Judgments
from harness.running.forecast import cuts_itself, forecast, take_over
from harness.running.machine import (
    REQUEST,
    EarlierRun,
    Throughput,
    earlier_runs,
    price_sentence,
    sampled,
)
from retrievers.cache import Cache, default_path
from retrievers.chunking import Chunk, pieces
from retrievers.costs import searches
from retrievers.dense import Dense
from retrievers.embedding import Embedder, Forecast, proof_texts
from retrievers.types import Limits, Model, Query, Reranker, Role

SCATTER = 0.2
"""The standard deviation of the differences over the queries that is assumed, as a share of the measure's range."""


class Capacity(NamedTuple):
    """What is to be compared, and over how many queries."""

    units: int
    """Queries, or clusters of them."""
    clusters: bool = False
    comparisons: int = 1
    """Differences that are tested for the primary measure."""
    alpha: float = 0.05
    range_of: float = 1.0
    """Of the primary measure."""

    def sentence(self) -> str:
        """Say what so many queries can show.

        >>> Capacity(25).sentence()
        'enough queries? 25 queries reliably detect a difference of about 0.12'
        >>> Capacity(138, comparisons=3).sentence()
        'enough queries? 138 queries and 3 pairs reliably detect a difference of about 0.056'
        >>> Capacity(5, comparisons=3).sentence()
        'enough queries? No: 5 queries and 3 comparisons give no corrected p below 0.19; at least 7 are needed'
        """
        kind = "cluster" if self.clusters else "query"
        smallest = min(1.0, self.comparisons * 2.0 ** (1 - self.units))
        if smallest > self.alpha:
            needed = next(
                n
                for n in range(1, 100)
                if self.comparisons * 2.0 ** (1 - n) <= self.alpha
            )
            asked = f"{counted(self.units, kind)} and {counted(self.comparisons, 'comparison')}"
            what = f"No: {asked} give no corrected p below {smallest:.2g}"
            return f"enough queries? {what}; at least {needed} are needed"
        pairs = (
            f" and {counted(self.comparisons, 'pair')}" if self.comparisons > 1 else ""
        )
        difference = f"{self.difference():.2g}"
        return f"enough queries? {counted(self.units, kind)}{pairs} reliably detect a difference of about {difference}"

    def difference(self) -> float:
        """Return the true difference that is found with 80 % power if the differences scatter as assumed."""
        from harness.stats.power import detectable_effect

        return (
            SCATTER
            * self.range_of
            * detectable_effect(self.units, self.alpha / self.comparisons)
        )

    def as_json(self) -> dict[str, Any]:
        """The same as data."""
        return {
            **self._asdict(),
            "difference": self.difference() if self.units > 1 else None,
        }


def measured(dataset: Dataset) -> tuple[Query, ...]:
    """The queries that can be scored: those with a relevant document; all if there are no labels yet."""
    found = (
        query
        for query in dataset.queries
        if (given := dataset.labels.get(query.id)) and given.relevant
    )
    return tuple(found) or dataset.queries


def planned(loaded: Loaded, dataset: Dataset, judgments: Judgments) -> Capacity:
    """Return what an experiment means to compare.

    Args:
        loaded: the experiment.
        dataset: its data.
        judgments: its labels after the grade rule: they decide the range of a measure that has no bound.
    """
    experiment, statistics = loaded.experiment, loaded.experiment.statistics
    names = len(experiment.retrievers)
    queries = dataset.queries if loaded.question.primary.claimed else measured(dataset)
    together = clusters_of(queries, statistics.cluster)
    return Capacity(
        units=len(queries)
        if together is None
        else len({*together} - {""}) + together.count(""),
        clusters=together is not None,
        comparisons=max(
            names - 1 if experiment.baseline else names * (names - 1) // 2, 1
        ),
        alpha=statistics.alpha,
        range_of=span(loaded.question.primary, judgments) if judgments else 1.0,
    )


SAMPLE = 1000
"""Documents whose tokens are counted, to know those of a reranker's pairs."""


class PlanRow(NamedTuple):
    """One stage of one retriever."""

    retriever: str
    stage: str
    texts: int
    """Distinct texts, or a reranker's pairs."""
    cached: int
    calls: int
    """Requests, or a local model's batches."""
    tokens: int
    """Of what is not cached."""
    exact: bool
    """Whether the tokens are counted; else they are estimated."""
    usd: float | None
    """None: the price is unknown."""
    minutes: float | None
    """None: how fast the model is on this machine is unknown."""


@dataclass(frozen=True, slots=True)
class Planning:
    """What planning one experiment needs."""

    loaded: Loaded
    dataset: Dataset
    cache: Cache
    earlier: Sequence[EarlierRun]
    planned: dict[str, PlanRow] = field(default_factory=dict)
    """What is embedded, by what it is -> its row: equal texts by an equal model occur once."""

    def same(self) -> EarlierRun | None:
        """The earlier run of this very experiment on these data: what it timed is not timed again."""
        asked = run_of(self.loaded.written, self.dataset.digest)
        made = (
            (run, run_of(run.manifest.experiment, run.manifest.dataset.digest))
            for run in self.earlier
        )
        return next((run for run, of in made if of == asked), None)

    def speed(self, part: str, model: Mapping[str, Any]) -> float | None:
        """Tokens a second of a local model, by the earlier runs."""
        tokens, seconds = map(
            sum,
            zip((0, 0), *(one.speed(part, model) for one in self.earlier), strict=True),
        )
        return tokens / seconds if seconds else None

    def timed(self, name: str) -> list[str]:
        """The queries that are asked one at a time, past the cache."""
        latency, same = self.loaded.experiment.latency, self.same()
        if latency is None or (same is not None and name in same.timed):
            return []
        return [
            query.text
            for some in sampled(self.dataset.queries, latency.sample)
            for query in some
        ]


def throughput_of(
    part: str, one: Built, model: Model, context: Planning
) -> tuple[Throughput, str]:
    """What a model's tokens cost and how fast it is, with a sentence that says where that is from."""
    limits = model.limits
    if limits is None:
        speed = context.speed(part, one.models[id(model)])
        known = f", {speed:,.0f} tokens a second in earlier runs" if speed else ""
        return Throughput(
            model.price, speed=speed
        ), f"{price_sentence(model.price)}{known}"
    rates = [
        f"{rate:g} {name} a minute"
        for rate, name in ((limits.rpm, "requests"), (limits.tpm, "tokens"))
        if rate
    ]
    rate = ", ".join(
        [f"{limits.concurrency} requests of {REQUEST:g} s at once", *rates]
    )
    return Throughput(model.price, limits), f"{price_sentence(model.price)}; {rate}"


def _row(
    retriever: str,
    stage: str,
    counts: Forecast,
    throughput: Throughput,
    *,
    together: bool = True,
    searched: int = 0,
) -> PlanRow:
    """The row of a stage whose texts are counted.

    Args:
        retriever: its name; "" for what is done for all of them together.
        stage: what is done.
        counts: of texts, calls and tokens.
        throughput: of the model.
        together: whether requests are sent together, or one after another.
        searched: searches that a reranking service bills.
    """
    minutes = throughput.minutes(counts.calls, counts.tokens, together=together)
    return PlanRow(
        retriever, stage, *counts, throughput.usd(counts.tokens, searched), minutes
    )


def embedding_rows(
    one: Built, dense: Dense, throughput: Throughput, context: Planning
) -> Iterator[PlanRow]:
    """The rows of an encoder, which are planned from then on; texts that are planned already are left out."""
    planned, encoder, name = context.planned, dense.encoder, one.name
    cut = f" {dense.chunks and dense.chunks.name}"
    stages: tuple[tuple[Role, str, str], ...] = (
        ("document", "embed-documents", cut),
        ("query", "embed-queries", one.conversation),
    )
    keys = {
        f"{role} {encoder.fingerprint_for(role) if encoder.at_hand else one.models[id(encoder)]}{cut}": (
            role,
            stage,
        )
        for role, stage, cut in stages
    }
    if not keys.keys() <= planned.keys():
        embedder = Embedder(encoder, context.cache)
        expected = forecast(
            embedder,
            context.dataset,
            _chunks(dense),
            one.searched(context.dataset.queries),
        )
        if cuts_itself(dense):
            expected["document"] = expected["document"]._replace(exact=False)
        for key, (role, stage) in keys.items():
            if key not in planned:
                planned[key] = _row(name, stage, expected[role], throughput)
                yield planned[key]
    if timed := context.timed(name):
        counts, exact = encoder.count(timed, "query")
        alone = Forecast(len(timed), 0, len(timed), int(counts.sum()), exact)
        yield _row(name, "latency", alone, throughput, together=False)


def _chunks(dense: Dense) -> Chunk | None:
    """How documents are cut, as far as no code of the user's is run for it."""
    return None if cuts_itself(dense) else dense.chunks


def proof_rows(
    one: Built, dense: Dense, throughput: Throughput, context: Planning
) -> Iterator[PlanRow]:
    """The row of the texts that are embedded at the size to which vectors are cut, to compare the two."""
    key = f"{one.models[id(dense.encoder)]} {dense.chunks and dense.chunks.name} {dense.cut.dimensions}"
    if dense.cut.asked is not None and key not in context.planned:
        some = proof_texts(
            piece.content
            for piece in pieces(context.dataset.documents(), _chunks(dense))
        )
        expected = Embedder(dense.cut.asked, context.cache).forecast(some, "document")
        context.planned[key] = _row(one.name, "embed-documents", expected, throughput)
        yield context.planned[key]


def reranking_rows(
    name: str, reranker: Reranker, throughput: Throughput, context: Planning
) -> Iterator[PlanRow]:
    """The rows of a reranker: at most `depth` pairs a query, the first documents standing for the candidates."""
    width = min(reranker.depth, context.loaded.experiment.depth, context.dataset.count)
    documents = [
        document.content for document in islice(context.dataset.documents(), SAMPLE)
    ]
    average = float(reranker.count(documents).counts.mean())

    def requests(texts: Sequence[str]) -> int:
        pairs = [
            (text, documents[number % len(documents)])
            for text in texts
            for number in range(width)
        ]
        return sum(1 for _ in reranker.batches(pairs))

    def row(
        stage: str, texts: Sequence[str], calls: int, *, cached: bool = False
    ) -> PlanRow:
        pairs = width * len(texts)
        tokens = (
            0
            if cached
            else int(
                width * reranker.count(texts).counts.sum()
                + width * len(texts) * average
            )
        )
        counts = Forecast(pairs, pairs if cached else 0, calls, tokens, not tokens)
        searched = len(texts) * searches([math.ceil(average)] * width)
        return _row(
            name,
            stage,
            counts,
            throughput,
            together=stage == "rerank",
            searched=searched,
        )

    asked = [query.text for query in context.dataset.queries]
    # Whether pairs are cached cannot be looked up before they are known: they are, where this very run was finished
    # before and nothing it embeds has gone from the cache since.
    same = context.same()
    embedded = all(one.texts == one.cached for one in context.planned.values())
    cached = same is not None and name in same.manifest.finished and embedded
    yield row("rerank", asked, 0 if cached else requests(asked), cached=cached)
    if timed := context.timed(name):
        yield row("latency-rerank", timed, sum(requests([text]) for text in timed))


def judging_rows(context: Planning) -> tuple[list[PlanRow], list[str]]:
    """The row of a chat model that judges claims for all retrievers together; none for a judge on this machine."""
    experiment, measures = context.loaded.experiment, context.loaded.question.measures
    table = experiment.judge
    if (
        table is None
        or table.kind != "openai"
        or not any(measure.claimed for measure in measures)
    ):
        return [], []
    from harness.answers.chat_judge import forecast_claims

    needed = forecast_claims(
        table, context.dataset, measures, len(experiment.retrievers), context.cache
    )
    same = context.same()
    done = (
        same is not None
        and same.manifest.judge.get("judge") == needed.judge
        and "verdicts" in same.manifest.judge
    )
    calls, tokens, usd = (0, 0, 0.0) if done else needed.requests[2:]
    counts = Forecast(needed.pairs, needed.pairs if done else 0, calls, tokens, done)
    throughput = Throughput(
        limits=Limits(table.concurrency, table.rpm, table.tpm, 0.0, 0)
    )
    price = (
        "price unknown: write input_price and output_price"
        if needed.requests.usd is None
        else f"${table.input_price or 0:g} a million tokens in, ${table.output_price or 0:g} out"
    )
    note = f"judge: {price}; at most, as if no two retrievers found the same document and nothing were cached"
    return [_row("", "judge", counts, throughput)._replace(usd=usd)], [note]


class RunPlan(NamedTuple):
    """What a run would take."""

    rows: tuple[PlanRow, ...]
    notes: tuple[str, ...] = ()
    """Prices with their dates, and what the minutes consist of."""

    def total(self) -> dict[str, Any]:
        """The sums; None where a summand is unknown."""
        usd, minutes = (
            [getattr(row, name) for row in self.rows] for name in ("usd", "minutes")
        )
        return {
            **{
                name: sum(getattr(row, name) for row in self.rows)
                for name in ("texts", "cached", "calls", "tokens")
            },
            "exact": all(row.exact for row in self.rows),
            "usd": None if None in usd else math.fsum(usd),
            "minutes": None if None in minutes else math.fsum(minutes),
        }

    def sentence(self) -> str:
        """The sums in words."""
        total = self.total()
        tokens = _amount(total["tokens"], 0, "" if total["exact"] else "≈")
        usd, minutes = _amount(total["usd"], 4, ""), _amount(total["minutes"], 1, "≈")
        texts = f"{counted(total['texts'], 'text')} ({total['cached']:,} cached)"
        return f"{texts}, {tokens} tokens, {usd} dollars, {minutes} minutes"

    def details(self) -> Iterator[str]:
        """The same for each retriever, then the notes."""
        for name in dict.fromkeys(row.retriever for row in self.rows):
            own = RunPlan(tuple(row for row in self.rows if row.retriever == name))
            yield f"  {name or 'judge'}: {own.sentence()}"
        yield from self.notes


def _amount(value: float | None, digits: int, mark: str) -> str:
    """An amount as people read it: "?" where it is unknown, never 0 for a little.

    >>> _amount(None, 1, "≈"), _amount(0, 1, "≈"), _amount(0.00002, 4, "≈"), _amount(1234.56, 1, "≈")
    ('?', '0', '<0.0001', '≈1,234.6')
    """
    if not value:
        return "?" if value is None else "0"
    return (
        f"<{10**-digits:.{digits}f}"
        if value < 10**-digits
        else f"{mark}{value:,.{digits}f}"
    )


def plan(
    loaded: Loaded, dataset: Dataset, built: Sequence[Built], results: Path
) -> RunPlan:
    """Count what a run of an experiment would take; equal first stages count once.

    Tokens are exact where the model's tokenizer is on this machine, else estimated; those of a reranker's
    pairs are always estimated, since the pairs are only known when the first stage has answered. Minutes follow from
    the declared limits of an API, or from the speed of a local model in earlier runs.

    Args:
        loaded: the experiment.
        dataset: its data.
        built: its retrievers.
        results: where earlier runs are.

    Raises:
        InputError: the cache or the place of [vectors] cannot be read.
    """
    rows: list[PlanRow] = []
    notes: list[str] = []
    with Cache(default_path()) as cache:
        elsewhere = loaded.experiment.vectors
        if elsewhere is not None and "://" in elsewhere.location:
            notes.append(
                f"check uses no network: vectors in {elsewhere.location} count as not embedded"
            )
        else:
            take_over(elsewhere, built, cache)
        context = Planning(loaded, dataset, cache, tuple(earlier_runs(results)))
        for one in built:
            for dense in one.denses:
                throughput, note = throughput_of("encoder", one, dense.encoder, context)
                rows += embedding_rows(one, dense, throughput, context)
                if not dense.cut.derived_from:
                    notes.append(f"{one.name}: {note}")
                    notes += [
                        f"{one.name}: documents count uncut, since chunk.call is not run"
                    ] * cuts_itself(dense)
                rows += proof_rows(one, dense, throughput, context)
            for reranker in one.rerankers:
                throughput, note = throughput_of("rerank", one, reranker, context)
                rows += reranking_rows(one.name, reranker, throughput, context)
                if reranker.limits is not None:
                    notes.append(f"{one.name}: reranker: {note}")
        judging, judged_by = judging_rows(context)
        rows += judging
        notes += judged_by
    if any(row.minutes is None for row in rows):
        notes.append(
            "?: how fast a local model is on this machine is not known before its first run"
        )
    if not all(row.exact for row in rows):
        notes.append(
            "≈: estimated, since the tokenizer is not on this machine, or pairs are not known yet; "
            "code, and writing that a tokenizer knows little of, may have three times as many"
        )
    return RunPlan(tuple(rows), tuple(notes))
