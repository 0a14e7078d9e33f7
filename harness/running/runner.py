"""Indexes and replays queries: what was built -> Runs. One loop for every kind; what several share is asked once."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.build import Built, unfiltered
from harness.dataset import Dataset
from harness.records import Run, StageLatency
from harness.running.forecast import RunContext, check_needs
from harness.running.machine import measure, sampled, time_call
from retrievers import is_built_in
from retrievers.cache import Corpus, Resources
from retrievers.errors import BackendError, DataChanged, HarnessError
from retrievers.external import accepted, known_documents
from retrievers.meter import Meter
from retrievers.placeholders import without_keys
from retrievers.types import Query, Ranking, Retriever, above, collapsed, without
from retrievers.user_objects import wrap_user_errors

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StageResult:
    """What a retriever answered to all queries."""

    answers: Mapping[str, Ranking]
    provenance: Mapping[str, str] = field(default_factory=dict)
    """What the manifest keeps: models, store, kind of search, dimensions, bytes."""
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What was noted of documents and queries, by kind."""
    per_query: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The counts of the stages that every query passes, by stage."""


class Held(Retriever):
    """A part that has answered already: it gives its answers, and is asked anew only against the clock.

    Args:
        part: what answered.
        answered: its answers.
        named: whether it is a retriever of the experiment, which reports its own costs, time and models.
    """

    def __init__(self, part: Retriever, answered: StageResult, *, named: bool) -> None:
        self._part, self._answered, self._named = part, answered, named

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the part says of itself, if nothing else does."""
        return {} if self._named else self._answered.provenance

    def index(self, documents: object, meter: Meter) -> None:
        """Nothing: it has answered."""

    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Return what it answered."""
        return [self._answered.answers[query.id] for query in queries]

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Ask the part again, where its time counts; the answer is the one that it gave."""
        if not self._named:
            with meter.stage_by_default("search"):
                self._part.answer(query, depth, meter)
        return self._answered.answers[query.id]


@dataclass(frozen=True, slots=True)
class RunState:
    """One run under way: what its retrievers share, and what was already answered."""

    shared: RunContext
    resources: Resources
    runs: dict[str, Run]
    conversations: Mapping[str, str]
    """What each retriever searches with in a conversation."""
    answered: dict[tuple[int, str], StageResult] = field(default_factory=dict)
    """By retriever and what it searches with, before documents that stand for one are put together."""

    def of(self, name: str, part: Retriever) -> StageResult:
        """What a retriever of the experiment answered, for what uses it."""
        return self.answered.get((id(part), self.conversations[name])) or StageResult(
            self.runs[name].rankings
        )


def run_all(
    built: Sequence[Built],
    shared: RunContext,
    *,
    known: Mapping[str, Run] | None = None,
) -> Iterator[Run]:
    """Answer all queries with every retriever; each Run is yielded as soon as it is whole.

    A retriever that fails for good yields a Run with an error, as does what uses it; the others go on.

    Args:
        built: the retrievers, each after those that it uses.
        shared: what they share.
        known: runs to be taken as they are, by retriever.

    Raises:
        InputError: some part lacks a key, or a price, that it needs; raised before anything is embedded.
    """
    state = RunState(
        shared,
        resources_of(shared),
        dict(known or {}),
        {one.name: one.conversation for one in built},
    )
    wanted = [one for one in built if one.name not in state.runs]
    timed = [
        one.name
        for one in wanted
        if shared.sample and not shared.latencies.get(one.name)
    ]
    check_needs(wanted, shared, timed=timed)
    try:
        for one in wanted:
            state.runs[one.name] = _run(one, state)
            yield state.runs[one.name]
    finally:
        for store in state.resources.stores.values():
            store.close()


def resources_of(shared: RunContext) -> Resources:
    """What the retrievers of a run are given."""
    dataset: Dataset = shared.dataset
    corpus = Corpus(dataset.documents, dataset.count, dataset.texts)
    return Resources(
        corpus, shared.cache, dataset.corpus_digest, shared.stores, fresh=shared.fresh
    )


def _run(one: Built, state: RunState) -> Run:
    """Answer with one retriever."""
    shared = state.shared
    meter = Meter(shared.budget, lambda meter: shared.watch(one.name, meter))
    answered, error = StageResult({}), ""
    latency = shared.latencies.get(one.name, {})
    try:
        failed = [name for name in one.of if state.runs[name].error]
        if failed:
            raise BackendError(f"needs {', '.join(failed)}, which failed")
        with wrap_user_errors(one.blamed):
            whole, answered = _answered(one, one.retriever, state, meter)
            if shared.sample and not latency:
                latency = _latency(one, whole, shared, meter)
    except DataChanged:
        raise
    except HarnessError as failure:
        # What can only be seen now (a model that the hub does not have, a store that another process holds) stops
        # this retriever and those that use it, not the others.
        log.debug("%s failed", one.name, exc_info=failure)
        answered, error = StageResult({}), _writable(without_keys(str(failure)))
    answers = answered.answers
    if shared.dataset.same_as:
        with meter.stage("collapse"):
            answers = {
                id_: collapsed(ranking, shared.dataset.same_as)
                for id_, ranking in answers.items()
            }
            meter.count(
                collapsed=sum(map(len, answered.answers.values()))
                - sum(map(len, answers.values()))
            )
    provenance = {key: _writable(value) for key, value in answered.provenance.items()}
    return Run(
        one.name, answers, meter.stages(), meter.notes(), provenance, latency, error
    )


