"""What a run would take, before anything is sent: texts, tokens, calls, dollars, minutes. No network, no model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from harness import records
from harness.dataset import Dataset
from harness.experiment import Block, Dense, Experiment, Loaded, load
from harness.experiment.options import Kind
from harness.records import Manifest
from harness.running import provenance
from harness.running.check import checked_data
from harness.running.equipment import chunks_of, encoder_of, forecast
from harness.running.latency import sampled
from harness.running.runner import in_order
from retrievers import prices
from retrievers.cache import Cache, default_path
from retrievers.embedding import Embedder
from retrievers.errors import InputError
from retrievers.local.weights import Weights
from retrievers.meter import Meter
from retrievers.remote.requests import Limits
from retrievers.tokens import Tokens, estimate, folder_tokens
from retrievers.types import Encoder

REQUEST = 0.5
"""Seconds that a request to an API is taken to last."""
SAMPLE = 1000
"""Documents whose tokens are counted, to know those of a reranker's pairs."""


class Row(NamedTuple):
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


class Plan(NamedTuple):
    """What a run would take."""

    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    """Prices with their dates, and what the minutes are made of."""

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

    usd_per_million: float | None = 0.0
    limits: Limits | None = None
    """An API's."""
    speed: float | None = None
    """Tokens a second of a local model; None where it was never measured."""

    def usd(self, tokens: int) -> float | None:
        if not tokens:
            return 0.0
        return None if self.usd_per_million is None else tokens * self.usd_per_million / 1e6

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


class _Past(NamedTuple):
    """An earlier run on this machine."""

    manifest: Manifest
    costs: Sequence[dict[str, Any]]
    """The rows of costs.csv."""

    def speed(self, part: str, kind: Kind) -> tuple[float, float]:
        """The tokens that an encoder or reranker read, and the seconds that it took, its loading included."""
        blocks = self.manifest.resolved.retrievers
        names = {block["name"] for block in blocks if _model(block.get(part) or {}) == _model(kind.written())}
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
class _Desk:
    """What planning one experiment needs."""

    loaded: Loaded
    dataset: Dataset
    cache: Cache
    past: Sequence[_Past]

    @property
    def experiment(self) -> Experiment:
        return self.loaded.experiment

    def same(self) -> _Past | None:
        """The earlier run of this very experiment on these data: what it timed is not timed again."""
        asked = (self.loaded.written, self.dataset.digest)
        found = (one for one in self.past if (one.manifest.experiment, one.manifest.dataset.digest) == asked)
        return next(found, None)

    def speed(self, part: str, kind: Kind) -> float | None:
        """Tokens a second of a local model, by the earlier runs."""
        tokens, seconds = map(sum, zip((0, 0), *(one.speed(part, kind) for one in self.past), strict=True))
        return tokens / seconds if seconds else None

    def timed(self, block: Block) -> list[str]:
        """The queries that are asked one at a time, past the cache."""
        latency, same = self.experiment.latency, self.same()
        if latency is None or (same is not None and block.name in same.timed):
            return []
        return [query.text for some in sampled(self.dataset.queries, latency.sample) for query in some]


def plan(path: str | Path, *, results: Path = Path("results")) -> Plan:
    """Count what a run of an experiment would take; equal first stages count once.

    Tokens are exact where the model's tokenizer is on this machine, else estimated from above; those of a reranker's
    pairs are always estimated, since the pairs are only known when the first stage has answered. Minutes follow from
    the declared limits of an API, or from the speed of a local model in earlier runs.

    Args:
        path: the experiment file.
        results: where earlier runs lie.

    Raises:
        InputError: the experiment or its data are at fault.
    """
    loaded = load(path)
    dataset = checked_data(loaded).dataset
    rows: list[Row] = []
    notes: list[str] = []
    with Cache(default_path()) as cache:
        desk = _Desk(loaded, dataset, cache, tuple(_earlier(results)))
        planned: set[str] = set()
        for block in in_order(loaded.experiment.retrievers):
            if isinstance(block, Dense):
                encoder = encoder_of(block.encoder, Meter())
                pace, note = _pace(block.encoder, encoder, desk)
                rows += _embedding(block, (encoder, pace), desk, planned)
                notes.append(f"{block.name}: {note}")
            if block.rerank is not None:
                rows += _reranking(block, block.rerank, desk, rows)
    if any(row.minutes is None for row in rows):
        notes.append("?: how fast a local model is on this machine is not known before its first run")
    if not all(row.exact for row in rows):
        notes.append("≈: estimated from above, since the tokenizer is not on this machine, or pairs are not known yet")
    return Plan(tuple(rows), tuple(notes))


