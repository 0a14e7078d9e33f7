"""Check of services: each of an experiment's is asked for one text, whether it is there and takes the key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial

from harness.dataset import Dataset
from harness.experiment import Encoded, Experiment, JudgeOptions
from harness.running.components import Components, canonical
from retrievers.cache import Cache, default_path
from retrievers.chat_model import Prompt
from retrievers.errors import BackendError, HarnessError
from retrievers.meter import Meter, single_call
from retrievers.placeholders import expand
from retrievers.search_endpoint import HttpRetriever
from retrievers.stores import StoreOptions
from retrievers.types import Query
from retrievers.user_objects import faults_of

PROMPT = Prompt("Answer with one word.", "Are you there?")


def ask_services(experiment: Experiment, dataset: Dataset, components: Mapping[str, Components]) -> list[str]:
    """Ask each model behind a network, endpoint, store on a server and judge for one text; past every cache.

    Args:
        experiment: names them.
        dataset: its first query is what is asked.
        components: what retrievers are made of, by name.

    Returns:
        A line for each that answered.

    Raises:
        BackendError: with a line for each that did not.
    """
    lines, failures = [], []
    for name, what, ask in _services(experiment, dataset.queries[0], components):
        try:
            with faults_of(()):
                ask()
            lines.append(f"{name}: its {what} answers")
        except HarnessError as failure:
            failures.append(f"{name}: {failure}")
    if failures:
        raise BackendError("\n".join(failures))
    return lines


def _services(
    experiment: Experiment, query: Query, components: Mapping[str, Components]
) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Each service once, with the first retriever that uses it, what it is, and what asks it."""
    seen: set[object] = set()
    for block in experiment.retrievers:
        encoder, retriever, reranker, _ = components[block.name]
        if encoder is not None and encoder.limits is not None and id(encoder) not in seen:
            seen.add(id(encoder))
            yield block.name, "encoder", partial(encoder.embed, [query.text], "query", single_call())
        if reranker is not None and reranker.limits is not None and id(reranker) not in seen:
            seen.add(id(reranker))
            yield block.name, "reranker", partial(reranker.score, [(query.text, query.text)], single_call())
        if isinstance(retriever, HttpRetriever):
            yield block.name, "endpoint", partial(retriever.answer, query, 1, Meter())
        if isinstance(block, Encoded) and (key := canonical(block.store)) not in seen:
            seen.add(key)
            options = StoreOptions(**expand(block.store))
            if options.on_server:
                yield block.name, "store", partial(_ask_store, options)
    if experiment.judge is not None and experiment.judge.kind == "openai":
        yield "judge", "model", partial(_ask_judge, experiment.judge)


def _ask_store(options: StoreOptions) -> None:
    from retrievers.stores.connection import Collections

    with closing(Collections(options)) as collections:
        collections.list()


def _ask_judge(table: JudgeOptions) -> None:
    from harness.answers.judges import chat_of

    with Cache(default_path()) as cache:
        chat_of(table, cache).model.ask(PROMPT, single_call())
