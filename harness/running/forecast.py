"""The options of a run, and what it needs: which services and files are there, what models would not read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from harness.build import Built, collecting_of, in_block, missing_requirements
from harness.dataset import Dataset
from harness.english import counted, join
from harness.experiment import JudgeOptions, StoredVectors
from harness.records import StageLatency
from retrievers.cache import Cache, default_path
from retrievers.chat import Prompt
from retrievers.chunking import Chunk, document_of, in_context, pieces
from retrievers.dense import Dense
from retrievers.embedding import Embedder, Forecast, distinct_passages, windows
from retrievers.errors import BackendError, HarnessError, InputError, Problem
from retrievers.meter import Budget, Meter, single_call
from retrievers.parquet_vectors import import_vectors
from retrievers.search_endpoint import Endpoint
from retrievers.stores import StoreOptions
from retrievers.types import Document, Model, Query, Retriever, Role
from retrievers.user_objects import wrap_user_errors

Watch = Callable[[str, Meter], None]
"""Called with the retriever's name and its meter whenever something was counted; the name is "" where a stage, such as
scoring, is for all of them."""


class Options(NamedTuple):
    """How one run is made.

    >>> Options(results="out", only=("bm25",)).fresh
    False
    """

    results: Path | str = Path("results")
    """The folder under which `<name>/` is written."""
    only: tuple[str, ...] = ()
    """Retrievers to run; the others' rankings are taken from the existing folder."""
    fresh: bool = False
    """Embed this run's texts anew and replace them in the cache."""
    max_cost: float | None = None
    """Dollars."""
    code: bool = True
    """Whether the experiment may name code that is run."""
    on_message: Callable[[str], None] = lambda line: None
    """Called with each message: how many of a folder's files are not read, and where earlier results went that say
    something else."""
    watch: Watch = lambda name, meter: None

    def told_as(self, name: str) -> Options:
        """The options of one run among several, with its name before what its progress is called by."""
        return self._replace(
            watch=lambda part, meter: self.watch(
                ": ".join(filter(None, (name, part))), meter
            )
        )


@dataclass(frozen=True, slots=True)
class RunContext:
    """What all retrievers of one run share."""

    dataset: Dataset
    cache: Cache
    stores: Path
    """Where edge collections live from run to run."""
    depth: int
    budget: Budget
    watch: Watch = lambda name, meter: None

    fresh: bool = False
    """Index anew what a store holds."""
    exclude_self: bool = False
    """Keep the document with a query's id out of that query's answers."""
    sample: int = 0
    """Queries timed one at a time; 0: none."""
    latencies: Mapping[str, Mapping[str, StageLatency]] = field(default_factory=dict)
    """Retriever -> stage -> what was measured before: kept, so that a warm run loads no model."""


UNREAD = 0.05
"""Share of documents that a model may cut off before it is a warning."""


def take_over(
    vectors: StoredVectors | None, built: Iterable[Built], cache: Cache
) -> None:
    """Copy the vectors that `[vectors]` names into the cache; raises InputError where there are none."""
    if vectors is not None:
        roles: tuple[Role, ...] = ("document", "query")
        denses = [dense for one in built for dense in one.denses]
        encoders = [
            encoder for dense in denses for encoder in (dense.encoder, dense.cut.asked)
        ]
        names = {
            encoder.fingerprint_for(role)
            for encoder in encoders
            if encoder is not None
            for role in roles
        }
        import_vectors(cache, vectors.location, sorted(names))


def forecast(
    embedder: Embedder, dataset: Dataset, chunks: Chunk | None, queries: Sequence[Query]
) -> dict[Role, Forecast]:
    """Count what embedding documents and queries would take, window by window as they are embedded.

    A text that is in two windows counts in both: the figures are then a little too high.
    """
    read = in_context(
        dataset.documents(), chunks, contextual=embedder.encoder.contextual
    )
    contents = (
        (piece.text, whole) if whole and chunks else (piece.content, whole)
        for piece, whole in read
    )
    distinct = map(distinct_passages, windows(contents, embedder.encoder.form))
    parts = [embedder.forecast_passages(window, "document") for window in distinct]
    nothing = Forecast(0, 0, 0, 0, exact=True)
    texts, cached, calls, tokens, _ = (
        sum(column) for column in zip(nothing, *parts, strict=True)
    )
    whole = Forecast(
        texts, cached, calls, tokens, exact=all(one.exact for one in parts)
    )
    return {
        "document": whole,
        "query": embedder.forecast((query.text for query in queries), "query"),
    }


def check_needs(
    built: Sequence[Built], shared: RunContext, *, timed: Sequence[str] = ()
) -> None:
    """Let every part say what a run lacks, such as a key; of an encoder whose texts are all cached nothing is needed.

    Args:
        built: the retrievers that are run.
        shared: what is embedded, where vectors may be, and whether the run may not spend more than a limit, so that
            every price must be known.
        timed: those whose queries are asked past the cache.

    Raises:
        InputError: with what is missing of each.
    """
    problems: list[Problem] = []
    names = {one.name for one in built}
    for one in built:
        parts: list[Model | Retriever] = [*one.wholes, *one.rerankers]
        problems += [
            fault for part in parts for fault in missing_requirements(one.name, part)
        ]
        if shared.budget.limit is not None:
            for where, models in (
                ("encoder", [dense.encoder for dense in one.denses]),
                ("rerank", one.rerankers),
            ):
                problems += [
                    fault
                    for model in models
                    for fault in unpriced(one.name, where, model)
                ]
        for dense in one.denses:
            if dense.cut.derived_from not in names:
                problems += _lacking_of(one, dense, shared, timed=one.name in timed)
    if problems:
        raise InputError(problems)


