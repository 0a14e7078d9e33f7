"""Judges that are no chat models.

They work on this machine: one compares words, one is a model of natural language
inference. Neither splits texts into claims as a reader would: a claim is a sentence.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from scipy import special

from harness.answers.judge import (
    GeneratedQuestions,
    IndexedReply,
    Inquiry,
    JudgeReplies,
)
from harness.answers.text_tokens import split_sentences
from harness.records.judge_readings import ClaimPassage, EntailmentWord
from retrievers.errors import InputError, Problem
from retrievers.meter import Meter
from retrievers.rerankers.local_rerankers import CrossEncoderReranker
from retrievers.texts.word_tokens import TOKENIZATION_RULE, tokenize
from retrievers.types import Floats

LEXICAL_THRESHOLD = 0.8
"""The share of a claim's distinct tokens that a passage must contain."""
HELPFUL_SHARE = 0.5
"""The share of a query's distinct tokens that a helpful sentence contains."""


class UnpromptedJudge:
    """The base of judges that are not chat models.

    A text's claims are its sentences; there are no ratings and no questions.
    """

    prompts_digest = ""
    unreadable_example = ""

    def __init__(self, threshold: float) -> None:
        """Check the threshold of entailment, above 0 and at most 1."""
        if not 0 < threshold <= 1:
            raise InputError(
                Problem("judge.threshold", f"{threshold} is not above 0 and at most 1")
            )
        self.threshold = threshold

    def claims(self, texts: Sequence[str]) -> JudgeReplies[tuple[str, ...]]:
        """The sentences of each text."""
        for index, text in enumerate(texts):
            yield IndexedReply(index, tuple(split_sentences(text)))

    def relevance(
        self, inquiries: Sequence[Inquiry]
    ) -> JudgeReplies[tuple[int | None, ...]]:
        """No ratings."""
        return iter(())

    def questions(self, texts: Sequence[str]) -> JudgeReplies[GeneratedQuestions]:
        """No questions."""
        return iter(())


class LexicalJudge(UnpromptedJudge):
    """Compares words.

    A claim is entailed if the passage has at least `threshold` of its distinct BM25
    tokens, else neutral. A sentence helps if it has at least half of the query's.
    """

    def __init__(self, *, threshold: float = LEXICAL_THRESHOLD) -> None:
        """Use a share of tokens, above 0 and at most 1."""
        super().__init__(threshold)
        self.name = f"lexical {TOKENIZATION_RULE} {threshold:g}"

    def verdicts(self, pairs: Sequence[ClaimPassage]) -> JudgeReplies[EntailmentWord]:
        """Entailed or neutral for each pair; a claim without a token has no verdict."""
        for index, pair in enumerate(pairs):
            yield IndexedReply(index, self._verdict(pair))

    def _verdict(self, pair: ClaimPassage) -> EntailmentWord | None:
        share = token_share(pair.claim, pair.text)
        if share is None:
            return None
        return "entailed" if share >= self.threshold else "neutral"

    def helps(self, inquiries: Sequence[Inquiry]) -> JudgeReplies[bool]:
        """Whether each sentence has half of its query's tokens."""
        for index, inquiry in enumerate(inquiries):
            share = token_share(inquiry.question, inquiry.text)
            is_helpful = None if share is None else share >= HELPFUL_SHARE
            yield IndexedReply(index, is_helpful)


def token_share(claim: str, passage: str) -> float | None:
    """The share of a claim's distinct tokens in a passage.

    None for a claim without a token.

    >>> passage = "It asks whether the fee of 300 yen is paid in advance."
    >>> token_share("the fee is monthly", passage)
    0.75
    """
    claim_tokens = _tokens(claim)
    if not claim_tokens:
        return None
    return len(claim_tokens & _tokens(passage)) / len(claim_tokens)


@lru_cache(maxsize=1 << 14)
def _tokens(text: str) -> frozenset[str]:
    return frozenset(tokenize(text))


NLI_THRESHOLD = 0.5
"""Least probability of a verdict other than neutral: more likely than not."""
NLI_VERDICTS: Mapping[str, EntailmentWord] = {
    "entailment": "entailed",
    "contradiction": "contradicted",
    "neutral": "neutral",
}
"""Output names of models -> verdicts."""


class NliJudge(UnpromptedJudge):
    """A model for natural language inference gives the verdicts.

    A claim is entailed, or contradicted (the likelier of the two), if the model gives
    that at least the probability `threshold`. A sentence helps if the model finds that
    the query follows from it, for which such models were not trained.
    """

    def __init__(
        self, model: str, *, meter: Meter, threshold: float = NLI_THRESHOLD
    ) -> None:
        """Configure the model, which is loaded for the first pair.

        Args:
            model: a folder, or a name of the hub, with the outputs entailment, neutral
                and contradiction.
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

    def verdicts(self, pairs: Sequence[ClaimPassage]) -> JudgeReplies[EntailmentWord]:
        """The verdict on each pair; pairs of similar length are batched."""
        order = sorted(range(len(pairs)), key=lambda i: _by_length(pairs[i]))
        size = self._model.request_size
        for start in range(0, len(order), size):
            indices = order[start : start + size]
            verdicts = self._judge([pairs[i] for i in indices])
            for index, verdict in zip(indices, verdicts, strict=True):
                yield IndexedReply(index, verdict)

    def helps(self, inquiries: Sequence[Inquiry]) -> JudgeReplies[bool]:
        """Whether each query follows from its sentence according to the model."""
        pairs = [ClaimPassage(inquiry.question, inquiry.text) for inquiry in inquiries]
        for index, verdict in self.verdicts(pairs):
            yield IndexedReply(index, verdict == "entailed")

    def _judge(self, pairs: Sequence[ClaimPassage]) -> list[EntailmentWord]:
        words = _output_words(self._model.labels, self._model.weights.model)
        logits, tokens = self._model.logits([(pair.text, pair.claim) for pair in pairs])
        self._meter.count(
            texts=len(pairs),
            calls=1,
            tokens=int(tokens.read.sum()),
            lost_tokens=int(tokens.truncated.sum()),
        )
        return [self._verdict(row, words) for row in special.softmax(logits, axis=1)]

    def _verdict(
        self, probabilities: Floats, words: Sequence[EntailmentWord]
    ) -> EntailmentWord:
        probability, word = max(
            (float(probabilities[i]), word)
            for i, word in enumerate(words)
            if word != "neutral"
        )
        return word if probability >= self.threshold else "neutral"


def _by_length(pair: ClaimPassage) -> tuple[int, ClaimPassage]:
    """Return the sort key of a pair: its characters; of equal ones, its texts."""
    return len(pair.text) + len(pair.claim), pair


def _output_words(
    output_names: Mapping[int, str], model_name: str
) -> list[EntailmentWord]:
    """The verdict of each output of the model, by the names in its configuration."""
    meanings = [
        NLI_VERDICTS.get(str(output_names[index]).lower())
        for index in sorted(output_names)
    ]
    words = [word for word in meanings if word is not None]
    if sorted(words) != sorted(NLI_VERDICTS.values()) or len(meanings) != len(words):
        outputs = ", ".join(map(str, output_names.values()))
        problem = (
            f"{model_name} has the outputs {outputs}, "
            "not entailment, neutral and contradiction"
        )
        remedy = (
            "use a model for natural language inference, "
            'for example "cross-encoder/nli-deberta-v3-small"'
        )
        raise InputError(Problem("judge.model", problem, remedy))
    return words