def _answered(
    one: Built, retriever: Retriever, state: RunState, meter: Meter
) -> tuple[Retriever, StageResult]:
    """Answer with a retriever, each of its parts first; what answered before is not asked again.

    Returns:
        The retriever with parts that have answered, and its answers.
    """
    key = id(retriever), one.conversation
    if known := state.answered.get(key):
        return retriever, _taken_over(known, meter)
    if not retriever.parts:
        answered = _floored(one, retriever, _searched(one, retriever, state, meter))
        state.answered[key] = replace(
            answered, notes=meter.notes(), per_query=_per_query(meter)
        )
        return retriever, answered
    held: list[Retriever] = []
    for part in retriever.parts:
        if name := one.names.get(id(part)):
            held.append(Held(part, state.of(name, part), named=True))
        else:
            held.append(Held(*_answered(one, part, state, meter), named=False))
    whole = retriever.made_of(tuple(held))
    whole.use(state.resources)
    with meter.stage_by_default("search"):
        rankings = whole.search(
            one.searched(state.shared.dataset.queries), state.shared.depth, meter
        )
    answered = _floored(
        one, retriever, StageResult(_by_query(rankings, state), whole.provenance)
    )
    state.answered[key] = replace(
        answered, notes=meter.notes(), per_query=_per_query(meter)
    )
    return whole, answered


def _floored(one: Built, retriever: Retriever, answered: StageResult) -> StageResult:
    """The answers without the hits below the floor, where one is declared."""
    if one.floor is None or retriever is not one.retriever:
        return answered
    return replace(
        answered,
        answers={
            id_: above(found, one.floor) for id_, found in answered.answers.items()
        },
    )


def _searched(
    one: Built, retriever: Retriever, state: RunState, meter: Meter
) -> StageResult:
    """Index and search with a retriever that has an index."""
    queries, depth, corpus = (
        one.searched(state.shared.dataset.queries),
        state.shared.depth,
        state.resources.corpus,
    )
    spare = 1 if state.shared.exclude_self else 0
    retriever.use(state.resources)
    with meter.stage_by_default("index"):
        retriever.index(corpus, meter)
    with meter.stage_by_default("search"):
        rankings = retriever.search(queries, depth + spare, meter)
    answers = _by_query(rankings, state)
    if spare:
        answers = {
            id_: without(ranking, id_, depth) for id_, ranking in answers.items()
        }
    if not is_built_in(type(unfiltered(retriever))):
        with meter.stage_by_default("search"):
            answers = accepted(answers, known_documents(corpus), depth, meter)
    return StageResult(answers, dict(retriever.provenance))


def _by_query(rankings: Sequence[Ranking], state: RunState) -> dict[str, Ranking]:
    queries = state.shared.dataset.queries
    if len(rankings) != len(queries):
        raise BackendError(
            f"{len(rankings)} rankings came back for {len(queries)} queries"
        )
    return {query.id: ranking for query, ranking in zip(queries, rankings, strict=True)}


def _per_query(meter: Meter) -> dict[str, dict[str, float]]:
    return {
        stage: meter.counts(stage)
        for stage in ("embed-queries", "search")
        if meter.counts(stage)
    }


def _taken_over(first: StageResult, meter: Meter) -> StageResult:
    """The answers of an equal retriever: what was noted holds here too, and each query costs what it cost there.

    Nothing was asked again, so that every text counts as cached and nothing as spent.
    """
    for kind, ids in first.notes.items():
        for id_ in ids:
            meter.note(kind, id_)
    for stage, counts in first.per_query.items():
        texts, tokens = (
            counts.get("texts", 0),
            counts.get("tokens", 0) + counts.get("cached_tokens", 0),
        )
        with meter.stage(stage):
            meter.count(
                texts=texts,
                cached=texts,
                **({"cached_tokens": tokens} if tokens else {}),
            )
    return first


def _latency(
    one: Built, retriever: Retriever, shared: RunContext, meter: Meter
) -> dict[str, StageLatency]:
    """Time some queries one at a time, each a step of progress."""

    def timed(query: Query) -> Mapping[str, float]:
        seconds = time_call(
            "search", lambda alone: retriever.answer(query, shared.depth, alone), meter
        )
        meter.step()
        return seconds

    queries = one.searched(shared.dataset.queries)
    with meter.stage("latency", total=sum(map(len, sampled(queries, shared.sample)))):
        return measure(queries, shared.sample, timed)


def _writable(text: str) -> str:
    """A text that somebody else's code or service gave, half characters spelt out: no file could hold them."""
    return text.encode("utf-8", "backslashreplace").decode()
