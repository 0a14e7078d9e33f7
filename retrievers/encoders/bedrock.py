"""Embedding models of Amazon Bedrock."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import Field

from retrievers.embedded import Role
from retrievers.encoders.remote_encoder import (
    EmbeddingReply,
    EmbeddingRow,
    RemoteEncoder,
)
from retrievers.errors import BackendError, InputError, Problem
from retrievers.facts import Fact, ModelFacts
from retrievers.identity import fingerprint
from retrievers.options.placeholders import (
    error_line,
    expand,
    hide_values,
    redact_url,
    resolve_secret,
)
from retrievers.services.addresses import check_address
from retrievers.services.concurrency import in_thread
from retrievers.services.remote_model import EndpointAccess
from retrievers.services.service_errors import (
    TransientFailure,
    classify_connection_error,
    classify_response_error,
    explain_unreadable,
)
from retrievers.texts.token_estimate import Tokens, estimate_tokens

if TYPE_CHECKING:
    import boto3

_CREDENTIALS_REMEDY = "run `aws configure`, or set AWS_PROFILE"
_BILLING_HEADER = "x-amzn-bedrock-input-token-count"
"""The header of an answer with the tokens that were billed."""
_MAX_TOKEN_COUNT_DIGITS = 12
"""A longer number in the header is not a count of tokens."""


class _Family(NamedTuple):
    """What models of one make and version have in common."""

    texts: int
    """Texts of one call, at most."""
    tokens: int
    """Tokens of one text, at most."""
    characters: int
    """Characters of one text, at most; 0: no limit."""
    dimensions: tuple[int, ...]
    """The dimensions that may be set; empty if none may."""


_FAMILIES = {
    "amazon.titan-embed-text-v1": _Family(1, 8192, 50_000, ()),
    "amazon.titan-embed-g1-text": _Family(1, 8192, 50_000, ()),
    "amazon.titan-embed-text-v2": _Family(1, 8192, 50_000, (256, 512, 1024)),
    "cohere.embed-english-": _Family(96, 512, 2048, ()),
    "cohere.embed-multilingual-": _Family(96, 512, 2048, ()),
    "cohere.embed-v4": _Family(96, 128_000, 0, (256, 512, 1024, 1536)),
}
"""Part of a model's name -> its family.

