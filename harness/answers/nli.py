"""A local judge: a cross-encoder trained on natural language inference reads passage and claim together."""

from collections.abc import Mapping, Sequence

from scipy import special

from harness.answers.judging import Inquiry, Replies, UnpromptedJudge
from harness.records.readings import ClaimPassage, Word
from retrievers.errors import InputError, Problem
from retrievers.meter import Meter
from retrievers.rerankers.cross_encoder import CrossEncoderReranker
from retrievers.types import Floats

THRESHOLD = 0.5
LABELS: Mapping[str, Word] = {"entailment": "entailed", "contradiction": "contradicted", "neutral": "neutral"}
"""Output names of models -> verdicts."""


class NliJudge(UnpromptedJudge):
    """A claim is entailed, or contradicted, if the model gives that at least the probability `threshold`.

    A sentence helps if the model finds that the query follows from it, for which such models were not trained.
    """

    def __init__(self, model: str, *, meter: Meter, threshold: float = THRESHOLD) -> None:
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
