"""Services that are queried one query at a time, through the cache."""

import json
from abc import abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import ClassVar, NamedTuple

from retrievers.cache import Cache
from retrievers.errors import BackendError
from retrievers.external import ExternalRetriever
from retrievers.identity import text_keys
from retrievers.meter import Call, Meter, Stop, single_call
from retrievers.options.tables import PositiveInt, PositiveNumber
from retrievers.query import Query
from retrievers.ranking import Ranking, ranked
from retrievers.resources import Resources
from retrievers.service_hits import ServiceHits
from retrievers.services.concurrency import completed


class _StoredAnswer(NamedTuple):
    """The answer to one query, as it is stored."""

    at: str
    """When it was received."""
    ids: list[str]
    scores: list[float]
    has_repeated_id: bool = False
    """Whether a document was there twice; answers of earlier versions do not say."""


class AskedService(ExternalRetriever):
    """Asks a service for the hits of each query, and stores its answers in the cache.

    Answers because of which a search fails are removed from it.
    """

    expands: ClassVar[bool] = True
    repeatable: ClassVar[bool] = False
    concurrency: PositiveInt = 4
    """Requests at once."""
    timeout: PositiveNumber = 30
    """Seconds for one try, its whole answer read."""
    _cache: Cache | None = None
    _trial: int = 1
    _oldest_answer: str = ""
    """When the oldest answer of a search was received; "" before one."""

    @abstractmethod
    def _fingerprint(self, depth: int) -> str:
        """Return all that changes an answer, except the query."""

    @abstractmethod
    def _open(self) -> None:
        """Prepare what requests need; called before the first of a search."""

    @abstractmethod
    def _ask(self, query: Query, depth: int, call: Call) -> ServiceHits:
        """Return the hits of one query, from the service.

        Raises:
            BackendError: it failed for good, or its answer is not as described.
        """

    def setup(self, resources: Resources) -> None:
        """Receive the run's cache, which stores answers."""
        self._cache = resources.cache
        self._trial = resources.trial

    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Return the service's hits for each query.

        Raises:
            BackendError: it refused a request, kept failing, or its answer is not as
                described.
        """
        name = self._cache_name(depth, self._trial)
        keys = text_keys(name, "query", [query.text for query in queries])
        query_by_key = dict(zip(keys, queries, strict=True))
        distinct_keys = list(query_by_key)
        answer_by_key = self._cached_answers(distinct_keys)
        missing_keys = [key for key in distinct_keys if key not in answer_by_key]

        def send(key: bytes, stopped: Stop) -> str:
            return self._request(query_by_key[key], depth, Call(meter, stopped))

        with meter.stage("search", total=len(queries)):
            cached_count = sum(key in answer_by_key for key in keys)
            meter.count(texts=len(queries), cached=cached_count)
            if missing_keys:
                self._open()
            for key, answer in completed(send, missing_keys, width=self.concurrency):
                answer_by_key[key] = answer
                if self._cache is not None:
                    self._cache.put_text(name, key, answer)
        answers = [_StoredAnswer(**json.loads(answer_by_key[key])) for key in keys]
        self._oldest_answer = min((answer.at for answer in answers), default="")
        try:
            return self._checked_rankings(queries, answers, depth, meter)
        except BackendError:
            # The service will be corrected: its next answers are others.
            if self._cache is not None:
                self._cache.remove(distinct_keys)
            raise

    def _checked_rankings(
        self,
        queries: Sequence[Query],
        answers: Sequence[_StoredAnswer],
        depth: int,
        meter: Meter,
    ) -> list[Ranking]:
        """Return the rankings that the answers give, and note what is odd in them.

        Raises:
            BackendError: they have unknown ids, no hits, or scores that rise.
        """
        score_lists = []
        for query, answer in zip(queries, answers, strict=True):
            score_lists.append((query.id, answer.scores))
            if answer.has_repeated_id:
                meter.note("repeated-hit-query", query.id)
        self._check_first_hits(score_lists, meter)
        rankings = [ranked(answer.ids, answer.scores, depth) for answer in answers]
        return self._with_document_ids(rankings, meter)

    def _cache_name(self, depth: int, trial: int) -> str:
        """Return what answers are stored under, besides the query."""
        name = self._fingerprint(depth)
        return name if trial == 1 else f"{name} trial {trial}"

    def count_cached(
        self, texts: Sequence[str], depth: int, cache: Cache, trial: int
    ) -> int:
        """Return how many distinct queries a cache has answers to; nothing is sent."""
        keys = text_keys(self._cache_name(depth, trial), "query", texts)
        return sum(1 for _ in cache.get_texts(keys))

    def _cached_answers(self, keys: Sequence[bytes]) -> dict[bytes, str]:
        """Return the answers in the cache by key."""
        if self._cache is None:
            return {}
        return {keys[i]: answer for i, answer, _ in self._cache.get_texts(keys)}

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Return the service's hits for one query, without the cache."""
        self._open()
        answer = json.loads(self._request(query, depth, single_call(meter)))
        return ranked(answer["ids"], answer["scores"], depth)

    def _request(self, query: Query, depth: int, call: Call) -> str:
        """Return the hits of one query as the JSON text that is cached."""
        hits = self._ask(query, depth, call)
        first_hits = hits.first_of_each(depth)
        stored_answer = _StoredAnswer(
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            ids=first_hits.ids,
            scores=first_hits.scores,
            has_repeated_id=len(set(hits.ids)) < len(hits.ids),
        )
        return json.dumps(stored_answer._asdict(), ensure_ascii=False)
