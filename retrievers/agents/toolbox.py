"""The tools of an agent at work."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from retrievers.agents.grep import PatternError, grep
from retrievers.agents.tool_table import ToolDefinition, define_tools, search_tool_name
from retrievers.errors import BackendError
from retrievers.meter import Meter
from retrievers.query import Query
from retrievers.resources import Corpus, Resources
from retrievers.retriever import Retriever

READ_CHARACTERS = 8000
"""Characters of a document that are read, at most."""
_BEGINNING_CHARACTERS = 200
"""Characters of a hit that a search shows."""
_BILLED_COUNTS = ("calls", "tokens", "usd")


class ToolResult(NamedTuple):
    """What a tool returned."""

    text: str
    """The result as a text for the model."""
    hits: tuple[str, ...] = ()
    """Ids of documents, each once: best first, or in the corpus's order for grep."""


class Toolbox:
    """Retrievers, grep and read over one corpus.

    Args:
        searches: name in the experiment -> retriever, of this agent alone.
        built_in: the names of its other tools: "grep", "read".
        depth: hits of one search.
    """

    def __init__(
        self, searches: Mapping[str, Retriever], built_in: Sequence[str], depth: int
    ) -> None:
        self.searches = searches
        self._by_tool = {search_tool_name(name): name for name in searches}
        self._built_in = built_in
        self._depth = depth
        self._corpus: Corpus | None = None

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The tools as requests have them."""
        return define_tools(self._by_tool, self._built_in)

    def setup(self, resources: Resources) -> None:
        """Receive the corpus and the cache."""
        self._corpus = resources.corpus
        for retriever in self.searches.values():
            _setup_deep(retriever, resources)

    def index(self, documents: Any, meter: Meter) -> None:
        """Index each retriever that has an index once, whatever searches use it."""
        leaves: dict[int, Retriever] = {}
        for retriever in self.searches.values():
            leaves |= {id(leaf): leaf for leaf in _leaves(retriever)}
        for leaf in leaves.values():
            leaf.index(documents, meter)

    def use(self, tool: str, arguments: str, meter: Meter, query: Query) -> ToolResult:
        """Use a tool; the model's mistakes are part of the result, and no error.

        Args:
            tool: its name.
            arguments: JSON, unless the model made a mistake.
            meter: receives what the tool costs.
            query: the query that the model answers; filters may read its fields.

        Raises:
            BackendError: a retriever failed for good.
        """
        try:
            parsed = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            return ToolResult("error: the arguments are not JSON")
        if not isinstance(parsed, dict):
            return ToolResult("error: the arguments are no JSON object")
        if tool in self._by_tool:
            retriever = self.searches[self._by_tool[tool]]
            return self._search(retriever, parsed.get("query"), query, meter)
        if tool == "grep" and "grep" in self._built_in:
            return self._grep(parsed.get("pattern"))
        if tool == "read" and "read" in self._built_in:
            return self._read(parsed.get("doc_id"))
        return ToolResult(f"error: there is no tool {tool!r}")

    def _search(
        self, retriever: Retriever, text: object, query: Query, meter: Meter
    ) -> ToolResult:
        if not isinstance(text, str) or not text.strip():
            return ToolResult("error: query is a text")
        tool_query = Query("agent", text, query.fields)
        tool_meter = Meter(meter.budget)
        try:
            [ranking] = retriever.search([tool_query], self._depth, tool_meter)
        finally:
            _bill(tool_meter, meter)
        beginnings = [self._beginning(doc_id) for doc_id in ranking.doc_ids]
        return ToolResult("\n".join(beginnings) or "no hits", ranking.doc_ids)

    def _beginning(self, doc_id: str) -> str:
        text = " ".join((self._content(doc_id) or "").split())
        return f"{doc_id}: {text[:_BEGINNING_CHARACTERS]}"

    def _grep(self, pattern: object) -> ToolResult:
        if not isinstance(pattern, str) or not pattern:
            return ToolResult("error: pattern is a text")
        try:
            lines = grep(self._opened_corpus, pattern)
        except PatternError as error:
            return ToolResult(f"error: {error}")
        hits = dict.fromkeys(line.document for line in lines)
        return ToolResult("\n".join(map(str, lines)) or "no lines", tuple(hits))

    def _read(self, doc_id: object) -> ToolResult:
        text = self._content(str(doc_id))
        if text is None:
            return ToolResult(f"error: there is no document {doc_id!r}")
        hits = (str(doc_id),)
        if len(text) > READ_CHARACTERS:
            text = f"{text[:READ_CHARACTERS]}\n(cut: {len(text):,} characters)"
        return ToolResult(text or "(no text)", hits)

    def _content(self, doc_id: str) -> str | None:
        """Return a document's title and text; None if there is no such document."""
        corpus = self._opened_corpus
        try:
            return corpus.contents([doc_id])[doc_id].content
        except BackendError:
            return None

    @property
    def _opened_corpus(self) -> Corpus:
        if self._corpus is None:
            raise BackendError("an agent searches in a run")
        return self._corpus


def _leaves(retriever: Retriever) -> Iterator[Retriever]:
    """Yield the parts that index: those without parts of their own."""
    if not retriever.parts:
        yield retriever
    for part in retriever.parts:
        yield from _leaves(part)


def _setup_deep(retriever: Retriever, resources: Resources) -> None:
    """Set up a retriever after its parts."""
    for part in retriever.parts:
        _setup_deep(part, resources)
    retriever.setup(resources)


def _bill(tool_meter: Meter, meter: Meter) -> None:
    """Add what a tool cost to the agent's own costs, without its other counts."""
    for totals in tool_meter.stages().values():
        billed = {
            name: number
            for name, number in totals.counts.items()
            if name in _BILLED_COUNTS
        }
        if billed:
            meter.count(**billed)
