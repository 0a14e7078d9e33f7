"""Google's Gemini embeddings in their own protocol, with a task for each text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from retrievers.encoders.remote_encoder import EmbeddingReply, RemoteEncoder
from retrievers.meter import Call
from retrievers.placeholders import expand
from retrievers.ragged import dense, unit_rows
from retrievers.remote.calling import readable
from retrievers.remote.clients import Access
from retrievers.types import Embedded, Role

_URL = "https://generativelanguage.googleapis.com/v1beta"
_TEXTS = 100


class GeminiEncoder(RemoteEncoder):
    """Embeds with Gemini's batchEmbedContents; vectors of fewer dimensions are brought to length 1."""

    service = "Google's server"
    kind = "gemini"
    most_texts = _TEXTS
    refuses = False

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "",
        api_key: str = "",
        query_task: str = "RETRIEVAL_QUERY",
        document_task: str = "RETRIEVAL_DOCUMENT",
        query_prompt: str = "",
        document_prompt: str = "",
        batch_size: int = _TEXTS,
        max_tokens: int = 2048,
        **options: Any,
    ) -> None:
        """Describe the model; nothing is sent.

        Args:
            model: such as gemini-embedding-001.
            base_url: another server that speaks this protocol; left out, Google's.
            api_key: "${NAME}" in an experiment; left out, GEMINI_API_KEY or GOOGLE_API_KEY for Google's own server,
                none for others.
            query_task: the task type of queries, such as QUESTION_ANSWERING; "" for a model that takes none.
            document_task: the task type of documents; "" for a model that takes none.
            query_prompt: put before every query.
            document_prompt: put before every document.
            batch_size: texts a request, at most 100.
            max_tokens: tokens that the model reads of one text; the service drops the rest without a word, so that it
                is counted from an estimate.
            options: of every remote encoder.
        """
        access = Access(
            provider="google", own=_URL, base_url=base_url, api_key=api_key, key_header="x-goog-api-key",
            variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        )  # fmt: skip
        super().__init__(
            model.removeprefix("models/"), access, batch_size, max_tokens,
            {"query": query_prompt, "document": document_prompt}, **options,
        )  # fmt: skip
        self._tasks: dict[Role, str] = {"query": query_task, "document": document_task}

    @property
    def _by_role(self) -> Mapping[str, Mapping[Role, Any]]:
        return {"tasks": self._tasks, "prompts": self._prompts}

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps."""
        return self._described(**{f"{role}_extra": f"taskType {task}" for role, task in self._tasks.items() if task})

    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Send one request; what the model did not read of long texts is estimated."""
        embedded = super().embed(texts, role, call)
        unread = np.maximum(self.count(texts, role).counts - self._limits.tokens, 0)
        vectors = embedded.vectors if self._dimensions is None else dense(unit_rows(dense(embedded.vectors)))
        return embedded._replace(vectors=vectors, truncated_tokens=np.maximum(embedded.truncated_tokens, unread))

    async def _send(self, texts: list[str], role: Role) -> EmbeddingReply:
        more: dict[str, Any] = {"taskType": self._tasks[role]} if self._tasks[role] else {}
        if self._dimensions is not None:
            more["outputDimensionality"] = self._dimensions
        model = expand(self.model).removeprefix("models/")
        requests = [{"model": f"models/{model}", "content": {"parts": [{"text": text}]}, **more} for text in texts]
        path = f"models/{quote(model, safe='')}:batchEmbedContents"
        answer = await self._client().ask(path, {"requests": requests})
        with readable(self.name, answer):
            rows = list(enumerate(row["values"] for row in answer["embeddings"]))
            return EmbeddingReply(rows, (answer.get("usageMetadata") or {}).get("promptTokenCount"))
