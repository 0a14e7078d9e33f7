"""Reranking by a cross-encoder, which reads the query together with each of the first candidates."""

from __future__ import annotations

from collections.abc import Sequence

from retrievers.errors import InputError, Problem
from retrievers.local.forward import outputs
from retrievers.local.models import Backend, Dtype
from retrievers.local.pair_model import PairModelReranker, PairOptions
from retrievers.meter import Call
from retrievers.tokens import Tokens, folder_tokens
from retrievers.types import Pair, PairScores


class CrossEncoderReranker(PairModelReranker):
    """Orders the first `depth` candidates by a cross-encoder's raw score; the others keep their order beneath.

    Raw scores (logits), since the usual sigmoid makes ties of high ones and never changes an order.
    """

    def __init__(
        self,
        model: str,
        *,
        depth: int = 10,
        revision: str = "",
        device: str = "auto",
        dtype: Dtype = "float32",
        batch_size: int = 32,
        backend: Backend = "torch",
        trust_remote_code: bool = False,
    ) -> None:
        """Describe the model; nothing is loaded before the first pair that is not cached.

        Args:
            model: a folder, or a name of the hub, with one output.
            depth: how many candidates of each query are read again.
            revision: a commit, tag or branch of the hub; without one, what is on this machine, else the newest.
            device: as for the sentence-transformers encoder.
            dtype: numbers inside the model.
            batch_size: pairs per request.
            backend: "torch", or "onnx" (needs optimum with onnxruntime).
            trust_remote_code: run code that comes with the model.
        """
        options = PairOptions(model, depth, revision, device, dtype, batch_size, backend, trust_remote_code)
        super().__init__(options, lambda setup, place: setup.load("CrossEncoder", place))

    @property
    def fingerprint(self) -> str:
        """All that changes a score: the weights, dtype and backend."""
        return self._named("cross-encoder")

    def count(self, texts: Sequence[str]) -> Tokens:
        """Count the tokens of texts, each as one side of a pair, without loading the model."""
        return folder_tokens(self._weights.snapshot, texts)

    def score(self, pairs: Sequence[Pair], call: Call) -> PairScores:
        """Score the pairs of one request on the next free copy of the model."""
        import torch

        with self._replicas.one(len(pairs)) as model, torch.inference_mode():
            if model.num_labels != 1:
                what = f"{self._weights.model} has {model.num_labels} outputs, not one"
                raise InputError(Problem("rerank.model", what))
            read = self._replicas.read(model, pairs)
            scores = outputs(model, read.features, "scores", call.stopped).double().reshape(len(pairs)).cpu().numpy()
        call.meter.count(calls=1, tokens=int(read.tokens.sum()))
        return PairScores(scores, read.tokens, read.truncated_tokens)