def _lacking_of(
    one: Built, dense: Dense, shared: RunContext, *, timed: bool
) -> list[Problem]:
    """What a retriever by vectors lacks for the texts that are not cached, and for the queries that are timed."""
    problems: list[Problem] = []
    with collecting_of(problems, one.name, dense.encoder):
        if dense.chunks is not None:
            dense.chunks.check()
        if lacks := missing_requirements(one.name, dense.encoder):
            embedder, queries = (
                Embedder(dense.encoder, shared.cache),
                one.searched(shared.dataset.queries),
            )
            expected = forecast(embedder, shared.dataset, dense.chunks, queries)
            problems += (
                lacks
                if timed or any(some.cached < some.texts for some in expected.values())
                else []
            )
    return problems


def unpriced(name: str, where: str, model: Model) -> list[Problem]:
    """The problem of a model whose price is unknown, if no more than so many dollars may be spent."""
    if model.price is not None:
        return []
    called = model.provenance.get("model", "the model")
    unknown = f"the price of {called} is not known, so that --max-cost cannot be kept"
    return in_block(
        name,
        InputError(
            Problem(
                f"{where}.price", unknown, "write price = dollars for a million tokens"
            )
        ),
    )


class TruncationEstimate(NamedTuple):
    """What an encoder would not read of a sample of documents, or of their passages."""

    retriever: str
    limit: int
    """Tokens of a text that it reads."""
    beyond: int
    """Documents that it would not read to their end; of passages: any of a document's."""
    sampled: int
    """Documents that were looked at."""
    lost: int
    """Tokens that it would not read."""
    tokens: int
    """All tokens of the sample, prompts included."""
    exact: bool
    """Whether tokens were counted by the model's own tokenizer, or estimated."""
    others: tuple[str, ...] = ()
    """Retrievers that use this one, and so have read no more by it."""

    @property
    def is_much(self) -> bool:
        """Whether it is more than 5 % of the documents, which is a warning."""
        return self.beyond > UNREAD * self.sampled

    def warning(self) -> str:
        """The same in words, with what can be done."""
        about = "" if self.exact else "about "
        share = f"{about}{self.beyond:,} of {counted(self.sampled, 'document')} ({self.limit:,} tokens)"
        unread = 100 * self.lost / max(self.tokens, 1)
        left = (
            f"{about}{self.lost:,} of {counted(self.tokens, 'token')} ({unread:.0f} %)"
        )
        remedy = "add chunk, or use a model that reads more"
        use = "uses" if len(self.others) == 1 else "use"
        made = f"; {join(list(self.others))} {use} it" if self.others else ""
        return f"{self.retriever} reads only the start of {share}; {left} are not read: {remedy}{made}"


def truncation_estimates(
    built: Sequence[Built], documents: Sequence[Document]
) -> Iterator[TruncationEstimate]:
    """Yield how far each encoder would read, with what uses it; nothing is loaded or sent.

    Encoders without a limit, and those whose files are not on this machine, are left out.

    Args:
        built: the retrievers.
        documents: a sample.
    """
    known: dict[tuple[int, Chunk | None], TruncationEstimate] = {}
    parts = {one.name: one.of for one in built}

    def made_of(name: str, part: str) -> bool:
        return any(of == part or made_of(of, part) for of in parts[name])

    for one, dense in [(each, dense) for each in built for dense in each.denses]:
        if dense.cut.derived_from or not dense.encoder.at_hand or cuts_itself(dense):
            continue
        key = id(dense.encoder), dense.chunks
        if (
            key not in known
            and (limit := dense.encoder.reads) is not None
            and documents
        ):
            known[key] = _reach(one.name, dense, limit, documents)
        if key in known:
            others = tuple(
                other.name for other in built if made_of(other.name, one.name)
            )
            yield known[key]._replace(retriever=one.name, others=others)


def cuts_itself(dense: Dense) -> bool:
    """Whether the user's own function cuts the documents: `check` does not run it."""
    return dense.chunks is not None and bool(dense.chunks.call)


def _reach(
    name: str, dense: Dense, limit: int, documents: Sequence[Document]
) -> TruncationEstimate:
    parts = list(pieces(documents, dense.chunks))
    order = sorted(
        range(len(parts)), key=lambda i: (len(parts[i].content), parts[i].content)
    )  # as they are planned
    tokens = dense.encoder.lengths([parts[i].content for i in order], "document")
    beyond = {
        document_of(parts[i].id)
        for i, count in zip(order, tokens.counts.tolist(), strict=True)
        if count > limit
    }
    lost = int((tokens.counts - limit).clip(min=0).sum())
    total = int(tokens.counts.sum())
    return TruncationEstimate(
        name, limit, len(beyond), len(documents), lost, total, tokens.exact
    )


PROMPT = Prompt("Answer with one word.", "Are you there?")


def ask_services(
    built: Sequence[Built], judge: JudgeOptions | None, dataset: Dataset
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
    built: Sequence[Built], judge: JudgeOptions | None, query: Query
) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Each service once, with the first retriever that uses it, what it is, and what asks it."""
    seen: set[object] = set()
    for one in built:
        for encoder in [dense.encoder for dense in one.denses]:
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
    from harness.answers.chat_judge import chat_of

    with Cache(default_path()) as cache:
        chat_of(table, cache).model.ask(PROMPT, single_call())
