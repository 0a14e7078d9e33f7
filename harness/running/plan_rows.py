"""The rows of a plan: what each stage of each retriever would take."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from harness.answers.judges import forecast_claims
from harness.dataset import Dataset
from harness.experiment import Block, Dense, Encoded, Experiment, Loaded
from harness.experiment.options import Kind
from harness.running.forecast import chunks_of, forecast
from harness.running.latency import sampled
from harness.running.pace import REQUEST, EarlierRun, Pace, price_sentence
from retrievers.cache import Cache
from retrievers.chunking import pieces
from retrievers.derived import proof_texts
from retrievers.embedding import Embedder, VectorSource
from retrievers.prices import searches
from retrievers.reranking import PROBED
from retrievers.types import Encoder, Limits, Model, Reranker, Role

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
    source: VectorSource | None

    @property
    def experiment(self) -> Experiment:
        """The experiment itself."""
        return self.loaded.experiment

    def same(self) -> EarlierRun | None:
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


def pace_of(part: str, kind: Kind, model: Model, context: Planning) -> tuple[Pace, str]:
    """What a model's tokens cost and how fast it is, with a sentence that says where that is from."""
    limits = model.limits
    if limits is None:
        speed = context.speed(part, kind)
        known = f", {speed:,.0f} tokens a second in earlier runs" if speed else ""
        absent = "" if model.at_hand else ", its weights are still to be fetched"
        return Pace(model.price, speed=speed), f"{price_sentence(model.price)}{known}{absent}"
    rates = [f"{rate:g} {name} a minute" for rate, name in ((limits.rpm, "requests"), (limits.tpm, "tokens")) if rate]
    pace = ", ".join([f"{limits.concurrency} requests of {REQUEST:g} s at once", *rates])
    return Pace(model.price, limits), f"{price_sentence(model.price)}; {pace}"


def embedding_rows(
    block: Encoded, model: tuple[Encoder, Pace], context: Planning, planned: set[str]
) -> Iterator[PlanRow]:
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
    yield from latency_rows(block, model, context)


def latency_rows(block: Block, model: tuple[Encoder, Pace], context: Planning) -> Iterator[PlanRow]:
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


def proof_rows(block: Dense, model: tuple[Encoder, Pace], context: Planning, planned: set[str]) -> Iterator[PlanRow]:
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


def reranking_rows(
    block: Block, model: tuple[Reranker, Pace], context: Planning, rows: Sequence[PlanRow]
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


def judging_rows(context: Planning) -> tuple[list[PlanRow], list[str]]:
    """The row of a chat model that judges claims for all retrievers together; none for a judge on this machine."""
    experiment, measures = context.experiment, context.loaded.question.measures
    table = experiment.judge
    if table is None or table.kind != "openai" or not any(measure.claimed for measure in measures):
        return [], []
    needed = forecast_claims(table, context.dataset, measures, len(experiment.retrievers), context.cache)
    same = context.same()
    done = same is not None and same.manifest.judge.get("judge") == needed.judge and "verdicts" in same.manifest.judge
    calls, tokens, usd = (0, 0, 0.0) if done else needed.requests[2:]
    pace = Pace(limits=Limits(table.concurrency, table.rpm, table.tpm, 0.0, 0))
    price = (
        "price unknown: write input_price and output_price" if needed.requests.usd is None
        else f"${table.input_price or 0:g} a million tokens in, ${table.output_price or 0:g} out"
    )  # fmt: skip
    row = PlanRow("", "judge", needed.pairs, needed.pairs if done else 0, calls, tokens, done, usd,
              pace.minutes(calls, tokens))  # fmt: skip
    note = f"judge: {price}; at most, as if no two retrievers found the same document and nothing were cached"
    return [row], [note]
