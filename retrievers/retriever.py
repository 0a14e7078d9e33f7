"""The protocol of retrievers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from retrievers.document import Document
from retrievers.errors import InputError, Problem
from retrievers.meter import Meter
from retrievers.query import Query
from retrievers.ranking import Ranking


class Retriever(ABC):
    """Answers queries over an indexed corpus. Building one loads and sends nothing."""

    expands: ClassVar[bool] = False
    """As of a model."""
    own_index: ClassVar[bool] = False
    """Whether it searches an index made elsewhere, from which no document can be left out here."""

    @property
    def parts(self) -> tuple[Retriever, ...]:
        """What it uses: other retrievers, which index and search by themselves; then it has no index."""
        return ()

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps, asked for after the search; `usd_per_million_tokens` where a price is known."""
        return {}

    def check(self) -> None:
        """Look for what a run needs before it starts, such as a key; raises InputError where it is missing."""
        return

    def to_config(self) -> dict[str, Any]:
        """Its table in an experiment file, the tables of its parts in it."""
        what = f"a {type(self).__name__} does not say how it is written"
        raise InputError(Problem("retrievers", what, "give a table, with its kind"))

    def with_parts(self, parts: tuple[Retriever, ...]) -> Retriever:
        """Return a retriever like this of other parts; for what has parts."""
        return self

    def setup(self, resources: Any) -> None:
        """Take the `retrievers.resources.Resources` of a run, its cache among them; called before anything else."""
        return

    @abstractmethod
    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Take in the corpus; called once, before any search. Where no stage is opened, the time is that of "index"."""

    @abstractmethod
    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Return one ranking of at most `depth` hits per query, in the order of the queries."""

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Answer one query as a user would ask it, past every cache, as latency is measured.

        Stages opened in the meter are timed apart; without any, the whole time is that of "search".
        """
        return self.search([query], depth, meter)[0]
