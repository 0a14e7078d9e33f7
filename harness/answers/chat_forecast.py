"""What a chat judge would cost.

`ForecastChat` takes the model's place in a dry run, of answers (`forecast`) as of a
run's hits (`forecast_claims`).
"""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from harness.answers.chat_prompts import CLAIMS_PROMPT
from harness.answers.declared_judge import build_judge, judge_chat
from harness.answers.judge import identity_of
from harness.answers.rankings_judge import claims_depth, judge_rankings
from harness.dataset import Dataset
from harness.experiment import JudgeConfig
from harness.measures import Measure
from harness.records.judge_readings import JudgeIdentity, JudgeReadings
from retrievers.cache import Cache
from retrievers.meter import Meter
from retrievers.services.chat import Chat, ReplyCheck, accept_any_reply
from retrievers.services.chat_model import ChatForecast, Prompt, Reply

ASSUMED_CLAIMS = 5
"""Assumed number of claims of a text, for forecasts."""


class ForecastChat(Chat):
    """Replaces a chat model for forecasts.

    It replies from the cache, records other requests, and makes claims up. If a text's
    claims are unknown, it is assumed to make five, each as long as a fifth of the text,
    so that their verdicts are counted, too.
    """

    def __init__(self, chat: Chat, *, cached: bool = True) -> None:
        """Record the requests to a chat model.

        With `cached=False` the cache counts as empty.
        """
        super().__init__(chat.model, chat.cache)
        self._cached = cached
        self._recorded: dict[Prompt, None] = {}

    def replies(
        self,
        prompts: Sequence[Prompt],
        meter: Meter,
        readable: ReplyCheck = accept_any_reply,
    ) -> Iterator[tuple[int, Reply]]:
        """Yield cached replies, and made-up claims; no other prompt gets a reply."""
        cached = dict(self.cached_replies(prompts, readable)) if self._cached else {}
        for index, prompt in enumerate(prompts):
            if index in cached:
                yield index, cached[index]
                continue
            self._recorded[prompt] = None
            if prompt.system == CLAIMS_PROMPT:
                yield index, Reply(_assumed_claims(prompt.user))

    def forecast(
        self, prompts: Sequence[Prompt] = (), readable: ReplyCheck = accept_any_reply
    ) -> ChatForecast:
        """The estimated cost of the recorded requests."""
        return self.model.forecast([*self._recorded, *prompts])


def _assumed_claims(text: str) -> str:
    length = -(-len(text) // ASSUMED_CLAIMS)
    parts = [text[i : i + length] for i in range(0, len(text), length)]
    claims = [f"{number}. {part}" for number, part in enumerate(parts)]
    return json.dumps({"claims": claims})


class ClaimsForecast(NamedTuple):
    """The forecast of a run's judging."""

    judge: JudgeIdentity
    """The judge as each of its verdicts is stored with it."""
    pairs: int
    """Number of pairs of a claim and a document."""
    requests: ChatForecast


def forecast_claims(
    table: JudgeConfig,
    dataset: Dataset,
    measures: Sequence[Measure],
    retrievers: int,
    *,
    cache: Cache,
) -> ClaimsForecast:
    """Forecast the requests of a run as if its retrievers shared no document.

    The data set's first documents are used as retrieved ones, and the cache is assumed
    to be empty.

    Args:
        table: the judge, of kind "openai".
        dataset: with claims, or references to extract them from.
        measures: of the experiment.
        retrievers: their number.
        cache: of the chat model.
    """
    depth = claims_depth(measures)
    hits = dataset.document_count
    if depth is not None:
        hits = min(depth * retrievers, hits)
    documents = {
        document.id: document.content for document in islice(dataset.documents(), hits)
    }
    queries = [
        query
        for query in dataset.queries
        if query.reference.claims or query.reference.answers
    ]
    chat = ForecastChat(judge_chat(table, cache), cached=False)
    judge = build_judge(table, cache, Meter(), chat=chat)
    with TemporaryDirectory() as folder:
        claims_by_query = judge_rankings(
            Path(folder),
            judge,
            queries,
            {query.id: documents for query in queries},
            earlier_readings=JudgeReadings(),
        )
    claim_count = sum(
        len(query_claims.claims) for query_claims in claims_by_query.values()
    )
    pairs = claim_count * len(documents)
    return ClaimsForecast(identity_of(judge), pairs, chat.forecast())
