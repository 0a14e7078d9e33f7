"""The protocol of retrievers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from retrievers.document import Document
from retrievers.errors import BackendError, InputError, Problem
from retrievers.facts import RetrieverFacts
from retrievers.meter import Meter
from retrievers.query import Query
from retrievers.ranking import Ranking
from retrievers.stored_facts import parse_facts, stored_facts


class Retriever(ABC):
    """Ranks the documents of a corpus for queries.

    Creating a retriever sends nothing, and does not wait until a model is loaded.
    """

    expands: ClassVar[bool] = False
    """Whether it replaces `${NAME}` in its options itself, as `Model.expands`."""
    own_index: ClassVar[bool] = False
    """Whether it searches an index of another program, with documents that cannot be
    removed here."""
    repeatable: ClassVar[bool] = True
    """Whether it gives the same answer each time; if not, it may have trials."""
    default_trials: ClassVar[int] = 1
    """How often a run repeats it if the experiment does not say."""

    @property
    def answers_here(self) -> bool:
        """Whether an answer costs nothing, calls no other program and loads no model.

        Single queries are then timed without a table [latency] in the experiment. The
        parts that it uses have their own `answers_here`.
        """
        return False

    @property
    def parts(self) -> tuple[Retriever, ...]:
        """The retrievers that it uses; with parts it has no index of its own."""
        return ()

    @property
    def facts(self) -> RetrieverFacts:
        """What the manifest records; it is read after the search."""
        return RetrieverFacts()

    @property
    def provenance(self) -> Mapping[str, str]:
        """The facts as texts, under the manifest's keys.

        A class of another package may give texts under its own keys instead of `facts`.
        `usd_per_million_tokens` is a price.
        """
        return stored_facts(self.facts)

    def check(self) -> None:
        """Check the requirements of a run, such as a key, before it starts.

        Raises:
            InputError: a requirement is missing.
        """
        return

    def to_config(self) -> dict[str, Any]:
        """Return its table in an experiment file, with the tables of its parts.

        Raises:
            InputError: a class of another package does not define it.
        """
        problem = f"a {type(self).__name__} does not say how it is written"
        raise InputError(Problem("retrievers", problem, "give a table, with its kind"))

    def with_parts(self, parts: tuple[Retriever, ...]) -> Retriever:
        """Return the same retriever with other parts; itself if it has none."""
        return self

    def setup(self, resources: Any) -> None:
        """Receive the `retrievers.resources.Resources` of a run, before other calls."""
        return

    @abstractmethod
    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Read the corpus; called once, before any search.

        The documents can be read several times: parts and stages each do. If no stage
        is opened, the time counts as stage "index".
        """

    @abstractmethod
    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Return one ranking of at most `depth` hits per query, in their order."""

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Rank the documents for one query as a user would, without any cache.

        Latency is measured with it. Stages that are opened in the meter are timed
        separately; without any, the time counts as stage "search".
        """
        return self.search([query], depth, meter)[0]


def read_facts(retriever: Retriever) -> RetrieverFacts:
    """Return what the manifest records of a retriever, as it will be read back.

    Raises:
        BackendError: a class of another package gives a fact of the wrong type.
    """
    try:
        return parse_facts(retriever.provenance)
    except ValueError as error:
        raise BackendError(f"{type(retriever).__name__}.provenance: {error}") from None


def check_retriever(where: str, part: object) -> None:
    """Raise InputError if an object that was given as a retriever is none.

    Args:
        where: the option, or the argument.
        part: the object.
    """
    if not isinstance(part, Retriever):
        problem = f"{part!r:.60} is not a retriever"
        raise InputError(Problem(where, problem, "such as retrievers.BM25()"))
