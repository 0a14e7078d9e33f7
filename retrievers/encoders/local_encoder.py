"""An encoder on this machine."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from retrievers.embedded import Embedded, Role
from retrievers.local.local_model import LocalModel
from retrievers.local.text_limits import (
    UNLIMITED_TOKENS,
    count_role_tokens,
    prompt_of_role,
    reading_of_role,
    stored_prompts,
)
from retrievers.meter import Call
from retrievers.model import Encoder
from retrievers.options.placeholders import expand
from retrievers.ragged import AnyVectors
from retrievers.texts.token_estimate import Tokens


class LocalEncoder(LocalModel, Encoder):
    """An encoder over a local model; a kind adds what it asks for, and what it makes of the rows that come back."""

    query_prompt: str | None = None
    """Put before every query; left out, what the model's files say."""
    document_prompt: str | None = None
    """Put before every document; left out, likewise."""

    @property
    def _prompts(self) -> Mapping[Role, str | None]:
        """What the experiment says."""
        return {
            "query": expand(self.query_prompt),
            "document": expand(self.document_prompt),
        }

    @property
    def _own(self) -> Mapping[str, object]:
        """Options of the kind that change a vector."""
        return {}

    @property
    def fingerprint(self) -> str:
        """All that changes a vector: the weights, the prompts, the options of the kind, dtype, backend."""
        return self._named(prompts=self._prompts, **self._own)

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps: the model, where its weights come from, which they are, its prompts."""
        prompts = {
            f"{role}_prompt": prompt
            for role, prompt in self._shown().items()
            if prompt is not None
        }
        own = {
            name: str(option)
            for name, option in self._own.items()
            if option is not None
        }
        return {**super().provenance, **prompts, **own}

    @property
    def token_limit(self) -> int | None:
        """Tokens of a document that the model reads, as its files say; None where it reads all, or it is not known."""
        folder = self.weights.snapshot
        limit = (
            reading_of_role(folder, "document").limit if folder else UNLIMITED_TOKENS
        )
        return limit if limit < UNLIMITED_TOKENS else None

    def count(self, texts: Sequence[str], role: Role) -> Tokens:
        """Count the tokens that the model would read, without loading it; estimated where it is not on this machine."""
        return count_role_tokens(
            self.weights.snapshot, role, self._prompted(texts, role)
        )

    def count_whole(self, texts: Sequence[str], role: Role) -> Tokens:
        """Count the tokens of whole texts, as `count` does."""
        return count_role_tokens(
            self.weights.snapshot, role, self._prompted(texts, role), whole=True
        )

    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Embed the texts of one request."""
        model = self._loaded.model
        prompt = self._prompt(role, model.prompts) or ""
        tokens = self._tokens([prompt + text for text in texts], role)
        rows = self._run(
            texts, tokens.read, self._call(model, role, prompt), call.stopped
        )
        call.meter.count(calls=1, tokens=int(tokens.read.sum()))
        return Embedded(self._vectors(rows), *tokens)

    def _call(self, model: Any, role: Role, prompt: str) -> Callable[..., Any]:
        """The library's way to embed texts of a role."""
        encode = model.encode_query if role == "query" else model.encode_document
        return partial(
            encode, prompt=prompt, show_progress_bar=False, **self._wanted(model)
        )

    def _set_up(self, model: Any) -> None:
        roles: tuple[Role, ...] = ("query", "document")
        for role in roles:
            self._call(model, role, "")(["a"], batch_size=1)

    @abstractmethod
    def _wanted(self, model: Any) -> dict[str, Any]:
        """Options of the library's call."""

    @abstractmethod
    def _vectors(self, rows: Sequence[Any]) -> AnyVectors:
        """Put the rows of a request together."""

    def _shown(self) -> Mapping[Role, str | None]:
        """The prompts that the manifest keeps: what the experiment says."""
        return self._prompts

    def _prompted(self, texts: Sequence[str], role: Role) -> list[str]:
        """The texts with what is put before them, as far as that is known without the model."""
        folder = self.weights.snapshot
        prompt = (
            self._prompts[role]
            if folder is None
            else self._prompt(role, stored_prompts(folder))
        ) or ""
        return [prompt + text for text in texts]

    def _prompt(self, role: Role, own: Mapping[str, str | None]) -> str | None:
        """What is put before a text: what the experiment says, else the model's `own`."""
        return (
            prompt_of_role(own, role)
            if self._prompts[role] is None
            else self._prompts[role]
        )
