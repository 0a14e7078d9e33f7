"""A chat model that finds documents with tools."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from retrievers.agents.dialogue import Dialogue, DialogueLimits
from retrievers.agents.tool_model import (
    ToolModel,
    ToolReply,
    ToolRequest,
    reply_from_json,
)
from retrievers.agents.toolbox import Toolbox, ToolResult
from retrievers.cache import Cache
from retrievers.document import Document
from retrievers.external import known_documents, match_hit_ids
from retrievers.facts import ModelFacts, Origin, RetrieverFacts
from retrievers.identity import text_keys
from retrievers.ids import KnownDocuments
from retrievers.meter import Call, Meter, Stop, single_call
from retrievers.query import Query
from retrievers.ranking import Ranking, ranked
from retrievers.resources import Resources
from retrievers.retriever import Retriever
from retrievers.services.concurrency import completed

END_COUNTS = {
    "calls": "agent_calls_ended",
    "tokens": "agent_tokens_ended",
    "form": "agent_out_of_form",
}
"""How a dialogue ended, other than by an answer of the model's choice -> the count of
the data quality.

Those that were declined are counted by the model, as `declined`.
"""


class Agent(Retriever):
    """Lets a chat model use tools, and ranks the documents that it answers with.

    Args:
        model: the chat model.
        toolbox: its tools, whose retrievers no other retriever uses.
        limits: what ends a dialogue.
    """

    repeatable: ClassVar[bool] = False

    def __init__(
        self, model: ToolModel, toolbox: Toolbox, limits: DialogueLimits
    ) -> None:
        self.model = model
        self.toolbox = toolbox
        self.limits = limits
        self._cache: Cache | None = None
        self._trial = 1
        self._known_documents: KnownDocuments | None = None
        """The documents' ids and titles; None before `index`."""

    @property
    def facts(self) -> RetrieverFacts:
        """The model, its tools and its server."""
        return RetrieverFacts(
            model=ModelFacts(model=self.model.model),
            origin=Origin(
                tools=", ".join(self._tool_names), url=self.model.other_server
            ),
        )

    @property
    def _tool_names(self) -> list[str]:
        return [tool.name for tool in self.toolbox.definitions]

    def check(self) -> None:
        """Check that there is a key for the model, and what the tools need."""
        self.model.check()
        for retriever in self.toolbox.searches.values():
            retriever.check()

    def setup(self, resources: Resources) -> None:
        """Receive the corpus, and the cache of replies."""
        self._cache = resources.cache
        self._trial = resources.trial
        self.toolbox.setup(resources)

    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Index the retrievers that are tools, and read the ids."""
        self.toolbox.index(documents, meter)
        self._known_documents = known_documents(documents)

    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Return the documents that the model answers with for each query.

        Raises:
            BackendError: the model or a tool failed for good; OverBudget before the
                request that would cost too much.
        """
        with meter.stage("search", total=len(queries)):
            meter.count(texts=len(queries))
            dialogues = [self._dialogue(query, meter) for query in queries]
            while any(dialogue.request is not None for dialogue in dialogues):
                self._exchange(dialogues, meter)
            rankings = [_ranking(dialogue, depth) for dialogue in dialogues]
            _count_ends(rankings, meter)
        if self._known_documents is None:
            return rankings
        return match_hit_ids(rankings, self._known_documents, meter, allow_unknown=True)

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Return the model's documents for one query, without the cache.

        Their ids are the model's own, which `search` compares with the corpus.
        """
        dialogue = self._dialogue(query, meter)
        while dialogue.request is not None:
            dialogue.receive(self.model.request(dialogue.request, single_call(meter)))
        return _ranking(dialogue, depth)

    def _dialogue(self, query: Query, meter: Meter) -> Dialogue:
        def use(tool: str, arguments: str) -> ToolResult:
            return self.toolbox.use(tool, arguments, meter, query)

        return Dialogue(query.text, use, self.toolbox.definitions, self.limits)

    def _exchange(self, dialogues: Sequence[Dialogue], meter: Meter) -> None:
        """Give one reply to each dialogue that waits, from the cache or the model.

        Replies are handed on in this thread: a dialogue then uses tools, and the cache
        belongs to this thread.
        """
        name = f"{self.model.fingerprint} tools"
        if self._trial > 1:
            name = f"{name} trial {self._trial}"
        waiting = _by_request(name, dialogues)
        missing = dict.fromkeys(waiting)
        for key, reply in self._cached_replies(list(waiting)):
            del missing[key]
            meter.count(cached=1)
            waiting[key].receive(reply)
        if not missing:
            return
        self.model.check_budget(meter)

        def send(key: bytes, stopped: Stop) -> ToolReply:
            return self.model.request(waiting[key].request, Call(meter, stopped))

        for key, reply in completed(send, missing, width=self.model.max_requests):
            if self._cache is not None and not reply.declined:
                self._cache.put_text(name, key, reply.as_json(), reply.tokens)
            waiting[key].receive(reply)

    def _cached_replies(self, keys: list[bytes]) -> list[tuple[bytes, ToolReply]]:
        """Return the replies in the cache."""
        if self._cache is None:
            return []
        rows = list(self._cache.get_texts(keys))
        return [(keys[i], reply_from_json(text)) for i, text, _ in rows]


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A request, with the dialogues that wait for its reply."""

    request: ToolRequest
    dialogues: list[Dialogue]

    def receive(self, reply: ToolReply) -> None:
        """Hand the reply on."""
        for dialogue in self.dialogues:
            dialogue.receive(reply)


def _by_request(name: str, dialogues: Iterable[Dialogue]) -> dict[bytes, _Waiting]:
    """Return each distinct request, by the key of its reply in the cache."""
    waiting: dict[bytes, _Waiting] = {}
    for dialogue in dialogues:
        request = dialogue.request
        if request is not None:
            [key] = text_keys(name, "agent", [request.as_json()])
            waiting.setdefault(key, _Waiting(request, [])).dialogues.append(dialogue)
    return waiting


def _count_ends(rankings: Sequence[Ranking], meter: Meter) -> None:
    """Count the dialogues that did not end with an answer of their own."""
    for ranking in rankings:
        count = ranking.trace and END_COUNTS.get(ranking.trace.end)
        if count:
            meter.count(**{count: 1})


def _ranking(dialogue: Dialogue, depth: int) -> Ranking:
    """Return a ranking in the order of an answer, with the way to it."""
    assert dialogue.result is not None
    doc_ids = dialogue.result.doc_ids[:depth]
    scores = [float(len(doc_ids) - i) for i in range(len(doc_ids))]
    return ranked(doc_ids, scores).with_trace(dialogue.result.trace)
