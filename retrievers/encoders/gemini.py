"""Google's Gemini embeddings."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote

import numpy as np
from pydantic import AfterValidator, Field

from retrievers.embedded import Embedded, Role
from retrievers.encoders.remote_encoder import (
    EmbeddingReply,
    EmbeddingRow,
    RemoteEncoder,
)
from retrievers.facts import Fact, ModelFacts
from retrievers.meter import Call
from retrievers.options.placeholders import expand
from retrievers.options.tables import PositiveInt
from retrievers.ragged import as_dense, unit_rows
from retrievers.services.remote_model import EndpointAccess
from retrievers.services.service_errors import explain_unreadable

_GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta"


class GeminiEncoder(RemoteEncoder):
    """Embeds with Gemini's batchEmbedContents; vectors of fewer dimensions are brought
    to length 1.
    """  # noqa: D205

    kind = "gemini"
    refuses_long_texts = False

    model: Annotated[str, AfterValidator(lambda model: model.removeprefix("models/"))]
    """Such as gemini-embedding-001."""
    base_url: str = ""
    """Another server that speaks this protocol; left out, Google's."""
    api_key: str = ""
    """"${NAME}" in an experiment; left out, GEMINI_API_KEY or GOOGLE_API_KEY for
    Google's own server, none for others."""
    query_task: str = "RETRIEVAL_QUERY"
    """The task type of queries, such as QUESTION_ANSWERING; "" for a model that takes
    none."""
    document_task: str = "RETRIEVAL_DOCUMENT"
    """The task type of documents; "" for a model that takes none."""
    query_prompt: str = ""
    """Put before every query."""
    document_prompt: str = ""
    """Put before every document."""
    batch_size: Annotated[int, Field(ge=1, le=100)] = 100
    """Texts a request, at most 100."""
    max_tokens: PositiveInt = 2048
    """Tokens that the model reads of one text; the service drops the rest without a
    word, so that it is counted from an estimate."""

    def model_post_init(self, _: object) -> None:
        """Set how the model is reached; nothing is sent."""
        access = EndpointAccess(
            provider="google",
            provider_url=_GEMINI_URL,
            base_url=self.base_url,
            api_key=self.api_key,
            key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            key_header="x-goog-api-key",
        )
        self._set_access(access, self.max_tokens)

    @property
    def _tasks(self) -> Mapping[Role, str]:
        return {"query": self.query_task, "document": self.document_task}

    @property
    def _role_options(self) -> Mapping[str, Mapping[Role, Any]]:
        return {"tasks": self._tasks, "prompts": self._prompts}

    @property
    def facts(self) -> ModelFacts:
        """What the manifest records."""
        task_facts = [
            Fact(f"{role}_extra", f"taskType {task}")
            for role, task in self._tasks.items()
            if task
        ]
        return self._facts(*task_facts)

    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Send one request; unread tokens of long texts are estimated."""
        embedded = super().embed(texts, role, call)
        counts = self.count(texts, role).counts
        unread_tokens = np.maximum(counts - self._limits.tokens, 0)
        vectors = as_dense(embedded.vectors)
        if self.dimensions is not None:
            vectors = as_dense(unit_rows(vectors))
        return embedded._replace(
            vectors=vectors,
            truncated_tokens=np.maximum(embedded.truncated_tokens, unread_tokens),
        )

    async def _send(self, texts: list[str], role: Role) -> EmbeddingReply:
        model = expand(self.model).removeprefix("models/")
        requests = [self._text_request(text, model, role) for text in texts]
        path = f"models/{quote(model, safe='')}:batchEmbedContents"
        answer = await self._client().ask(path, {"requests": requests})
        with explain_unreadable(self.name, answer):
            rows = [
                EmbeddingRow(i, embedding["values"])
                for i, embedding in enumerate(answer["embeddings"])
            ]
            usage = answer.get("usageMetadata") or {}
            return EmbeddingReply(rows, usage.get("promptTokenCount"))

    def _text_request(self, text: str, model: str, role: Role) -> dict[str, Any]:
        """Return the part of a request for one text."""
        request: dict[str, Any] = {
            "model": f"models/{model}",
            "content": {"parts": [{"text": text}]},
        }
        if self._tasks[role]:
            request["taskType"] = self._tasks[role]
        return request | self._dimensions_option("outputDimensionality")
