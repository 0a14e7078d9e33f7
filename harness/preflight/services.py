"""Whether the services of an experiment respond.

Each is sent one request; a model or a store once for all retrievers that use it. A
search service must also return ids of documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import NamedTuple

from harness.build.built_retriever import BuiltRetriever
from harness.dataset import Dataset
from harness.experiment import JudgeConfig
from harness.wording.failures import failure_line
from retrievers.asked_service import AskedService
from retrievers.cache import Cache, default_cache_path
from retrievers.errors import BackendError, HarnessError
from retrievers.external import known_documents, match_hit_ids
from retrievers.meter import Meter, single_call
from retrievers.options.user_code import wrap_user_errors
from retrievers.services.chat_model import Prompt
from retrievers.stores.options import StoreOptions
from retrievers.types import Query, Ranking

PING_DEPTH = 10
"""Hits of the first query, whose ids are compared with those of the documents."""
PING_PROMPT = Prompt("Answer with one word.", "Are you there?")


class Service(NamedTuple):
    """A service behind a network, with the first retriever that uses it."""

    retriever: str
    """A retriever, or "judge"."""
    kind: str
    """encoder, reranker, endpoint, store, or model."""
    ping: Callable[[], object]
    """Sends one request."""
    has_no_hits: bool = False
    """Whether an endpoint found nothing for the first query."""


def ping_services(
    retrievers: Sequence[BuiltRetriever], judge: JudgeConfig | None, dataset: Dataset
) -> list[Service]:
    """Send one text to each model, endpoint, server of a store and judge.

    No cache is read.

    Args:
        retrievers: of the experiment.
        judge: of claims, if the experiment has one.
        dataset: its first query is the text; its documents have the ids of hits.

    Returns:
        The services that responded.

    Raises:
        BackendError: a line for each that did not.
    """
    responding: list[Service] = []
    failures: list[str] = []
    for service in _services(retrievers, judge, dataset):
        try:
            with wrap_user_errors(()):  # the line below names the retriever
                response = service.ping()
        except HarnessError as failure:
            failures.append(failure_line(service.retriever, str(failure)))
        else:
            has_no_hits = isinstance(response, Ranking) and not len(response)
            responding.append(service._replace(has_no_hits=has_no_hits))
    if failures:
        raise BackendError("\n".join(failures))
    return responding


def _services(
    retrievers: Sequence[BuiltRetriever], judge: JudgeConfig | None, dataset: Dataset
) -> Iterator[Service]:
    """Yield each service once."""
    pinged: set[object] = set()
    for built in retrievers:
        for key, service in _services_of(built, dataset):
            if key not in pinged:
                pinged.add(key)
                yield service
    if judge is not None and judge.kind == "openai":
        yield Service("judge", "model", partial(_ping_judge, judge))


def _services_of(
    built: BuiltRetriever, dataset: Dataset
) -> Iterator[tuple[object, Service]]:
    """Yield the services of a retriever, each with its identity."""
    query = dataset.queries[0]
    yield from _model_services(built, query)
    for retriever in built.other_retrievers:
        if isinstance(retriever, AskedService):
            ping_endpoint = partial(_ping_endpoint, retriever, query, dataset)
            # A new object is equal to no other: every endpoint is pinged.
            yield object(), Service(built.name, "endpoint", ping_endpoint)
    for dense in built.dense_parts:
        if dense.store.on_server:
            ping_store = partial(_ping_store, dense.store)
            yield dense.store, Service(built.name, "store", ping_store)


def _ping_endpoint(service: AskedService, query: Query, dataset: Dataset) -> Ranking:
    """Return the hits of one query; their ids must be of documents, as in a run."""
    ranking = service.answer(query, PING_DEPTH, Meter())
    documents = known_documents(dataset.documents())
    is_allowed = bool(service.unknown_hits)
    match_hit_ids([ranking], documents, Meter(), allow_unknown=is_allowed)
    return ranking


def _model_services(
    built: BuiltRetriever, query: Query
) -> Iterator[tuple[object, Service]]:
    for dense in built.dense_parts:
        encoder = dense.encoder
        if encoder.limits is not None:
            ping = partial(encoder.embed, [query.text], "query", single_call())
            yield id(encoder), Service(built.name, "encoder", ping)
    for reranker in built.rerankers:
        if reranker.limits is not None:
            pairs = [(query.text, query.text)]
            ping_reranker = partial(reranker.score, pairs, single_call())
            yield id(reranker), Service(built.name, "reranker", ping_reranker)
    for agent in built.agents:
        ping_model = partial(agent.model.ask, PING_PROMPT, single_call())
        yield id(agent.model), Service(built.name, "model", ping_model)


def _ping_store(options: StoreOptions) -> None:
    from retrievers.stores.connection import Connection, list_collections

    with closing(Connection(options)) as server:
        list_collections(server)


def _ping_judge(judge: JudgeConfig) -> None:
    from harness.answers.declared_judge import judge_chat

    with Cache(default_cache_path()) as cache:
        judge_chat(judge, cache).model.ask(PING_PROMPT, single_call())
