"""The hits in one answer of a service."""

import json
from typing import Any, NamedTuple

from retrievers.errors import BackendError, InputError, Problem
from retrievers.external import is_finite_number
from retrievers.ids import hit_id
from retrievers.options.placeholders import error_line
from retrievers.ranking import ranked


class ServiceHits(NamedTuple):
    """The hits in one answer, in its order, which scores may contradict."""

    ids: list[str]
    scores: list[float]

    def first_of_each(self, depth: int) -> "ServiceHits":
        """Return each document once, with its first score, at most `depth` of them.

        They are the first of `ranked`, in the order of the answer.

        >>> ServiceHits(["a", "b", "c"], [1.0, 3.0, 2.0]).first_of_each(2)
        ServiceHits(ids=['b', 'c'], scores=[3.0, 2.0])
        """
        score_by_id: dict[str, float] = {}
        for doc_id, score in zip(self.ids, self.scores, strict=True):
            score_by_id.setdefault(doc_id, score)
        scores = list(score_by_id.values())
        highest = set(ranked(list(score_by_id), scores, depth).doc_ids)
        doc_ids = [doc_id for doc_id in score_by_id if doc_id in highest]
        return ServiceHits(doc_ids, [score_by_id[doc_id] for doc_id in doc_ids])


def hits_in_order(doc_ids: list[str]) -> ServiceHits:
    """Return hits without scores of their own: their order counts.

    >>> hits_in_order(["b", "a"]).scores
    [2.0, 1.0]
    """
    count = len(doc_ids)
    return ServiceHits(doc_ids, [float(count - i) for i in range(count)])


def compile_path(key: str, path: str) -> Any:
    """Return a compiled JMESPath.

    Raises:
        InputError: it is not one.
    """
    import jmespath

    try:
        return jmespath.compile(path)
    except jmespath.exceptions.JMESPathError as error:
        reason = " ".join(str(error).split())[:120]
        problem = f"{path!r} is not JMESPath: {reason}"
        raise InputError(Problem(key, problem, "such as hits.hits[*]._id")) from None


def search_path(path: Any, answer: object, location: str) -> Any:
    """Return what a JMESPath finds; None if that is nothing.

    Raises:
        BackendError: a function of the path refuses what it is given.
    """
    try:
        return path.search(answer)
    except ValueError as error:  # of JMESPath
        raise BackendError(
            f"{location}: the answer is not as described: {error_line(str(error))}"
        ) from None


def check_ids(
    path_result: object, key: str, answer: object, location: str
) -> list[str]:
    """Return the ids that a path found.

    Args:
        path_result: what it found.
        key: the option with the path.
        answer: in which it looked.
        location: the service and the query.

    Raises:
        BackendError: it is no list of ids.
    """
    listed_ids = path_result if isinstance(path_result, list) else [None]
    doc_ids = [hit_id(id_) for id_ in listed_ids]
    valid_ids = [doc_id for doc_id in doc_ids if doc_id is not None]
    if len(valid_ids) < len(doc_ids):
        raise BackendError(
            f"{location}: `{key}` finds no list of ids in the answer: "
            f"{error_line(json.dumps(answer))}"
        )
    return valid_ids


def check_scores(
    path_result: object, key: str, count: int, location: str
) -> list[float]:
    """Return the scores that a path found, one for each hit.

    Raises:
        BackendError: it is no such list of finite numbers.
    """
    has_scores = isinstance(path_result, list) and len(path_result) == count
    if not has_scores or not all(map(is_finite_number, path_result)):  # type: ignore[call-overload]
        raise BackendError(
            f"{location}: `{key}` does not find one number for each of {count} ids"
        )
    return list(map(float, path_result))  # type: ignore[call-overload]