From the Amazon Bedrock User Guide, model parameters."""


class _InvokedAnswer(NamedTuple):
    """The answer of one call."""

    content: Any
    billed_tokens: int | None
    """Tokens billed, by its header; None if it has no plausible number."""


class BedrockEncoder(RemoteEncoder):
    """Embeds with InvokeModel; credentials, region, profile and endpoint come by AWS's
    own chain.
    """  # noqa: D205

    kind = "bedrock"

    model: str
    """A model's or an inference profile's id."""
    region: str = ""
    """The region; left out, as AWS's chain has it."""
    profile: str = ""
    """The profile; left out, as AWS's chain has it."""
    endpoint_url: str = ""
    """The endpoint; left out, as AWS's chain has it."""
    dimensions: int | None = None
    """Titan v2: 256, 512 or 1,024; Cohere v4: 256, 512, 1,024 or 1,536."""
    normalize: bool = True
    """Titan v2 only: vectors of length 1."""
    batch_size: Annotated[int, Field(ge=1, le=96)] = 96
    """Texts a request, at most 96; Titan takes one."""
    _family: _Family

    def model_post_init(self, _: object) -> None:
        """Set how the model is reached; nothing is sent, no credentials are read.

        Raises:
            InputError: the model is unknown, lacks the dimensions, or the endpoint is
                no address.
        """
        if self.endpoint_url:
            check_address("encoder.endpoint_url", self.endpoint_url)
        self._family = _find_family(expand(self.model))
        allowed = self._family.dimensions
        if self.dimensions is not None and self.dimensions not in allowed:
            problem = f"{self.model} cannot have {self.dimensions}"
            remedy = f"it has {', '.join(map(str, allowed)) or 'only its own'}"
            raise InputError(Problem("encoder.dimensions", problem, remedy))
        self._set_access(EndpointAccess("aws"), self._family.tokens)

    @property
    def request_size(self) -> int:
        """Texts of one request, at most."""
        return min(self.batch_size, self._family.texts)

    @property
    def max_characters(self) -> int:
        """Characters of one text that the model accepts, at most; 0: no limit."""
        return self._family.characters

    @property
    def name(self) -> str:
        """The server and the model in messages."""
        return f"{redact_url(self.endpoint_url) or 'Amazon Bedrock'} ({self.model})"

    def _fingerprint_of(self, **role_options: Any) -> str:
        # Without the roles' options: it has no prompts.
        return fingerprint(
            self.kind,
            self.model,
            dimensions=self.dimensions,
            normalize=self.normalize,
            endpoint=self.endpoint_url,
        )

    @property
    def facts(self) -> ModelFacts:
        """What the manifest records."""
        region = [Fact("region", self.region)] if self.region else []
        return replace(self._facts(*region), source="bedrock")

    def check(self) -> None:
        """Check that AWS's chain has credentials and a region.

        Raises:
            InputError: one of them is missing.
        """
        import botocore.exceptions

        try:
            session = self._session()
            has_bearer_token = "AWS_BEARER_TOKEN_BEDROCK" in os.environ
            if session.get_credentials() is None and not has_bearer_token:
                raise InputError(
                    Problem("AWS credentials", "were not found", _CREDENTIALS_REMEDY)
                )
            if not session.region_name:
                problem = "is not known to AWS's chain either"
                remedy = 'region = "us-east-1"'
                raise InputError(Problem("encoder.region", problem, remedy))
        except botocore.exceptions.BotoCoreError as failure:
            raise InputError(Problem("AWS", error_line(str(failure)))) from None

    def _count_billed(self, texts: Sequence[str]) -> Tokens:
        """Return an estimate of billed tokens: Bedrock's tokenizers are not public."""
        sent_texts = [text[: self.max_characters or None] for text in texts]
        return Tokens(estimate_tokens(sent_texts), exact=False)

    async def _send(self, texts: list[str], role: Role) -> EmbeddingReply:
        """Send one request in the form of the model's family, and read its vectors."""
        is_cohere = "cohere." in expand(self.model)
        body = self._cohere_body(texts, role) if is_cohere else self._titan_body(texts)
        invoke = partial(self._invoke, self._client(), json.dumps(body))
        answer = await in_thread(invoke)
        content = answer.content
        with explain_unreadable(self.name, content):
            if not is_cohere:
                row = EmbeddingRow(0, content["embedding"])
                return EmbeddingReply([row], content.get("inputTextTokenCount"))
            embeddings = content["embeddings"]
            if isinstance(embeddings, dict):
                embeddings = embeddings["float"]
            rows = [EmbeddingRow(i, vector) for i, vector in enumerate(embeddings)]
            return EmbeddingReply(rows, answer.billed_tokens)

    def _cohere_body(self, texts: list[str], role: Role) -> dict[str, Any]:
        """Return the JSON of a request to one of Cohere's models."""
        return {
            "texts": texts,
            "input_type": f"search_{role}",
            "truncate": "NONE",
            **self._dimensions_option("output_dimension"),
        }

    def _titan_body(self, texts: list[str]) -> dict[str, Any]:
        """Return the JSON of a request to one of Amazon's models."""
        body: dict[str, Any] = {"inputText": texts[0]}
        if self._family.dimensions:
            body["normalize"] = self.normalize
        return body | self._dimensions_option("dimensions")

    def _open(self) -> Any:
        """Create the client, which leaves retries and their budget to this package."""
        from botocore.config import Config

        session = self._session()
        credentials = session.get_credentials()
        if credentials:
            for secret in (credentials.secret_key, credentials.token):
                if secret:
                    resolve_secret(secret)
        hide_values(self.endpoint_url)
        config_without_retries = Config(
            retries={"total_max_attempts": 1},
            max_pool_connections=self._limits.concurrency,
            connect_timeout=self.timeout,
            read_timeout=self.timeout,
        )
        return session.client(
            "bedrock-runtime",
            endpoint_url=expand(self.endpoint_url) or None,
            config=config_without_retries,
        )

    def _invoke(self, client: Any, body: str) -> _InvokedAnswer:
        """Call the model once, and read the whole answer.

        Raises:
            Exception: as by `RemoteEncoder._send`.
        """
        import botocore.exceptions
        from botocore.parsers import ResponseParserError

        try:
            answer = client.invoke_model(
                modelId=expand(self.model),
                body=body,
                contentType="application/json",
                accept="application/json",
            )
            text = answer["body"].read()
        except botocore.exceptions.ClientError as refused:
            metadata = refused.response["ResponseMetadata"]
            error = refused.response["Error"]
            raise classify_response_error(
                self.name,
                metadata["HTTPStatusCode"],
                json.dumps({"message": error.get("Message", "")}),
                metadata["HTTPHeaders"],
                code=error.get("Code", ""),
            ) from None
        except ResponseParserError as failure:
            raise TransientFailure(
                f"{self.name}: the response cannot be read: {error_line(str(failure))}"
            ) from None
        except (
            botocore.exceptions.HTTPClientError,
            botocore.exceptions.ConnectionError,
            botocore.exceptions.IncompleteReadError,
        ) as failure:
            raise classify_connection_error(
                self.name, client.meta.endpoint_url, failure
            ) from None
        except botocore.exceptions.BotoCoreError as failure:
            raise BackendError(f"{self.name}: {error_line(str(failure))}") from None
        with explain_unreadable(self.name, text.decode("utf-8", "replace")):
            headers = answer["ResponseMetadata"]["HTTPHeaders"]
            return _InvokedAnswer(json.loads(text), _billed_in_header(headers))

    def _session(self) -> boto3.Session:
        import boto3

        return boto3.Session(
            profile_name=expand(self.profile) or None,
            region_name=expand(self.region) or None,
        )


def _billed_in_header(headers: Mapping[str, str]) -> int | None:
    """Return the billed tokens in a header; None if it has no plausible number."""
    count = headers.get(_BILLING_HEADER, "")
    if not count.isdecimal() or len(count) > _MAX_TOKEN_COUNT_DIGITS:
        return None
    return int(count)


def _find_family(model: str) -> _Family:
    """Return the family of a model; raise InputError for an unknown model."""
    for name, family in _FAMILIES.items():
        if name in model:
            return family
    problem = f"{model!r} is not an embedding model of Bedrock's"
    raise InputError(
        Problem("encoder.model", problem, f"known: {', '.join(_FAMILIES)}…")
    )
