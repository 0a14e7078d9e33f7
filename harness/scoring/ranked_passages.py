"""Passages of rankings, as measures read them."""

from collections.abc import Sequence

from harness.english import possessive
from harness.measures import Measure
from harness.measures.score import RankedPassages
from harness.scoring.scores import RankedIds, Rankings, ranked_ids
from retrievers.errors import InputError, Problem
from retrievers.types import Passage


def passages_of_rankings(
    measures: Sequence[Measure], retriever: str, rankings: Rankings
) -> RankedPassages | None:
    """Return the passages of each query; None if no measure reads them.

    Args:
        measures: the measures to compute.
        retriever: its name, for the message.
        rankings: query id -> ranking.

    Raises:
        InputError: a measure reads passages, and the rankings have none.
    """
    reading = [measure for measure in measures if measure.uses_passages]
    if not reading:
        return None
    passages: dict[str, Sequence[Passage]] = {}
    for query_id, ranking in rankings.items():
        if ranking.passages is None and len(ranking):
            problem = f"{possessive(retriever)} rankings keep no passages"
            remedy = "name the measure in the experiment, and run it again"
            raise InputError(Problem(f"measure {str(reading[0])!r}", problem, remedy))
        passages[query_id] = ranking.passages or ()
    return passages


def compared_ids(measure: Measure, rankings: Rankings) -> RankedIds:
    """Return what two rankings must have in common to be the same for a measure.

    These are documents, or places of passages, best first.
    """
    if not measure.uses_passages:
        return ranked_ids(rankings)
    places: dict[str, list[str]] = {}
    for query_id, ranking in rankings.items():
        spans = [passage.span for passage in ranking.passages or ()]
        places[query_id] = [" ".join(map(str, span)) for span in spans]
    return places
