"""Documents ranked by their best passages."""

from collections.abc import Callable

from retrievers.passage import Passage
from retrievers.ranking import Ranking, ranked, search_until_settled

PASSAGE_SEPARATOR = "\x1f"
"""Separates a document's id from its passage's number; a control character, which no
id has."""
PASSAGES_PER_DOCUMENT = 4
"""Passages that are searched for each document of a ranking, at first."""
PlacePassages = Callable[[Ranking], list[Passage] | None]
"""Finds the passages of a ranking in their documents; None if one is not there."""


def document_of_passage(passage_id: str) -> str:
    """Return the id of the document that a passage is from.

    >>> document_of_passage("d" + PASSAGE_SEPARATOR + "3"), document_of_passage("d")
    ('d', 'd')
    """
    return passage_id.rpartition(PASSAGE_SEPARATOR)[0] or passage_id


def rank_by_best_passage(
    search: Callable[[list[int], int], list[Ranking]],
    query_count: int,
    depth: int,
    place: PlacePassages,
) -> list[Ranking]:
    """Return the best `depth` documents of each query by their best passage's score.

    It searches four passages per document, then 16, 64 and so on, until that is enough
    and no further passage may tie with the last document. The best `depth` passages
    stay with the ranking.

    Args:
        search: returns the best passages of the queries at some positions, up to a
            limit.
        query_count: how many queries there are.
        depth: documents to keep.
        place: finds passages in their documents.
    """

    def rank_documents(_: int, passages: Ranking, limit: int) -> Ranking | None:
        best_scores: dict[str, float] = {}
        for passage_id, score in passages:
            best_scores.setdefault(document_of_passage(passage_id), score)
        documents = ranked(list(best_scores), list(best_scores.values()), depth)
        has_all_passages = len(passages) < limit
        is_full = len(documents) == depth
        is_settled = is_full and passages.scores[-1] < documents.scores[-1]
        if not has_all_passages and not is_settled:
            return None
        best_passages = ranked(passages.doc_ids, passages.scores, depth)
        return documents.with_passages(place(best_passages))

    limit = PASSAGES_PER_DOCUMENT * depth
    return search_until_settled(search, query_count, limit, rank_documents)
