"""Whether services answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial

from harness.build.built_retriever import BuiltRetriever
from harness.dataset import Dataset
from harness.experiment import JudgeConfig
from retrievers.cache import Cache, default_cache_path
from retrievers.errors import BackendError, HarnessError
from retrievers.meter import Meter, single_call
from retrievers.options.user_code import wrap_user_errors
from retrievers.search_endpoint import Endpoint
from retrievers.services.chat_model import Prompt
from retrievers.stores.options import StoreOptions
from retrievers.types import Query

PING_PROMPT = Prompt("Answer with one word.", "Are you there?")


def ping_services(
    built: Sequence[BuiltRetriever], judge: JudgeConfig | None, dataset: Dataset
) -> list[str]:
    """Ask each model behind a network, endpoint, store on a server and judge for one text; past every cache.

    Args:
        built: the retrievers.
        judge: who decides whether a text entails a claim, if anybody.
        dataset: its first query is what is asked.

    Returns:
        A line for each that answered.

    Raises:
        BackendError: with a line for each that did not.
    """
    lines, failures = [], []
    for name, what, ask in _services(built, judge, dataset.queries[0]):
        try:
            with wrap_user_errors(()):
                ask()
            lines.append(f"{name}: its {what} answers")
        except HarnessError as failure:
            failures.append(f"{name}: {failure}")
    if failures:
        raise BackendError("\n".join(failures))
    return lines


def _services(
    built: Sequence[BuiltRetriever], judge: JudgeConfig | None, query: Query
) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Each service once, with the first retriever that uses it, what it is, and what asks it."""
    seen: set[object] = set()
    for one in built:
        for encoder in [dense.encoder for dense in one.dense_parts]:
            if encoder.limits is not None and id(encoder) not in seen:
                seen.add(id(encoder))
                yield (
                    one.name,
                    "encoder",
                    partial(encoder.embed, [query.text], "query", single_call()),
                )
        for reranker in one.rerankers:
            if reranker.limits is not None and id(reranker) not in seen:
                seen.add(id(reranker))
                yield (
                    one.name,
                    "reranker",
                    partial(reranker.score, [(query.text, query.text)], single_call()),
                )
        for whole in one.other_retrievers:
            if isinstance(whole, Endpoint):
                yield one.name, "endpoint", partial(whole.answer, query, 1, Meter())
        for store in [dense.store for dense in one.dense_parts]:
            if store not in seen and store.on_server:
                yield one.name, "store", partial(_ask_store, store)
            seen.add(store)
    if judge is not None and judge.kind == "openai":
        yield "judge", "model", partial(_ask_judge, judge)


def _ask_store(options: StoreOptions) -> None:
    from retrievers.stores.connection import Connection, list_collections

    with closing(Connection(options)) as server:
        list_collections(server)


def _ask_judge(table: JudgeConfig) -> None:
    from harness.answers.declared_judge import judge_chat

    with Cache(default_cache_path()) as cache:
        judge_chat(table, cache).model.ask(PING_PROMPT, single_call())
