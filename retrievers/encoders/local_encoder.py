"""An encoder on this machine."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from retrievers.embedded import Embedded, Role
from retrievers.facts import Fact, ModelFacts
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
    """An encoder with a local model.

    A kind adds the options of the library's call, and how vectors follow from its rows.
    """

    query_prompt: str | None = None
    """Put before every query; left out, what the model's files say."""
    document_prompt: str | None = None
    """Put before every document; left out, likewise."""

    @property
    def _prompts(self) -> Mapping[Role, str | None]:
        """The experiment's prompts."""
        return {
            "query": expand(self.query_prompt),
            "document": expand(self.document_prompt),
        }

    @property
    def _kind_options(self) -> Mapping[str, object]:
        """Options of the kind that change a vector."""
        return {}

    @property
    def fingerprint(self) -> str:
        """All that changes a vector: weights, prompts, options of the kind, backend."""
        return self._fingerprint_of(prompts=self._prompts, **self._kind_options)

    @property
    def facts(self) -> ModelFacts:
        """What the manifest records: the model, its weights' source, its prompts."""
        facts = super().facts
        prompts = [
            Fact(f"{role}_prompt", prompt)
            for role, prompt in self._recorded_prompts().items()
            if prompt is not None
        ]
        options = [
            Fact(name, str(option))
            for name, option in self._kind_options.items()
            if option is not None
        ]
        return replace(facts, settings=(*facts.settings, *prompts, *options))

    @property
    def token_limit(self) -> int | None:
        """Tokens of a document that the model reads, by its files.

        None if it reads all, or the limit is unknown.
        """
        folder = self.weights.snapshot
        if folder is None:
            return None
        limit = reading_of_role(folder, "document").limit
        return limit if limit < UNLIMITED_TOKENS else None

    def count(self, texts: Sequence[str], role: Role) -> Tokens:
        """Return the tokens that the model would read, without loading it.

        They are estimated if its files are not on this machine, or do not show how it
        reads.
        """
        return count_role_tokens(
            self.weights.snapshot, role, self._with_known_prompts(texts, role)
        )

    def count_whole(self, texts: Sequence[str], role: Role) -> Tokens:
        """Return the tokens of whole texts, also beyond the limit; else as `count`."""
        return count_role_tokens(
            self.weights.snapshot,
            role,
            self._with_known_prompts(texts, role),
            whole=True,
        )

    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Embed the texts of one request."""
        model = self._loaded.model
        prompt = self._prompt(role, model.prompts) or ""
        tokens = self._count_read([prompt + text for text in texts], role)
        encode = self._encode_function(model, role, prompt)
        rows = self._run(texts, tokens.read, encode, call.stopped)
        call.meter.count(calls=1, tokens=int(tokens.read.sum()))
        return Embedded(self._vectors(rows), tokens.read, tokens.truncated)

    def _encode_function(
        self, model: Any, role: Role, prompt: str
    ) -> Callable[..., Any]:
        """Return the library's function that embeds texts of a role."""
        encode = model.encode_query if role == "query" else model.encode_document
        encode = partial(encode, prompt=prompt, show_progress_bar=False)
        return self._with_options(encode, model)

    def _warm_up(self, model: Any) -> None:
        roles: tuple[Role, ...] = ("query", "document")
        for role in roles:
            self._encode_function(model, role, "")(["a"], batch_size=1)

    @abstractmethod
    def _with_options(
        self, encode: Callable[..., Any], model: Any
    ) -> Callable[..., Any]:
        """Return the library's function with the options of the kind."""

    @abstractmethod
    def _vectors(self, rows: Sequence[Any]) -> AnyVectors:
        """Return the vectors of a request, from the library's row for each text."""

    def _recorded_prompts(self) -> Mapping[Role, str | None]:
        """Return the prompts for the manifest: the experiment's."""
        return self._prompts

    def _with_known_prompts(self, texts: Sequence[str], role: Role) -> list[str]:
        """Return texts with the prompt that is known without loading the model."""
        folder = self.weights.snapshot
        prompt = self._prompts[role]
        if folder is not None:
            prompt = self._prompt(role, stored_prompts(folder))
        return [(prompt or "") + text for text in texts]

    def _prompt(
        self, role: Role, model_prompts: Mapping[str, str | None]
    ) -> str | None:
        """Return the text before a role's texts: the experiment's, else the model's.

        Empty, or None, if there is neither.
        """
        if self._prompts[role] is not None:
            return self._prompts[role]
        return prompt_of_role(model_prompts, role)
