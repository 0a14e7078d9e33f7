"""Local models, through sentence-transformers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from retrievers.errors import InputError, Problem
from retrievers.fingerprints import fingerprint
from retrievers.local.forward import outputs
from retrievers.local.models import Backend, Dtype, Replicas, Setup
from retrievers.local.weights import Weights
from retrievers.meter import Call
from retrievers.tokens import Tokens, estimate, folder_reads, folder_tokens
from retrievers.types import Embedded, Encoder, Role, runs

_E5 = re.compile(r"(multilingual-)?e5-(small|base|large)(-v2|-unsupervised)?", re.IGNORECASE)
"""Models trained with "query: " and "passage: " that do not say so in their files (Wang et al. 2022, 2024)."""


class SentenceTransformerEncoder(Encoder):
    """Embeds with a SentenceTransformer: a folder, the `offline` package, or a model of the hub.

    Nothing is loaded, and no heavy library imported, before the first `embed` (or `concurrency`).
    """

    def __init__(
        self,
        model: str,
        *,
        revision: str = "",
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        query_prompt_name: str = "",
        document_prompt_name: str = "",
        normalize: bool = True,
        truncate_dim: int | None = None,
        device: str = "auto",
        dtype: Dtype = "float32",
        batch_size: int = 32,
        backend: Backend = "torch",
        trust_remote_code: bool = False,
    ) -> None:
        """Describe the model.

        Args:
            model: a folder, or a name of the hub.
            revision: a commit, tag or branch of the hub; without one, what is on this machine, else the newest.
            query_prompt: put before every query; left out, what the model's files say, and e5's "query: ".
            document_prompt: put before every document; left out, likewise, and e5's "passage: ".
            query_prompt_name: a prompt that the model's own configuration names, for queries: "s2p_query".
            document_prompt_name: likewise, for documents.
            normalize: scale vectors to length 1.
            truncate_dim: keep so many leading dimensions (Matryoshka models).
            device: "cpu", "cuda:1", several with commas between, or "auto": every CUDA device, else the best there is.
            dtype: numbers inside the model; bfloat16 is faster on processors that have it.
            batch_size: texts per request.
            backend: "torch", or "onnx" (needs optimum with onnxruntime).
            trust_remote_code: run code that comes with the model.
        """
        for name, value in (("batch_size", batch_size), ("truncate_dim", truncate_dim)):
            if value is not None and value < 1:
                raise InputError(Problem(f"encoder.{name}", f"{value} is below 1"))
        known = ("query: ", "passage: ") if _E5.fullmatch(Path(model).name) else (None, None)
        self._defaults: dict[Role, str | None] = {"query": known[0], "document": known[1]}
        given: dict[Role, str | None] = {"query": query_prompt, "document": document_prompt}
        self._names: dict[Role, str] = {"query": query_prompt_name, "document": document_prompt_name}
        if both := [role for role in given if given[role] is not None and self._names[role]]:
            raise InputError(Problem(f"encoder.{both[0]}_prompt", "stands beside a name of one", "write one"))
        self._prompts = {role: self._defaults[role] if text is None else text for role, text in given.items()}
        self._weights = Weights(model, revision)
        if self._weights.snapshot is not None:
            for role in given:
                self._prompt(role, _own_prompts(self._weights.snapshot))  # a name that the model lacks is told now
        self._normalize = normalize
        self._truncate_dim = truncate_dim
        self._dtype: Dtype = dtype
        self._batch_size = batch_size
        self._backend: Backend = backend
        setup = Setup(self._weights, dtype, backend, trust_remote_code)
        self._replicas = Replicas(setup, device, partial(setup.load, "SentenceTransformer"))

    @property
    def fingerprint(self) -> str:
        """All that changes a vector: the weights, the prompts, normalisation, dimensions, dtype, backend."""
        return self._named(self._prompts, self._names)

    def fingerprint_for(self, role: Role) -> str:
        """All that changes a vector in this role: not the prompt of the other."""
        unnamed: dict[Role, str] = {"query": "", "document": ""}
        return self._named(self._defaults | {role: self._prompts[role]}, unnamed | {role: self._names[role]})

    def _named(self, prompts: Mapping[Role, str | None], names: Mapping[Role, str]) -> str:
        own = {"prompt_names": names} if any(names.values()) else {}
        return fingerprint(
            "sentence-transformers",
            self._weights.name,
            weights=self._weights.revision,
            prompts=prompts,
            **own,
            normalize=self._normalize,
            truncate_dim=self._truncate_dim,
            dtype=self._dtype,
            backend=self._backend,
        )

    @property
    def at_hand(self) -> bool:
        """Whether the weights are on this machine, so that the fingerprint needs no network."""
        return self._weights.at_hand

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps: the model, where its weights come from, which they are."""
        snapshot, held = self._weights.snapshot, self._weights.held
        own = dict(getattr(held, "prompts", {})) if snapshot is None else _own_prompts(snapshot)
        sent = {role: self._prompt(role, own) for role in self._prompts}
        prompts = {f"{role}_prompt": prompt for role, prompt in sent.items() if prompt is not None}
        dimensions = {} if self._truncate_dim is None else {"dimensions": str(self._truncate_dim)}
        return {**self._weights.provenance, "dtype": self._dtype, "backend": self._backend, **prompts, **dimensions}

    def count(self, texts: Sequence[str], role: Role) -> Tokens:
        """Count the tokens that the model would read, without loading it.

        Exact where the model's files are on this machine, else an estimate.
        """
        return self._tokens(texts, role, whole=False)

    @property
    def reads(self) -> int | None:
        """Tokens of one text that the model reads, as its files say; None where they are not on this machine."""
        return folder_reads(self._weights.snapshot)

    def lengths(self, texts: Sequence[str], role: Role) -> Tokens:
        """Count the tokens of whole texts, as `count` does."""
        return self._tokens(texts, role, whole=True)

    def _tokens(self, texts: Sequence[str], role: Role, *, whole: bool) -> Tokens:
        folder = self._weights.snapshot
        if folder is None:
            return Tokens(estimate([(self._prompts[role] or "") + text for text in texts]), exact=False)
        prompt = self._prompt(role, _own_prompts(folder))
        return folder_tokens(folder, [(prompt or "") + text for text in texts], whole=whole)

    @property
    def concurrency(self) -> int:
        """Requests at once: one for each device, several on a processor; loads the model."""
        return len(self._replicas)

    def batches(self, texts: Sequence[str], role: Role) -> Iterable[Sequence[int]]:
        """Split texts into runs of `batch_size`, so that texts of like length are padded together."""
        return runs(len(texts), self._batch_size)

    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Embed the texts on the next free copy of the model."""
        import torch

        with self._replicas.one(len(texts)) as model, torch.inference_mode():
            read = self._replicas.read(model, texts, self._prompt(role, model.prompts) or "")
            embeddings = outputs(model, read.features, "sentence_embedding", call.stopped)
            if self._truncate_dim is not None:
                embeddings = embeddings[:, : self._truncate_dim]
            if self._normalize:
                embeddings = torch.nn.functional.normalize(embeddings, dim=1)
            vectors = embeddings.cpu().numpy()
        call.meter.count(calls=1, tokens=int(read.tokens.sum()))
        return Embedded(vectors, read.tokens, read.truncated_tokens)

    def _prompt(self, role: Role, own: Mapping[str, str]) -> str | None:
        """What is put before a text: as the experiment says it, or by its name, or as the model's files have it."""
        if name := self._names[role]:
            if name not in own:
                known = ", ".join(map(repr, own)) or "none"
                what = f"the model's configuration has no prompt {name!r}"
                raise InputError(Problem(f"encoder.{role}_prompt_name", what, f"it has {known}"))
            return own[name]
        return _prompt_of(own, role) if self._prompts[role] is None else self._prompts[role]


def _own_prompts(folder: Path) -> dict[str, str]:
    """The prompts that a model's files name."""
    file = folder / "config_sentence_transformers.json"
    settings = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return dict(settings.get("prompts") or {})


def _prompt_of(prompts: Mapping[str, str], role: Role) -> str | None:
    """The prompt of a role among those that a model's files name.

    Empty ones are passed over: the library writes them for "query" and "document" where a model has "passage" alone.
    """
    names = ("query",) if role == "query" else ("document", "passage", "corpus")
    return next((prompts[name] for name in names if prompts.get(name)), None)
