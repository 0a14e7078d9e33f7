"""What a run would take, before anything is sent: texts, tokens, calls, dollars, minutes. No network, no model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from harness import records
from harness.answers.ahead import judging_ahead
from harness.dataset import Dataset
from harness.experiment import Block, Dense, Encoded, Experiment, Loaded, QdrantFusion, load, origin
from harness.experiment.options import Kind
from harness.records import Manifest
from harness.running import provenance
from harness.running.check import prepare
from harness.running.forecast import chunks_of, forecast, source_of
from harness.running.latency import sampled
from harness.running.portrait import sample
from harness.running.reach import Reach, reaches
from harness.running.runner import in_order
from retrievers.cache import Cache, default_path
from retrievers.chunking import pieces
from retrievers.derived import proof_texts
from retrievers.embedding import Embedder, VectorSource
from retrievers.errors import InputError
from retrievers.prices import FREE, Price, searches
from retrievers.reranking import PROBED
from retrievers.types import Encoder, Limits, Model, Reranker, Role

REQUEST = 0.5
"""Seconds that a request to an API is taken to last."""
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


class RunPlan(NamedTuple):
    """What a run would take."""

    rows: tuple[PlanRow, ...]
    notes: tuple[str, ...]
    """Prices with their dates, what the minutes are made of, and what would not be read."""
    reaches: tuple[Reach, ...] = ()
    """How far each encoder would read, of a sample."""

    def share(self, shards: int) -> dict[str, Any]:
        """What one of equal shares of the embedding would take, without process start and the loading of models."""
        rows = [row for row in self.rows if row.stage.startswith("embed-")]
        usd, minutes = ([getattr(row, name) for row in rows] for name in ("usd", "minutes"))
        return {
            "shards": shards,
            "texts": math.ceil(sum(row.texts - row.cached for row in rows) / shards),
            "usd": None if None in usd else math.fsum(usd) / shards,
            "minutes": None if None in minutes else math.fsum(minutes) / shards,
        }

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


class _Pace(NamedTuple):
    """What a model's tokens cost, and how fast it reads them."""

    price: Price | None = FREE
    """None: unknown."""
    limits: Limits | None = None
    """An API's."""
    speed: float | None = None
    """Tokens a second of a local model; None where it was never measured."""

    def usd(self, tokens: int, searches: int = 0) -> float | None:
        if not tokens:
            return 0.0
        return None if self.price is None else self.price.usd(tokens, searches)

    def minutes(self, calls: int, tokens: int, *, together: bool = True) -> float | None:
        """Minutes of so many requests, sent together or one after another."""
        if not calls:
            return 0.0
        if self.limits is None:
            return tokens / self.speed / 60 if self.speed else None
        at_once = self.limits.concurrency if together else 1
        paces = [-(-calls // at_once) * REQUEST / 60]
        paces += [calls / self.limits.rpm] if self.limits.rpm else []
        paces += [tokens / self.limits.tpm] if self.limits.tpm else []
        return max(paces)


class _EarlierRun(NamedTuple):
    """An earlier run on this machine."""

    manifest: Manifest
    costs: Sequence[dict[str, Any]]
    """The rows of costs.csv."""

    def speed(self, part: str, kind: Kind) -> tuple[float, float]:
        """The tokens that an encoder or reranker read, and the seconds that it took, its loading included."""
        blocks = self.manifest.resolved.retrievers
        model = _without_depth(kind.written())
        names = {block["name"] for block in blocks if _without_depth(block.get(part) or {}) == model}
        stages = {"encoder": ("embed-documents", "embed-queries"), "rerank": ("rerank",)}[part]
        read = [row for row in self.costs if row["retriever"] in names and row["stage"] in stages and row["tokens"]]
        return math.fsum(row["tokens"] for row in read), math.fsum(row["seconds"] for row in read)

    @property
    def finished(self) -> set[str]:
        """The retrievers that finished."""
        return set(self.manifest.finished)

    @property
    def timed(self) -> set[str]:
        """The retrievers of which single queries were timed."""
        return {row["retriever"] for row in self.costs if not math.isnan(row["p50_ms"])}


@dataclass(frozen=True, slots=True)
class _Context:
    """What planning one experiment needs."""

    loaded: Loaded
    dataset: Dataset
    cache: Cache
    earlier: Sequence[_EarlierRun]
    source: VectorSource | None

    @property
    def experiment(self) -> Experiment:
        return self.loaded.experiment

    def same(self) -> _EarlierRun | None:
        """The earlier run of this very experiment on these data: what it timed is not timed again."""
        asked = (self.loaded.written, self.dataset.digest)
        runs = (run for run in self.earlier if (run.manifest.experiment, run.manifest.dataset.digest) == asked)
        return next(runs, None)

    def speed(self, part: str, kind: Kind) -> float | None:
        """Tokens a second of a local model, by the earlier runs."""
        tokens, seconds = map(sum, zip((0, 0), *(one.speed(part, kind) for one in self.earlier), strict=True))
        return tokens / seconds if seconds else None

    def timed(self, block: Block) -> list[str]:
        """The queries that are asked one at a time, past the cache."""
        latency, same = self.experiment.latency, self.same()
        if latency is None or (same is not None and block.name in same.timed):
            return []
        return [query.text for some in sampled(self.dataset.queries, latency.sample) for query in some]


def plan(path: str | Path, *, results: Path = Path("results"), code: bool = True) -> RunPlan:
    """Count what a run of an experiment would take; equal first stages count once.

    Tokens are exact where the model's tokenizer is on this machine, else estimated from above; those of a reranker's
    pairs are always estimated, since the pairs are only known when the first stage has answered. Minutes follow from
    the declared limits of an API, or from the speed of a local model in earlier runs.

    Args:
        path: the experiment file.
        results: where earlier runs lie.
        code: whether the experiment may name code that is run.

    Raises:
        InputError: the experiment or its data are at fault.
    """
    loaded = load(path, code=code)
    dataset, _, components = prepare(loaded)
    rows: list[PlanRow] = []
    notes: list[str] = []
    with Cache(default_path()) as cache:
        context = _Context(loaded, dataset, cache, tuple(_earlier(results)), source_of(loaded.experiment))
        planned: set[str] = set()
        for block in in_order(loaded.experiment.retrievers):
            encoder, _, reranker, asked = components[block.name]
            if isinstance(block, QdrantFusion) and encoder is not None:
                of_dense = next(other for other in loaded.experiment.retrievers if other.name == block.of[0])
                assert isinstance(of_dense, Dense)
                rows += _timed(block, (encoder, _pace("encoder", of_dense.encoder, encoder, context)[0]), context)
            if isinstance(block, Encoded) and encoder is not None:
                pace, note = _pace("encoder", block.encoder, encoder, context)
                rows += _embedding(block, (encoder, pace), context, planned)
                if origin(block) is None:
                    notes.append(f"{block.name}: {note}")
                if asked is not None and isinstance(block, Dense):
                    rows += _proof(block, (asked, pace), context, planned)
            if block.rerank is not None and reranker is not None:
                pace, note = _pace("rerank", block.rerank, reranker, context)
                rows += _reranking(block, (reranker, pace), context, rows)
                if reranker.limits is not None:
                    notes.append(f"{block.name}: reranker: {note}")
        judging, judged_by = _judging(context)
        rows += judging
        notes += judged_by
    if any(row.minutes is None for row in rows):
        notes.append("?: how fast a local model is on this machine is not known before its first run")
    if not all(row.exact for row in rows):
        notes.append("≈: estimated from above, since the tokenizer is not on this machine, or pairs are not known yet")
    documents = sample(dataset.documents(), seed=loaded.experiment.seed)
    far = tuple(reaches(loaded.experiment.retrievers, components, documents))
    unread = [reach.warning() for reach in far if reach.lost]
    return RunPlan(tuple(rows), (*notes, *unread), far)


def _embedding(block: Encoded, model: tuple[Encoder, _Pace], context: _Context, planned: set[str]) -> Iterator[PlanRow]:
    """The rows of an encoder; texts that an earlier retriever embeds alike are left out, and added to `planned`."""
    encoder, pace = model
    expected = forecast(Embedder(encoder, context.cache, context.source), context.dataset, chunks_of(block, encoder))
    for role, key in (("document", f"{_named(block, encoder, 'document')} {block.chunk}"),
                      ("query", _named(block, encoder, "query"))):  # fmt: skip
        if key in planned:
            continue
        planned.add(key)
        texts, cached, calls, tokens, exact = expected["document" if role == "document" else "query"]
        stage = "embed-documents" if role == "document" else "embed-queries"
        yield PlanRow(
            block.name, stage, texts, cached, calls, tokens, exact, pace.usd(tokens), pace.minutes(calls, tokens)
        )
    yield from _timed(block, model, context)


def _timed(block: Block, model: tuple[Encoder, _Pace], context: _Context) -> Iterator[PlanRow]:
    """The row of the queries that are asked one at a time, past the cache."""
    encoder, pace = model
    if timed := context.timed(block):
        counts, exact = encoder.count(timed, "query")
        tokens, calls = int(counts.sum()), len(timed)
        yield PlanRow(block.name, "latency", calls, 0, calls, tokens, exact, pace.usd(tokens),
                  pace.minutes(calls, tokens, together=False))  # fmt: skip


def _named(block: Encoded, encoder: Encoder, role: Role) -> str:
    """What tells the vectors of a role from those of other encoders."""
    return f"{role} {encoder.fingerprint_for(role) if encoder.at_hand else block.encoder.written()}"


def _proof(block: Dense, model: tuple[Encoder, _Pace], context: _Context, planned: set[str]) -> Iterator[PlanRow]:
    """The row of the texts that are embedded at the size to which vectors are cut, to compare the two."""
    asked, pace = model
    key = f"{block.encoder.written()} {block.chunk} {block.dimensions}"
    if key in planned:
        return
    planned.add(key)
    some = proof_texts(piece.content for piece in pieces(context.dataset.documents(), chunks_of(block, asked)))
    texts, cached, calls, tokens, exact = Embedder(asked, context.cache, context.source).forecast(some, "document")
    usd, minutes = pace.usd(tokens), pace.minutes(calls, tokens)
    yield PlanRow(block.name, "embed-documents", texts, cached, calls, tokens, exact, usd, minutes)


def _reranking(
    block: Block, model: tuple[Reranker, _Pace], context: _Context, rows: Sequence[PlanRow]
) -> Iterator[PlanRow]:
    """The rows of a reranker: at most `depth` pairs a query, the first documents standing for the candidates."""
    reranker, pace = model
    width = min(reranker.depth, context.experiment.depth, context.dataset.count)
    documents = [document.content for document in islice(context.dataset.documents(), SAMPLE)]
    average = float(reranker.count(documents).counts.mean())

    def requests(texts: Sequence[str]) -> int:
        pairs = [(text, documents[number % len(documents)]) for text in texts for number in range(width)]
        return sum(1 for _ in reranker.batches(pairs))

    def row(stage: str, texts: Sequence[str], calls: int, *, cached: bool = False) -> PlanRow:
        pairs = width * len(texts)
        lists = len(texts)
        if reranker.by_list and stage == "rerank" and not cached:  # some lists are sent again, in two halves
            again = min(PROBED, len(texts))
            lists, calls = lists + 2 * again, calls + 2 * again
            texts = [*texts, *sorted(texts, key=len)[-again:]]
        tokens = 0 if cached else int(width * reranker.count(texts).counts.sum() + width * len(texts) * average)
        minutes = pace.minutes(calls, tokens, together=stage == "rerank")
        usd = pace.usd(tokens, lists * searches([math.ceil(average)] * width))
        return PlanRow(block.name, stage, pairs, pairs if cached else 0, calls, tokens, not tokens, usd, minutes)

    asked = [query.text for query in context.dataset.queries]
    # Whether pairs are cached cannot be looked up before they are known: they are, where this very run was finished
    # before and nothing it embeds has gone from the cache since.
    same = context.same()
    cached = same is not None and block.name in same.finished and all(
        one.texts == one.cached for one in rows if one.stage.startswith("embed-")
    )  # fmt: skip
    yield row("rerank", asked, 0 if cached else requests(asked), cached=cached)
    if timed := context.timed(block):
        yield row("latency-rerank", timed, sum(requests([text]) for text in timed))


def _judging(context: _Context) -> tuple[list[PlanRow], list[str]]:
    """The row of a chat model that judges claims for all retrievers together; none for a judge on this machine."""
    experiment, measures = context.experiment, context.loaded.question.measures
    table = experiment.judge
    if table is None or table.kind != "openai" or not any(measure.claimed for measure in measures):
        return [], []
    needed = judging_ahead(table, context.dataset, measures, len(experiment.retrievers), context.cache)
    same = context.same()
    done = same is not None and same.manifest.judge.get("judge") == needed.judge and "verdicts" in same.manifest.judge
    calls, tokens, usd = (0, 0, 0.0) if done else needed.requests[2:]
    pace = _Pace(limits=Limits(table.concurrency, table.rpm, table.tpm, 0.0, 0))
    price = (
        "price unknown: write input_price and output_price" if needed.requests.usd is None
        else f"${table.input_price or 0:g} a million tokens in, ${table.output_price or 0:g} out"
    )  # fmt: skip
    row = PlanRow("", "judge", needed.pairs, needed.pairs if done else 0, calls, tokens, done, usd,
              pace.minutes(calls, tokens))  # fmt: skip
    note = f"judge: {price}; at most, as if no two retrievers found the same document and nothing were cached"
    return [row], [note]


def _pace(part: str, kind: Kind, model: Model, context: _Context) -> tuple[_Pace, str]:
    """What a model's tokens cost and how fast it is, with a sentence that says where that is from."""
    limits = model.limits
    if limits is None:
        speed = context.speed(part, kind)
        known = f", {speed:,.0f} tokens a second in earlier runs" if speed else ""
        absent = "" if model.at_hand else ", its weights are still to be fetched"
        return _Pace(model.price, speed=speed), f"{_price_sentence(model.price)}{known}{absent}"
    rates = [f"{rate:g} {name} a minute" for rate, name in ((limits.rpm, "requests"), (limits.tpm, "tokens")) if rate]
    pace = ", ".join([f"{limits.concurrency} requests of {REQUEST:g} s at once", *rates])
    return _Pace(model.price, limits), f"{_price_sentence(model.price)}; {pace}"


def _price_sentence(price: Price | None) -> str:
    if price is None:
        return "price unknown: write price = dollars for a million tokens"
    if price.usd_per_thousand_searches:
        return f"${price.usd_per_thousand_searches:g} a thousand searches ({price.source})"
    return price.source if price is FREE else f"${price.usd_per_million_tokens:g} a million tokens ({price.source})"


def _without_depth(table: Mapping[str, Any]) -> dict[str, Any]:
    """An encoder or reranker without what leaves its speed as it is."""
    return {key: value for key, value in table.items() if key != "depth"}


def _earlier(results: Path) -> Iterator[_EarlierRun]:
    """The results folders that were made on this machine."""
    for manifest in sorted(results.glob("*/manifest.json")):
        try:
            run = _EarlierRun(records.read_manifest(manifest.parent), records.read_costs(manifest.parent))
        except (InputError, OSError, ValueError):
            continue  # no results folder of today's form: nothing is known from it
        if _without_load(run.manifest.machine) == _without_load(provenance.machine()):
            yield run


def _without_load(machine: Mapping[str, Any]) -> dict[str, Any]:
    """What a machine is, without how busy it was."""
    return {key: value for key, value in machine.items() if key != "load"}
