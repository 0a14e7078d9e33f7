"""A retriever ready to answer.

A run asks it about its parts, which may be retrievers of the experiment themselves:
their costs and their trials are their own.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.experiment.class_options import PartConfig
from retrievers.agents.agent import Agent
from retrievers.conditions import Condition
from retrievers.dense import Dense
from retrievers.filtered import Filtered
from retrievers.reranked import Reranked
from retrievers.types import Query, Reranker, Retriever

PLACEHOLDER = re.compile(r"\{history\}|\{query\}")
"""What a text of `conversation` has in place of a query's own texts."""


@dataclass(frozen=True, slots=True)
class BuiltRetriever:
    """One retriever of an experiment, ready to search."""

    name: str
    retriever: Retriever
    uses: tuple[str, ...] = ()
    """The retrievers of the experiment that it uses; if one fails, it fails."""
    part_names: Mapping[int, str] = field(default_factory=dict)
    """`id` of a part -> its name, of the parts that are retrievers of the experiment.

    They bear their own costs.
    """
    conditions: tuple[Condition, ...] = ()
    """What its filter requires of documents."""
    model_configs: Mapping[int, PartConfig] = field(default_factory=dict)
    """`id` of an encoder or a reranker -> its table.

    Plans find the speed of a model in earlier runs by it.
    """
    conversation: str = "last"
    """What it searches with where a query has a history.

    The query alone ("last"), all that was said ("all"), or a text with {history} and
    {query}.
    """
    min_score: float | None = None
    """Hits with a lower score are dropped; None: no hits are."""
    trials: int = 1
    """How often it answers all queries: at least as often as any of its parts."""

    def conversation_queries(self, queries: Sequence[Query]) -> list[Query]:
        """Return the queries as it searches with them: alone, or with their history."""
        form = "{history}\n{query}" if self.conversation == "all" else self.conversation
        if form == "last":
            return list(queries)
        return [_with_history(query, form) for query in queries]

    @property
    def is_repeatable(self) -> bool:
        """Whether it gives the same answer each time, if its parts with a name do."""
        return all(without_filter(part).repeatable for part in self.own_parts)

    @property
    def own_parts(self) -> tuple[Retriever, ...]:
        """Its parts without a name of their own, at any depth, then the retriever."""
        return tuple(self._walk_parts(self.retriever))

    def _walk_parts(self, retriever: Retriever) -> Iterator[Retriever]:
        for part in retriever.parts:
            if id(part) not in self.part_names:
                yield from self._walk_parts(part)
        yield retriever

    @property
    def dense_parts(self) -> list[Dense]:
        """Its parts that search by vectors."""
        return [part for part in self.own_parts if isinstance(part, Dense)]

    @property
    def rerankers(self) -> list[Reranker]:
        """The rerankers of its parts."""
        return [part.reranker for part in self.own_parts if isinstance(part, Reranked)]

    @property
    def agents(self) -> list[Agent]:
        """Its parts that are chat models with tools."""
        return [part for part in self.own_parts if isinstance(part, Agent)]

    @property
    def other_retrievers(self) -> list[Retriever]:
        """Its parts that search without vectors, such as BM25 or an endpoint."""
        return [
            part
            for part in self.own_parts
            if not part.parts and not isinstance(part, Dense)
        ]

    @property
    def components(self) -> list[object]:
        """The objects whose code may fail while it answers."""
        components: list[object] = []
        for dense in self.dense_parts:
            components += [dense.encoder, dense.reduction.native_encoder]
        components += [without_filter(part) for part in self.own_parts]
        components += self.rerankers
        return components


def _with_history(query: Query, form: str) -> Query:
    if not query.history:
        return query
    texts = {"{history}": "\n".join(query.history), "{query}": query.text}
    # In one pass: a history may have the word {query} in its own texts.
    text = PLACEHOLDER.sub(lambda match: texts[match[0]], form)
    return replace(query, text=text)


def may_vary(retriever: Retriever) -> bool:
    """Whether a retriever, or any part of it, may answer differently each time."""
    unfiltered = without_filter(retriever)
    return not unfiltered.repeatable or any(map(may_vary, unfiltered.parts))


def without_filter(retriever: Retriever) -> Retriever:
    """The retriever behind a filter; the retriever itself if it has none."""
    return retriever.retriever if isinstance(retriever, Filtered) else retriever