def _embedding(block: Dense, equipped: tuple[Encoder, _Pace], desk: _Desk, planned: set[str]) -> Iterator[Row]:
    """The rows of an encoder; texts that an earlier retriever embeds alike are left out, and added to `planned`."""
    encoder, pace = equipped
    model = repr(block.encoder.written())
    expected = forecast(Embedder(encoder, desk.cache, meter=Meter()), desk.dataset, chunks_of(block))
    for role, key in (("document", f"{model} {block.chunk}"), ("query", model)):
        if key in planned:
            continue
        planned.add(key)
        texts, cached, calls, tokens, exact = expected["document" if role == "document" else "query"]
        stage = "embed-documents" if role == "document" else "embed-queries"
        yield Row(block.name, stage, texts, cached, calls, tokens, exact, pace.usd(tokens), pace.minutes(calls, tokens))
    if timed := desk.timed(block):
        counts, exact = _count(encoder, timed)
        tokens, calls = sum(counts), len(timed)
        yield Row(block.name, "latency", calls, 0, calls, tokens, exact, pace.usd(tokens),
                  pace.minutes(calls, tokens, together=False))  # fmt: skip


def _reranking(block: Block, kind: Kind, desk: _Desk, rows: Sequence[Row]) -> Iterator[Row]:
    """The rows of a reranker: at most `depth` pairs a query, each pair of average length."""
    width = min(kind.options["depth"], desk.experiment.depth, desk.dataset.count)
    folder = Weights(kind.options["model"], kind.options["revision"]).snapshot
    pace = _Pace(speed=desk.speed("rerank", kind))
    documents = [document.content for document in islice(desk.dataset.documents(), SAMPLE)]
    average = float(_tokens(folder, documents).counts.mean())

    def row(stage: str, texts: Sequence[str], cached: int, calls: int) -> Row:
        pairs = width * len(texts)
        tokens = 0 if cached else int(width * _tokens(folder, texts).counts.sum() + pairs * average)
        return Row(block.name, stage, pairs, cached, calls, tokens, not tokens, 0.0, pace.minutes(calls, tokens))

    asked = [query.text for query in desk.dataset.queries]
    # Whether pairs are cached cannot be looked up before they are known: they are, where this very run was finished
    # before and nothing it embeds has gone from the cache since.
    same = desk.same()
    known = same is not None and block.name in same.finished and all(
        one.texts == one.cached for one in rows if one.stage.startswith("embed-")
    )  # fmt: skip
    size = kind.options["batch_size"]
    yield row("rerank", asked, width * len(asked) if known else 0, 0 if known else -(-width * len(asked) // size))
    if timed := desk.timed(block):
        yield row("latency-rerank", timed, 0, len(timed) * -(-width // size))


def _pace(kind: Kind, encoder: Encoder, desk: _Desk) -> tuple[_Pace, str]:
    """What an encoder's tokens cost and how fast it is, with a sentence that says where that is from."""
    limits: Limits | None = getattr(encoder, "limits", None)
    if limits is None:
        speed = desk.speed("encoder", kind)
        known = f", {speed:,.0f} tokens a second in earlier runs" if speed else ""
        absent = "" if getattr(encoder, "at_hand", True) else ", its weights are still to be fetched"
        return _Pace(speed=speed), f"runs on this machine, nothing is paid{known}{absent}"
    usd, source = _price(kind)
    said = "price unknown: write price = dollars for a million tokens" if usd is None else f"${usd:g} a million tokens"
    rates = [f"{rate:g} {name} a minute" for rate, name in ((limits.rpm, "requests"), (limits.tpm, "tokens")) if rate]
    pace = ", ".join([f"{limits.concurrency} requests of {REQUEST:g} s at once", *rates])
    return _Pace(usd, limits), f"{said}{source}; {pace}"


def _price(kind: Kind) -> tuple[float | None, str]:
    """Dollars for a million tokens, as the encoder takes them, and where they are from."""
    if kind.options.get("price") is not None:
        return float(kind.options["price"]), " (the experiment's price)"
    if kind.options.get("base_url"):
        return 0.0, " (a server of one's own)"
    listed = prices.price(kind.kind, kind.options["model"])
    return (listed.usd_per_million_tokens, f" ({listed.source}, read {listed.read})") if listed else (None, "")


def _count(encoder: Encoder, texts: Sequence[str]) -> Tokens:
    count = getattr(encoder, "count", None)
    found: Tokens = count(texts, "query") if count else Tokens(estimate(texts), exact=False)
    return found


def _tokens(folder: Path | None, texts: Sequence[str]) -> Tokens:
    return folder_tokens(folder, texts) if folder else Tokens(estimate(texts), exact=False)


def _model(table: Mapping[str, Any]) -> dict[str, Any]:
    """An encoder or reranker without what leaves its speed as it is."""
    return {key: value for key, value in table.items() if key != "depth"}


def _earlier(results: Path) -> Iterator[_Past]:
    """The results folders that were made on this machine."""
    for manifest in sorted(results.glob("*/manifest.json")):
        try:
            found = _Past(records.read_manifest(manifest.parent), records.read_costs(manifest.parent))
        except (InputError, OSError, ValueError):
            continue  # no results folder of today's form: nothing is known from it
        if found.manifest.machine == provenance.machine():
            yield found
