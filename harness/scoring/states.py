"""What two states of a corpus have in common.

The new one has other documents, or some in another form. `find_state_queries`
says which queries are compared, `compare_labelling` how far the hits of one retriever
have labels in each state: a grade of 0 is one.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from harness.records import Results
from harness.stats.differences import SCORE_TOLERANCE
from retrievers.types import Ranking

MAX_LABEL_GAP = 0.1 + SCORE_TOLERANCE
"""Share of labelled first hits by which one state may be less labelled."""


class StateQueries(NamedTuple):
    """The queries that are scored in both states, and why others are left out."""

    ids: tuple[str, ...]
    """Queries of equal text and history that both states score."""
    without_label_before: tuple[str, ...]
    """Queries of both states that only the new one scores."""
    without_label_after: tuple[str, ...]
    """Queries of both states that only the old one scores."""
    changed_text: tuple[str, ...]
    """Queries that both states score, with another text or history."""
    without_value: int = 0
    """How many both score, but not on the measure that decides; 0 if not known yet."""


def find_state_queries(old: Results, new: Results) -> StateQueries:
    """Return the queries that both states of a corpus score, on any measure.

    Each state's own labels score them: a query that gained a relevant document stays.
    """
    scored_before = set(old.score_columns["query_id"])
    scored_after = set(new.score_columns["query_id"])
    shared: list[str] = []
    changed_text: list[str] = []
    for query_id in new.queries:
        if query_id not in scored_before or query_id not in scored_after:
            continue
        before = old.queries[query_id].query
        after = new.queries[query_id].query
        if (before.text, before.history) == (after.text, after.history):
            shared.append(query_id)
        else:
            changed_text.append(query_id)
    ids_before = set(old.queries)
    ids_after = set(new.queries)
    return StateQueries(
        ids=tuple(shared),
        without_label_before=tuple(
            query_id
            for query_id in new.queries
            if query_id in scored_after - scored_before and query_id in ids_before
        ),
        without_label_after=tuple(
            query_id
            for query_id in old.queries
            if query_id in scored_before - scored_after and query_id in ids_after
        ),
        changed_text=tuple(changed_text),
    )


class StateLabels(NamedTuple):
    """How far the first hits of a retriever are labelled in both states."""

    judged_before: float
    """Mean share of the first hits with a label, in the old state.

    It is over queries with a hit; 1 without any.
    """
    judged_after: float
    """The same in the new state."""
    to_label: int
    """How many pairs of a query and a new document in its first hits have no label."""

    @property
    def is_new_less_labelled(self) -> bool:
        """Whether a lower score may come from missing labels of the new state.

        One new document without a label is enough.
        """
        return self.to_label > 0 or (
            self.judged_before - self.judged_after > MAX_LABEL_GAP
        )

    @property
    def is_old_less_labelled(self) -> bool:
        """Whether a higher score may come from missing labels of the old state."""
        return self.judged_after - self.judged_before > MAX_LABEL_GAP


class RankedState(NamedTuple):
    """One state of a corpus, with the retriever that searched it."""

    results: Results
    retriever: str


def compare_labelling(
    old: RankedState,
    new: RankedState,
    queries: Sequence[str],
    new_documents: AbstractSet[str],
    *,
    cutoff: int,
) -> StateLabels:
    """Return how far the first hits of the compared queries are labelled.

    Args:
        old: the earlier state.
        new: the later one.
        queries: those that are compared.
        new_documents: documents that only the later state has in this form.
        cutoff: hits that are looked at.
    """
    rankings_before = _rankings(old)
    rankings_after = _rankings(new)
    shares_before: list[float] = []
    shares_after: list[float] = []
    to_label = 0
    for query_id in queries:
        before = _top_documents(rankings_before, query_id, cutoff)
        after = _top_documents(rankings_after, query_id, cutoff)
        labelled_before = _labelled_documents(old.results, query_id)
        labelled_after = _labelled_documents(new.results, query_id)
        if before:
            shares_before.append(len(before & labelled_before) / len(before))
        if after:
            shares_after.append(len(after & labelled_after) / len(after))
        to_label += len((after & new_documents) - labelled_after)
    return StateLabels(_mean(shares_before), _mean(shares_after), to_label)


def _rankings(state: RankedState) -> dict[str, Ranking]:
    return dict(state.results.iter_rankings(state.retriever))


def _top_documents(
    rankings: Mapping[str, Ranking], query_id: str, cutoff: int
) -> frozenset[str]:
    ranking = rankings.get(query_id)
    return frozenset() if ranking is None else frozenset(ranking.doc_ids[:cutoff])


def _labelled_documents(results: Results, query_id: str) -> frozenset[str]:
    return frozenset(results.queries[query_id].labels.documents)


def _mean(shares: Sequence[float]) -> float:
    return sum(shares) / len(shares) if shares else 1.0
