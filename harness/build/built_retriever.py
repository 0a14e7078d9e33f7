"""A retriever ready to answer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from retrievers.conditions import Condition
from retrievers.dense import Dense
from retrievers.filtered import Filtered
from retrievers.reranked import Reranked
from retrievers.types import Query, Reranker, Retriever


@dataclass(frozen=True, slots=True)
class BuiltRetriever:
    """One retriever of an experiment, ready to be asked."""

    name: str
    retriever: Retriever
    uses: tuple[str, ...] = ()
    """The retrievers of the experiment that it uses: where one fails, it is not asked."""
    part_names: Mapping[int, str] = field(default_factory=dict)
    """Which of its parts are such retrievers, by `id`: they bear their own costs."""
    user_functions: Mapping[str, str] = field(default_factory=dict)
    """The user's functions that it calls: key -> "package.module:function"."""
    conditions: tuple[Condition, ...] = ()
    """What its filter asks of documents."""
    model_configs: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """Encoders and rerankers as they are written, by `id`: earlier runs of the same tell how fast they are."""

    conversation: str = "last"
    """What it searches with where a query has a history, as `Conversation` has it."""

    min_score: float | None = None
    """Hits with a lower score are dropped."""

    def conversation_queries(self, queries: Sequence[Query]) -> list[Query]:
        """The queries as it searches with them: alone, or with what was said before."""
        form = "{history}\n{query}" if self.conversation == "all" else self.conversation
        if form == "last":
            return list(queries)
        texts = (
            form.replace("{history}", "\n".join(one.history)).replace(
                "{query}", one.text
            )
            for one in queries
        )
        return [
            replace(one, text=text) if one.history else one
            for one, text in zip(queries, texts, strict=True)
        ]

    @property
    def own_parts(self) -> tuple[Retriever, ...]:
        """The retriever, and before it the parts that have no name of their own."""
        return tuple(self._own(self.retriever))

    def _own(self, retriever: Retriever) -> Iterator[Retriever]:
        for part in retriever.parts:
            if id(part) not in self.part_names:
                yield from self._own(part)
        yield retriever

    @property
    def dense_parts(self) -> list[Dense]:
        """What embeds for it."""
        return [one for one in self.own_parts if isinstance(one, Dense)]

    @property
    def rerankers(self) -> list[Reranker]:
        """What reads first hits again for it."""
        return [one.reranker for one in self.own_parts if isinstance(one, Reranked)]

    @property
    def other_retrievers(self) -> list[Retriever]:
        """What finds for it and is no vector search, such as BM25 or an endpoint."""
        return [
            one
            for one in self.own_parts
            if not one.parts and not isinstance(one, Dense)
        ]

    @property
    def components(self) -> list[object]:
        """Whose code may fail for it."""
        encoders = [
            one
            for dense in self.dense_parts
            for one in (dense.encoder, dense.reduction.native_encoder)
        ]
        return [*encoders, *map(without_filter, self.own_parts), *self.rerankers]


def without_filter(retriever: Retriever) -> Retriever:
    """What is asked behind a filter."""
    return retriever.retriever if isinstance(retriever, Filtered) else retriever
