"""A judge on this machine: a cross-encoder trained on natural language inference reads passage and claim together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from scipy import special

from harness.answers.judging import Inquiry, Replies, UnpromptedJudge
from harness.records import ClaimPassage, Word
from retrievers.errors import InputError, Problem
from retrievers.local.forward import Dtype, Replicas, Setup, outputs
from retrievers.local.model_files import Weights
from retrievers.meter import Meter
from retrievers.types import Floats

THRESHOLD = 0.5
LABELS: Mapping[str, Word] = {"entailment": "entailed", "contradiction": "contradicted", "neutral": "neutral"}
"""What models call their outputs -> our verdicts."""


class NliJudge(UnpromptedJudge):
    """Calls a claim entailed, or contradicted, where the model gives that at least the probability `threshold`.

    A sentence helps with a question where the model takes the question to follow from it, which such models were not
    trained for.
    """

    def __init__(
        self,
        model: str,
        *,
        meter: Meter,
        threshold: float = THRESHOLD,
        revision: str = "",
        device: str = "auto",
        dtype: Dtype = "float32",
        batch_size: int = 32,
        trust_remote_code: bool = False,
    ) -> None:
        """Describe the model; nothing is loaded before the first pair.

        Args:
            model: a folder, or a name of the hub, with the outputs entailment, neutral and contradiction.
            meter: where counts go: texts, calls, tokens, lost_tokens.
            threshold: the least probability, above 0 and at most 1.
            revision: a commit, tag or branch of the hub.
            device: as for the sentence-transformers encoder.
            dtype: numbers inside the model.
            batch_size: pairs a pass.
            trust_remote_code: run code that comes with the model.
        """
        super().__init__(threshold)
        self._meter = meter
        self._weights = Weights(model, revision)
        self._size = batch_size
        setup = Setup(self._weights, dtype, "torch", trust_remote_code)
        self._replicas = Replicas(setup, device, partial(setup.load, "CrossEncoder"))

    @property
    def name(self) -> str:
        """The model, its weights and the threshold."""
        return f"nli {self._weights.name} {self._weights.revision[:12]} {self.threshold:g}"

    def verdicts(self, pairs: Sequence[ClaimPassage]) -> Replies[Word]:
        """The verdict on each pair, pairs of like length together."""
        order = sorted(range(len(pairs)), key=lambda i: (len(pairs[i].text) + len(pairs[i].claim), pairs[i]))
        for start in range(0, len(order), self._size):
            places = order[start : start + self._size]
            yield from zip(places, self._read([(pairs[i].text, pairs[i].claim) for i in places]), strict=True)

    def helps(self, asked: Sequence[Inquiry]) -> Replies[bool]:
        """Whether the model takes each question to follow from its sentence."""
        for place, word in self.verdicts([ClaimPassage(one.question, one.text) for one in asked]):
            yield place, word == "entailed"

    def _read(self, pairs: Sequence[tuple[str, str]]) -> list[Word]:
        import torch

        with self._replicas.one(len(pairs)) as model, torch.inference_mode():
            words = _words(model, self._weights.model)
            read = self._replicas.read(model, pairs)
            logits = outputs(model, read.features, "scores").double().reshape(len(pairs), -1).cpu().numpy()
        self._meter.count(
            texts=len(pairs), calls=1, tokens=int(read.tokens.sum()), lost_tokens=int(read.truncated_tokens.sum())
        )  # fmt: skip
        return [self._verdict(row, words) for row in special.softmax(logits, axis=1)]

    def _verdict(self, row: Floats, words: Sequence[Word]) -> Word:
        likely, word = max((float(row[i]), word) for i, word in enumerate(words) if word != "neutral")
        return word if likely >= self.threshold else "neutral"


def _words(model: Any, name: str) -> list[Word]:
    """What each output of the model means, by the names in its configuration."""
    named = getattr(model.config, "id2label", None) or {}
    meanings = [LABELS.get(str(named[place]).lower()) for place in sorted(named)]
    words = [word for word in meanings if word is not None]
    if sorted(words) != sorted(LABELS.values()) or len(meanings) != len(words):
        remedy = 'use a model for natural language inference, for example "cross-encoder/nli-deberta-v3-small"'
        labels = ", ".join(map(str, named.values()))
        what = f"{name} has the outputs {labels}, not entailment, neutral and contradiction"
        raise InputError(Problem("judge.model", what, remedy))
    return words
