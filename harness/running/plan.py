"""What a run would take, before anything is sent: texts, tokens, calls, dollars, minutes. No network, no model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from harness.dataset import Dataset
from harness.experiment import Block, Dense, Encoded, Experiment, Loaded, asked_in, in_order, load, origin, parts_of
from harness.experiment.option_tables import Kind
from harness.running.check import prepare
from harness.running.forecast import TruncationEstimate, chunks_of, forecast, take_over, truncation_estimates
from harness.running.machine import REQUEST, EarlierRun, Throughput, earlier_runs, price_sentence, sampled
from retrievers.cache import Cache, default_path
from retrievers.chunking import pieces
from retrievers.costs import searches
from retrievers.derived import proof_texts
from retrievers.embedding import Embedder, Forecast
from retrievers.types import Encoder, Limits, Model, Reranker, Role, sample

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
    data_set: str = ""
    """What the experiment calls it, where it is one of several."""


@dataclass(frozen=True, slots=True)
class Planning:
    """What planning one experiment needs."""

    loaded: Loaded
    dataset: Dataset
    cache: Cache
    earlier: Sequence[EarlierRun]
    planned: dict[str, PlanRow] = field(default_factory=dict)
    """What is embedded, by what it is -> its row: equal texts by an equal model stand once."""
    needs: dict[str, list[PlanRow]] = field(default_factory=dict)
    """Retriever -> the rows that it needs, whoever needed them first."""

    def same(self) -> EarlierRun | None:
        """The earlier run of this very experiment on these data: what it timed is not timed again."""
        asked = (self.loaded.asked, self.dataset.digest)
        manifests = ((run, run.manifest) for run in self.earlier)
        runs = (run for run, of in manifests if (asked_in(of.experiment), of.dataset.digest) == asked)
        return next(runs, None)

    def speed(self, part: str, kind: Kind) -> float | None:
        """Tokens a second of a local model, by the earlier runs."""
        tokens, seconds = map(sum, zip((0, 0), *(one.speed(part, kind) for one in self.earlier), strict=True))
        return tokens / seconds if seconds else None

    def timed(self, block: Block) -> list[str]:
        """The queries that are asked one at a time, past the cache."""
        latency, same = self.loaded.experiment.latency, self.same()
        if latency is None or (same is not None and block.name in same.timed):
            return []
        return [query.text for some in sampled(self.dataset.queries, latency.sample) for query in some]


def throughput_of(part: str, kind: Kind, model: Model, context: Planning) -> tuple[Throughput, str]:
    """What a model's tokens cost and how fast it is, with a sentence that says where that is from."""
    limits = model.limits
    if limits is None:
        speed = context.speed(part, kind)
        known = f", {speed:,.0f} tokens a second in earlier runs" if speed else ""
        absent = "" if model.at_hand else ", its weights are still to be fetched"
        return Throughput(model.price, speed=speed), f"{price_sentence(model.price)}{known}{absent}"
    rates = [f"{rate:g} {name} a minute" for rate, name in ((limits.rpm, "requests"), (limits.tpm, "tokens")) if rate]
    rate = ", ".join([f"{limits.concurrency} requests of {REQUEST:g} s at once", *rates])
    return Throughput(model.price, limits), f"{price_sentence(model.price)}; {rate}"


