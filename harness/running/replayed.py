"""A part that has answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from retrievers.meter import Meter
from retrievers.types import Query, Ranking, Retriever


@dataclass(frozen=True, slots=True)
class StageResult:
    """What a retriever answered to all queries."""

    answers: Mapping[str, Ranking]
    provenance: Mapping[str, str] = field(default_factory=dict)
    """What the manifest keeps: models, store, kind of search, dimensions, bytes."""
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What was noted of documents and queries, by kind."""
    per_query: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The counts of the stages that every query passes, by stage."""


class ReplayedRetriever(Retriever):
    """A part that has answered already: it gives its answers, and is asked anew only against the clock.

    Args:
        part: what answered.
        answered: its answers.
        named: whether it is a retriever of the experiment, which reports its own costs, time and models.
    """

    def __init__(self, part: Retriever, answered: StageResult, *, named: bool) -> None:
        self._part, self._answered, self._named = part, answered, named

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the part says of itself, if nothing else does."""
        return {} if self._named else self._answered.provenance

    def index(self, documents: object, meter: Meter) -> None:
        """Nothing: it has answered."""

    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Return what it answered."""
        return [self._answered.answers[query.id] for query in queries]

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Ask the part again, where its time counts; the answer is the one that it gave."""
        if not self._named:
            with meter.stage_by_default("search"):
                self._part.answer(query, depth, meter)
        return self._answered.answers[query.id]


def replay_costs(first: StageResult, meter: Meter) -> StageResult:
    """The answers of an equal retriever: what was noted holds here too, and each query costs what it cost there.

    Nothing was asked again, so that every text counts as cached and nothing as spent.
    """
    for kind, ids in first.notes.items():
        for id_ in ids:
            meter.note(kind, id_)
    for stage, counts in first.per_query.items():
        texts, tokens = (
            counts.get("texts", 0),
            counts.get("tokens", 0) + counts.get("cached_tokens", 0),
        )
        with meter.stage(stage):
            meter.count(
                texts=texts,
                cached=texts,
                **({"cached_tokens": tokens} if tokens else {}),
            )
    return first
