"""A part of a retriever that has answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from retrievers.meter import Meter
from retrievers.types import Query, Ranking, Retriever, RetrieverFacts


@dataclass(frozen=True, slots=True)
class StageResult:
    """The answers of a retriever to all queries."""

    answers: Mapping[str, Ranking]
    """Query id -> ranking."""
    facts: RetrieverFacts = field(default_factory=RetrieverFacts)
    """Models, store, kind of search, dimensions, bytes, for the manifest."""
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Kind of a note -> ids of documents or queries."""
    per_query: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Stage that every query passes -> its counts."""


class ReplayedRetriever(Retriever):
    """A part that repeats its stored answers; only its time is measured again.

    Args:
        part: the part.
        result: its answers.
        named: whether it is a retriever of the experiment, which reports its own costs,
            times and models.
    """

    def __init__(self, part: Retriever, result: StageResult, *, named: bool) -> None:
        self._part = part
        self._result = result
        self._named = named

    @property
    def facts(self) -> RetrieverFacts:
        """The facts of the stored answers; empty if the part reports them itself."""
        return RetrieverFacts() if self._named else self._result.facts

    def index(self, documents: object, meter: Meter) -> None:
        """Do nothing: it has answered."""

    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Return the answers that it gave."""
        return [self._result.answers[query.id] for query in queries]

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Return the answer that it gave, after a new search if its time counts here.

        The time of a `named` part is measured where that part is timed.
        """
        if not self._named:
            with meter.stage_by_default("search"):
                self._part.answer(query, depth, meter)
        return self._result.answers[query.id]


def replay_costs(result: StageResult, meter: Meter) -> StageResult:
    """Count and note the answers of an equal retriever, and return them.

    Their texts count as cached, and nothing as spent.
    """
    for kind, ids in result.notes.items():
        for noted_id in ids:
            meter.note(kind, noted_id)
    for stage, counts in result.per_query.items():
        texts = counts.get("texts", 0)
        tokens = counts.get("tokens", 0) + counts.get("cached_tokens", 0)
        with meter.stage(stage):
            meter.count(texts=texts, cached=texts)
            if tokens:
                meter.count(cached_tokens=tokens)
    return result
