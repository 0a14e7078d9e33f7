"""The judges of an experiment, a local one for natural language inference too; and a forecast of their requests."""

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from scipy import special

from harness.answers.chat_judge import DryRun, ModelJudge
from harness.answers.judging import (
    THRESHOLD,
    Inquiry,
    Judge,
    LexicalJudge,
    Replies,
    UnpromptedJudge,
    depth_of,
    judge_rankings,
)
from harness.dataset import Dataset
from harness.experiment import JudgeOptions
from harness.measures import Measure
from harness.records.readings import ClaimPassage, Readings, Word
from retrievers.cache import Cache
from retrievers.chat import LONGEST, Chat, ChatForecast, ChatModel
from retrievers.cross_encoder import CrossEncoderReranker
from retrievers.errors import InputError, Problem
from retrievers.meter import Meter
from retrievers.placeholders import expand
from retrievers.types import Floats

ENTAILED = 0.5
LABELS: Mapping[str, Word] = {"entailment": "entailed", "contradiction": "contradicted", "neutral": "neutral"}
"""Output names of models -> verdicts."""


class NliJudge(UnpromptedJudge):
    """A claim is entailed, or contradicted, if the model gives that at least the probability `threshold`.

    A sentence helps if the model finds that the query follows from it, for which such models were not trained.
    """

    def __init__(self, model: str, *, meter: Meter, threshold: float = ENTAILED) -> None:
        """Configure the model, which is loaded for the first pair.

        Args:
            model: a folder, or a name of the hub, with the outputs entailment, neutral and contradiction.
            meter: counts texts, calls, tokens, lost_tokens.
            threshold: the least probability, above 0 and at most 1.
        """
        super().__init__(threshold)
        self._meter = meter
        self._model = CrossEncoderReranker(model=model)

    @property
    def name(self) -> str:
        """The model, its weights and the threshold."""
        weights = self._model.weights
        return f"nli {weights.name} {weights.revision[:12]} {self.threshold:g}"

    def verdicts(self, pairs: Sequence[ClaimPassage]) -> Replies[Word]:
        """The verdict on each pair; pairs of similar length are batched."""
        order = sorted(range(len(pairs)), key=lambda i: (len(pairs[i].text) + len(pairs[i].claim), pairs[i]))
        for start in range(0, len(order), self._model.request_size):
            places = order[start : start + self._model.request_size]
            yield from zip(places, self._read([(pairs[i].text, pairs[i].claim) for i in places]), strict=True)

    def helps(self, asked: Sequence[Inquiry]) -> Replies[bool]:
        """Whether each query follows from its sentence according to the model."""
        for place, word in self.verdicts([ClaimPassage(one.question, one.text) for one in asked]):
            yield place, word == "entailed"

    def _read(self, pairs: Sequence[tuple[str, str]]) -> list[Word]:
        words = _words(self._model.labels, self._model.weights.model)
        logits, tokens = self._model.logits(pairs)
        read, lost = (int(of.sum()) for of in (tokens.read, tokens.truncated))
        self._meter.count(texts=len(pairs), calls=1, tokens=read, lost_tokens=lost)
        return [self._verdict(row, words) for row in special.softmax(logits, axis=1)]

    def _verdict(self, row: Floats, words: Sequence[Word]) -> Word:
        likely, word = max((float(row[i]), word) for i, word in enumerate(words) if word != "neutral")
        return word if likely >= self.threshold else "neutral"


def _words(named: Mapping[int, str], name: str) -> list[Word]:
    """The verdict of each output of the model, by the names in its configuration."""
    meanings = [LABELS.get(str(named[place]).lower()) for place in sorted(named)]
    words = [word for word in meanings if word is not None]
    if sorted(words) != sorted(LABELS.values()) or len(meanings) != len(words):
        remedy = 'use a model for natural language inference, for example "cross-encoder/nli-deberta-v3-small"'
        labels = ", ".join(map(str, named.values()))
        what = f"{name} has the outputs {labels}, not entailment, neutral and contradiction"
        raise InputError(Problem("judge.model", what, remedy))
    return words


def chat_of(table: JudgeOptions, cache: Cache) -> Chat:
    """The chat model that an experiment declares as judge; nothing is sent."""
    model = ChatModel(
        model=table.model, base_url=table.base_url, key_name=table.key_name, max_tokens=1000,
        concurrency=table.concurrency, rpm=table.rpm, tpm=table.tpm,
        input_price=table.input_price, output_price=table.output_price,
    )  # fmt: skip
    return Chat(model, cache)


def build_judge(table: JudgeOptions, cache: Cache, meter: Meter, *, chat: Chat | None = None) -> Judge:
    """Make a judge; no model is loaded and nothing is sent before the first request.

    Args:
        table: of the experiment.
        cache: of a chat model's replies.
        meter: counts calls and dollars.
        chat: replaces the chat model of the table.

    Raises:
        InputError: an option is invalid.
    """
    if table.kind == "lexical":
        return LexicalJudge(threshold=table.threshold or THRESHOLD)
    if table.kind == "nli":
        return NliJudge(expand(table.model), meter=meter, threshold=table.threshold or ENTAILED)
    asked = chat if chat is not None else chat_of(table, cache)
    return ModelJudge(asked, meter=meter, longest=table.longest or LONGEST)


class ClaimsForecast(NamedTuple):
    """The forecast of a run's judging."""

    judge: str
    """Its name in every verdict."""
    pairs: int
    """Claims against documents."""
    requests: ChatForecast


def forecast_claims(
    table: JudgeOptions, dataset: Dataset, measures: Sequence[Measure], retrievers: int, cache: Cache
) -> ClaimsForecast:
    """Forecast the requests to a chat model if no two retrievers found the same document.

    The data set's first documents are used as retrieved ones, and the cache is assumed to be empty.

    Args:
        table: the judge, of kind "openai".
        dataset: with claims, or references to extract them from.
        measures: of the experiment.
        retrievers: their number.
        cache: of the chat model.
    """
    depth = depth_of(measures)
    width = dataset.count if depth is None else min(depth * retrievers, dataset.count)
    stand_in = {document.id: document.content for document in islice(dataset.documents(), width)}
    asked = [query for query in dataset.queries if query.reference.claims or query.reference.answers]
    dry_run = DryRun(chat_of(table, cache), cached=False)
    judge = build_judge(table, cache, Meter(), chat=dry_run)
    with TemporaryDirectory() as place:
        claimed = judge_rankings(Path(place), judge, asked, {query.id: stand_in for query in asked}, Readings())
    pairs = sum(len(one.claims) * len(stand_in) for one in claimed.values())
    return ClaimsForecast(judge.name, pairs, dry_run.forecast())


def check_price(table: JudgeOptions, measures: Sequence[Measure], cache: Cache) -> None:
    """Refuse a dollar limit without known prices, before anything is sent.

    Raises:
        InputError: the prices of the chat model are unknown.
    """
    asked = table.kind == "openai" and any(measure.claimed for measure in measures)
    if asked and not chat_of(table, cache).model.priced:
        unknown = f"the price of {table.model} is unknown, so --max-cost cannot be checked"
        remedy = "write input_price and output_price: dollars per million tokens"
        raise InputError(Problem("[judge]", unknown, remedy))