def _row(
    retriever: str, stage: str, counts: Forecast, throughput: Throughput, *, together: bool = True, searched: int = 0
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
    return PlanRow(retriever, stage, *counts, throughput.usd(counts.tokens, searched), minutes)


def embedding_rows(block: Encoded, encoder: Encoder, throughput: Throughput, context: Planning) -> Iterator[PlanRow]:
    """The rows of an encoder, which are planned from then on; texts that are planned already are left out."""
    planned = context.planned
    stages: tuple[tuple[Role, str, str], ...] = (
        ("document", "embed-documents", f" {block.chunk}"), ("query", "embed-queries", "")
    )  # fmt: skip
    keys = {
        f"{role} {encoder.fingerprint_for(role) if encoder.at_hand else block.encoder.written()}{cut}": (role, stage)
        for role, stage, cut in stages
    }
    if not keys.keys() <= planned.keys():
        embedder = Embedder(encoder, context.cache)
        expected = forecast(embedder, context.dataset, chunks_of(block, encoder))
        for key, (role, stage) in keys.items():
            if key not in planned:
                planned[key] = _row(block.name, stage, expected[role], throughput)
                yield planned[key]
    context.needs[block.name] = [planned[key] for key in keys]
    if timed := context.timed(block):
        counts, exact = encoder.count(timed, "query")
        alone = Forecast(len(timed), 0, len(timed), int(counts.sum()), exact)
        yield _row(block.name, "latency", alone, throughput, together=False)


def proof_rows(block: Dense, asked: Encoder, throughput: Throughput, context: Planning) -> Iterator[PlanRow]:
    """The row of the texts that are embedded at the size to which vectors are cut, to compare the two."""
    key = f"{block.encoder.written()} {block.chunk} {block.dimensions}"
    if key not in context.planned:
        some = proof_texts(piece.content for piece in pieces(context.dataset.documents(), chunks_of(block, asked)))
        expected = Embedder(asked, context.cache).forecast(some, "document")
        context.planned[key] = _row(block.name, "embed-documents", expected, throughput)
        yield context.planned[key]


def reranking_rows(block: Block, reranker: Reranker, throughput: Throughput, context: Planning) -> Iterator[PlanRow]:
    """The rows of a reranker: at most `depth` pairs a query, the first documents standing for the candidates."""
    width = min(reranker.depth, context.loaded.experiment.depth, context.dataset.count)
    documents = [document.content for document in islice(context.dataset.documents(), SAMPLE)]
    average = float(reranker.count(documents).counts.mean())

    def requests(texts: Sequence[str]) -> int:
        pairs = [(text, documents[number % len(documents)]) for text in texts for number in range(width)]
        return sum(1 for _ in reranker.batches(pairs))

    def row(stage: str, texts: Sequence[str], calls: int, *, cached: bool = False) -> PlanRow:
        pairs = width * len(texts)
        tokens = 0 if cached else int(width * reranker.count(texts).counts.sum() + width * len(texts) * average)
        counts = Forecast(pairs, pairs if cached else 0, calls, tokens, not tokens)
        searched = len(texts) * searches([math.ceil(average)] * width)
        return _row(block.name, stage, counts, throughput, together=stage == "rerank", searched=searched)

    asked = [query.text for query in context.dataset.queries]
    # Whether pairs are cached cannot be looked up before they are known: they are, where this very run was finished
    # before and nothing it embeds has gone from the cache since.
    same = context.same()
    embedded = all(one.texts == one.cached for one in context.planned.values())
    cached = same is not None and block.name in same.manifest.finished and embedded
    yield row("rerank", asked, 0 if cached else requests(asked), cached=cached)
    if timed := context.timed(block):
        yield row("latency-rerank", timed, sum(requests([text]) for text in timed))


def judging_rows(context: Planning) -> tuple[list[PlanRow], list[str]]:
    """The row of a chat model that judges claims for all retrievers together; none for a judge on this machine."""
    experiment, measures = context.loaded.experiment, context.loaded.question.measures
    table = experiment.judge
    if table is None or table.kind != "openai" or not any(measure.claimed for measure in measures):
        return [], []
    from harness.answers.judges import forecast_claims

    needed = forecast_claims(table, context.dataset, measures, len(experiment.retrievers), context.cache)
    same = context.same()
    done = same is not None and same.manifest.judge.get("judge") == needed.judge and "verdicts" in same.manifest.judge
    calls, tokens, usd = (0, 0, 0.0) if done else needed.requests[2:]
    counts = Forecast(needed.pairs, needed.pairs if done else 0, calls, tokens, done)
    throughput = Throughput(limits=Limits(table.concurrency, table.rpm, table.tpm, 0.0, 0))
    price = (
        "price unknown: write input_price and output_price" if needed.requests.usd is None
        else f"${table.input_price or 0:g} a million tokens in, ${table.output_price or 0:g} out"
    )  # fmt: skip
    note = f"judge: {price}; at most, as if no two retrievers found the same document and nothing were cached"
    return [_row("", "judge", counts, throughput)._replace(usd=usd)], [note]


class AxisRow(NamedTuple):
    """What the configurations of a sweep that have one value of one axis would take by themselves."""

    axis: str
    value: str
    configurations: int
    texts: int
    usd: float | None
    minutes: float | None


def axis_rows(experiment: Experiment, needs: Mapping[str, Sequence[PlanRow]]) -> Iterator[AxisRow]:
    """Yield a row for each value of each axis: what is shared with other values is in the rows of all of them.

    Args:
        experiment: with its sweep, if any.
        needs: retriever -> the rows of what is embedded and reranked for it; none where nothing is.
    """
    if experiment.sweep is None:
        return
    parts = parts_of(experiment.retrievers)
    for axis, words in experiment.sweep.words.items():
        for place, word in enumerate(words):
            cells = [name for name, chosen in experiment.sweep.cells.items() if chosen.get(axis) == place]
            made_of = sorted({one.name for cell in cells for one in parts[cell]})
            rows = tuple(dict.fromkeys(row for name in made_of for row in needs.get(name, ())))
            total = RunPlan(rows, ()).total()
            yield AxisRow(axis, word, len(cells), total["texts"], total["usd"], total["minutes"])


class RunPlan(NamedTuple):
    """What a run would take."""

    rows: tuple[PlanRow, ...]
    notes: tuple[str, ...]
    """Prices with their dates, what the minutes are made of, and what would not be read."""
    reaches: tuple[TruncationEstimate, ...] = ()
    """How far each encoder would read, of a sample."""
    axes: tuple[AxisRow, ...] = ()
    """Of a sweep: what each value of each axis would take."""

    def share(self, shards: int) -> dict[str, Any]:
        """What one of equal shares of the embedding would take, without process start and the loading of models."""
        total = RunPlan(tuple(row for row in self.rows if row.stage.startswith("embed-")), ()).total()
        parts = {name: None if total[name] is None else total[name] / shards for name in ("usd", "minutes")}
        return {"shards": shards, "texts": math.ceil((total["texts"] - total["cached"]) / shards), **parts}

    def total(self) -> dict[str, Any]:
        """The sums; None where a summand is unknown."""
        usd, minutes = ([getattr(row, name) for row in self.rows] for name in ("usd", "minutes"))
        return {
            "texts": sum(row.texts for row in self.rows),
            "cached": sum(row.cached for row in self.rows),
            "calls": sum(row.calls for row in self.rows),
            "tokens": sum(row.tokens for row in self.rows),
            "exact": all(row.exact for row in self.rows),
            "usd": None if None in usd else math.fsum(usd),
            "minutes": None if None in minutes else math.fsum(minutes),
        }


def joined(plans: Sequence[RunPlan]) -> RunPlan:
    """Return one plan of a run on several data sets; a text that stands in two of them counts twice."""
    together: list[tuple[Any, ...]] = [tuple(dict.fromkeys(chain(*parts))) for parts in zip(*plans, strict=True)]
    return RunPlan(tuple(chain(*(one.rows for one in plans))), *together[1:])


def plan(path: str | Path | Loaded, *, results: Path = Path("results"), code: bool = True) -> RunPlan:
    """Count what a run of an experiment would take; equal first stages count once.

    Tokens are exact where the model's tokenizer is on this machine, else estimated; those of a reranker's
    pairs are always estimated, since the pairs are only known when the first stage has answered. Minutes follow from
    the declared limits of an API, or from the speed of a local model in earlier runs.

    Args:
        path: the experiment file, or what was loaded of it.
        results: where earlier runs lie.
        code: whether the experiment may name code that is run.

    Raises:
        InputError: the experiment or its data are at fault.
    """
    loaded = load(path, code=code, keys=False)
    dataset, _, components = prepare(loaded, keys=False)
    rows: list[PlanRow] = []
    notes: list[str] = []
    with Cache(default_path()) as cache:
        take_over(loaded.experiment, components.values(), cache)
        context = Planning(loaded, dataset, cache, tuple(earlier_runs(results)))
        for block in in_order(loaded.experiment.retrievers):
            encoder, _, reranker, asked = components[block.name]
            if isinstance(block, Encoded) and encoder is not None:
                throughput, note = throughput_of("encoder", block.encoder, encoder, context)
                rows += embedding_rows(block, encoder, throughput, context)
                if origin(block) is None:
                    notes.append(f"{block.name}: {note}")
                if asked is not None and isinstance(block, Dense):
                    rows += proof_rows(block, asked, throughput, context)
            if block.rerank is not None and reranker is not None:
                throughput, note = throughput_of("rerank", block.rerank, reranker, context)
                own = list(reranking_rows(block, reranker, throughput, context))
                rows += own
                context.needs.setdefault(block.name, []).extend(own)
                if reranker.limits is not None:
                    notes.append(f"{block.name}: reranker: {note}")
        axes = tuple(axis_rows(loaded.experiment, context.needs))
        judging, judged_by = judging_rows(context)
        rows += judging
        notes += judged_by
    if any(row.minutes is None for row in rows):
        notes.append("?: how fast a local model is on this machine is not known before its first run")
    if not all(row.exact for row in rows):
        notes.append(
            "≈: estimated, since the tokenizer is not on this machine, or pairs are not known yet; "
            "code, and writing that a tokenizer knows little of, may have three times as many"
        )
    documents = sample(dataset.documents(), seed=loaded.experiment.seed)
    far = tuple(truncation_estimates(loaded.experiment.retrievers, components, documents))
    unread = [reach.warning() for reach in far if reach.lost]
    name = loaded.experiment.name if loaded.within else ""
    return RunPlan(tuple(row._replace(data_set=name) for row in rows), (*notes, *unread), far, axes)
