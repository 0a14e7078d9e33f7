"""Check of services: each of an experiment's is asked for one text, whether it is there and takes the key."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial

from harness.build import Built
from harness.dataset import Dataset
from harness.experiment import JudgeOptions
from retrievers.cache import Cache, default_path
from retrievers.chat_model import Prompt
from retrievers.errors import BackendError, HarnessError
from retrievers.meter import Meter, single_call
from retrievers.search_endpoint import Endpoint
from retrievers.stores import StoreOptions
from retrievers.types import Query
from retrievers.user_objects import wrap_user_errors

PROMPT = Prompt("Answer with one word.", "Are you there?")


def ask_services(built: Sequence[Built], judge: JudgeOptions | None, dataset: Dataset) -> list[str]:
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
    built: Sequence[Built], judge: JudgeOptions | None, query: Query
) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Each service once, with the first retriever that uses it, what it is, and what asks it."""
    seen: set[object] = set()
    for one in built:
        for encoder in [dense.encoder for dense in one.denses]:
            if encoder.limits is not None and id(encoder) not in seen:
                seen.add(id(encoder))
                yield one.name, "encoder", partial(encoder.embed, [query.text], "query", single_call())
        for reranker in one.rerankers:
            if reranker.limits is not None and id(reranker) not in seen:
                seen.add(id(reranker))
                yield one.name, "reranker", partial(reranker.score, [(query.text, query.text)], single_call())
        for whole in one.wholes:
            if isinstance(whole, Endpoint):
                yield one.name, "endpoint", partial(whole.answer, query, 1, Meter())
        for store in [dense.store for dense in one.denses]:
            if store not in seen and store.on_server:
                yield one.name, "store", partial(_ask_store, store)
            seen.add(store)
    if judge is not None and judge.kind == "openai":
        yield "judge", "model", partial(_ask_judge, judge)


def _ask_store(options: StoreOptions) -> None:
    from retrievers.stores.connection import Connection, held_collections

    with closing(Connection(options)) as server:
        held_collections(server)


def _ask_judge(table: JudgeOptions) -> None:
    from harness.answers.judges import chat_of

    with Cache(default_path()) as cache:
        chat_of(table, cache).model.ask(PROMPT, single_call())
