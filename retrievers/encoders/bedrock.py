"""Amazon Bedrock's embedding models: Titan, one text a call, and Cohere."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn

import httpx
from pydantic import Field

from retrievers.costs import Tokens, estimate
from retrievers.errors import BackendError, InputError, Problem
from retrievers.remote.http_client import (
    AnswerPart,
    HttpClient,
    Listed,
    Refusal,
    TokenCount,
    check_address,
    without_user_part,
)
from retrievers.remote.redaction import as_written, redacted
from retrievers.remote.remote_encoder import EmbeddingReply, RemoteEncoder, rectangular
from retrievers.remote.remote_model import Access
from retrievers.retrying import TooLong, Transient, retry_after, says_too_long
from retrievers.types import Role, fingerprint

if TYPE_CHECKING:
    import boto3
    from botocore.awsrequest import AWSPreparedRequest

_THROTTLED = {"ThrottlingException", "TooManyRequestsException", "ServiceQuotaExceededException"}
_PASSING = {
    "InternalServerException",
    "ModelErrorException",
    "ModelNotReadyException",
    "ModelTimeoutException",
    "RequestTimeout",
    "RequestTimeoutException",
    "ServiceUnavailableException",
}
_REMEDIES = {
    "AccessDeniedException": "; ask for access to the model in this region, and look at the credentials' policy",
    "ExpiredTokenException": "; renew the credentials and run again: what was embedded is kept",
    "ResourceNotFoundException": "; look at the model's name and the region",
    "UnrecognizedClientException": "; the credentials are not known to AWS",
}


class _Family(NamedTuple):
    """What models of one make have in common."""

    texts: int
    """Texts a call."""
    tokens: int
    """Tokens of one text."""
    characters: int
    """Characters of one text; 0: no limit."""
    dimensions: tuple[int, ...]
    """What may be asked for; empty: nothing."""


_FAMILIES = {
    "amazon.titan-embed-text-v1": _Family(1, 8192, 50_000, ()),
    "amazon.titan-embed-g1-text": _Family(1, 8192, 50_000, ()),
    "amazon.titan-embed-text-v2": _Family(1, 8192, 50_000, (256, 512, 1024)),
    "cohere.embed-english-": _Family(96, 512, 2048, ()),
    "cohere.embed-multilingual-": _Family(96, 512, 2048, ()),
    "cohere.embed-v4": _Family(96, 128_000, 0, (256, 512, 1024, 1536)),
}
"""What a model's name contains -> its family (Amazon Bedrock User Guide, model parameters)."""


_Vector = Annotated[Listed[float], Field(min_length=1)]


class _TitanAnswer(AnswerPart):
    embedding: _Vector
    input_tokens: Annotated[TokenCount | None, Field(alias="inputTextTokenCount")] = None


class _CohereByType(AnswerPart):
    vectors: Annotated[Listed[_Vector], Field(alias="float")]


class _CohereAnswer(AnswerPart):
    embeddings: Listed[_Vector] | _CohereByType


class BedrockEncoder(RemoteEncoder):
    """Embeds with InvokeModel; credentials, region, profile and endpoint come by AWS's own chain."""

    service = "Amazon Bedrock"
    kind = "bedrock"

    def __init__(
        self,
        model: str,
        *,
        region: str = "",
        profile: str = "",
        endpoint_url: str = "",
        dimensions: int | None = None,
        normalize: bool = True,
        batch_size: int = 96,
        **options: Any,
    ) -> None:
        """Describe the model; nothing is sent, and no credentials are looked for.

        Args:
            model: a model's or an inference profile's id.
            region: left out, as AWS's chain has it.
            profile: likewise.
            endpoint_url: likewise.
            dimensions: Titan v2: 256, 512 or 1,024; Cohere v4: 256, 512, 1,024 or 1,536.
            normalize: Titan v2 only: vectors of length 1.
            batch_size: texts a request, at most 96; Titan takes one.
            options: of every remote encoder.
        """
        if endpoint_url:
            check_address("encoder.endpoint_url", endpoint_url)
        self._family = family = _family(model)
        if dimensions is not None and dimensions not in family.dimensions:
            known = ", ".join(map(str, family.dimensions)) or "only its own"
            raise InputError(Problem("encoder.dimensions", f"{model} cannot have {dimensions}", f"it has {known}"))
        super().__init__(
            model, Access(provider="aws"), min(batch_size, family.texts), family.tokens,
            dimensions=dimensions, **options,
        )  # fmt: skip
        self._region = region
        self._profile = profile
        self._endpoint = endpoint_url
        self._normalize = normalize
        self.characters = family.characters

    def _named(self, by_role: Mapping[str, Mapping[Role, Any]]) -> str:
        return fingerprint(self.kind, self.model, dimensions=self._dimensions, normalize=self._normalize,
                           endpoint=self._endpoint)  # fmt: skip

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps."""
        dimensions = {} if self._dimensions is None else {"dimensions": str(self._dimensions)}
        where = {"region": self._region} if self._region else {}
        return {"model": as_written(self.model), "source": "bedrock", **where, **dimensions}

    def check(self) -> None:
        """Look for what a run needs, before it starts: credentials and a region, by AWS's chain.

        Raises:
            InputError: something is missing.
        """
        import botocore.exceptions

        try:
            session = self._session()
            known = session.get_credentials() is not None or "AWS_BEARER_TOKEN_BEDROCK" in os.environ
            if not known:
                raise InputError(
                    Problem("AWS credentials", "were not found", "run `aws configure`, or set AWS_PROFILE")
                )
            if not session.region_name:
                raise InputError(
                    Problem("encoder.region", "is not known to AWS's chain either", 'region = "us-east-1"')
                )
        except botocore.exceptions.BotoCoreError as failure:
            raise InputError(Problem("AWS", redacted(str(failure)))) from None

    def _counted(self, texts: Sequence[str]) -> Tokens:
        """Estimate the tokens that would be billed; Bedrock's tokenizers are not public."""
        return Tokens(estimate([text[: self.characters or None] for text in texts]), exact=False)

    def _send(self, texts: list[str], role: Role) -> EmbeddingReply:
        return self._cohere(texts, role) if "cohere." in self.model else self._titan(texts)

    def _titan(self, texts: list[str]) -> EmbeddingReply:
        (text,) = texts
        body: dict[str, Any] = {"inputText": text}
        if self._family.dimensions:
            body["normalize"] = self._normalize
            if self._dimensions is not None:
                body["dimensions"] = self._dimensions
        answer, _ = self._client().exchange(partial(self._invoke, body), _TitanAnswer)
        return EmbeddingReply(rectangular([answer.embedding]), answer.input_tokens or 0)

    def _cohere(self, texts: list[str], role: Role) -> EmbeddingReply:
        body: dict[str, Any] = {"texts": texts, "input_type": f"search_{role}", "truncate": "NONE"}
        if self._dimensions is not None:
            body["output_dimension"] = self._dimensions
        answer, headers = self._client().exchange(partial(self._invoke, body), _CohereAnswer)
        embeddings = answer.embeddings
        rows = embeddings.vectors if isinstance(embeddings, _CohereByType) else embeddings
        count = headers.get("x-amzn-bedrock-input-token-count", "")
        believed = re.fullmatch(r"\d{1,12}", count, re.ASCII)  # as many as `TokenCount` allows
        return EmbeddingReply(rectangular(rows), int(count) if believed else 0)

    def _open(self) -> HttpClient:
        """Let boto3's InvokeModel, with its signature, endpoint and bearer token, be sent by the bounded transport."""
        from botocore.config import Config

        session, server = self._session(), self._server()
        once = Config(retries={"total_max_attempts": 1}, max_pool_connections=server.concurrency)
        self._bedrock = session.client("bedrock-runtime", endpoint_url=self._endpoint or None, config=once)
        known = session.get_credentials()
        secrets = tuple(filter(None, (known.secret_key, known.token))) if known else ()
        url = self._endpoint or self._bedrock.meta.endpoint_url
        client = HttpClient(replace(server, url=url, secrets=secrets), _to_exception)
        self._bedrock.meta.events.register("before-send.bedrock-runtime.InvokeModel", partial(_send, client.httpx))
        return client

    def _invoke(self, body: Mapping[str, Any]) -> httpx.Response:
        """Call the model once."""
        import botocore.exceptions

        try:
            self._bedrock.invoke_model(
                modelId=self.model, body=json.dumps(body), contentType="application/json", accept="application/json"
            )
        except _Answered as answered:
            return answered.response
        except botocore.exceptions.NoCredentialsError:
            raise BackendError("AWS credentials were not found; run `aws configure`, or set AWS_PROFILE") from None
        except botocore.exceptions.BotoCoreError as failure:
            raise BackendError(str(failure)) from None
        raise AssertionError  # boto3 sends nothing itself

    def _session(self) -> boto3.Session:
        import boto3

        return boto3.Session(profile_name=self._profile or None, region_name=self._region or None)


class _Answered(Exception):
    """What came back to a request of boto3's, which is read here: what boto3 does not expect would break it."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__()
        self.response = response


def _send(client: httpx.Client, request: AWSPreparedRequest, **_: object) -> NoReturn:
    """Send a request that boto3 has made and signed; called by it in place of sending it itself."""
    headers = {name: value if isinstance(value, str) else value.decode() for name, value in request.headers.items()}
    body: Any = request.body
    url = without_user_part(request.url)  # its user would take the place of the signature
    raise _Answered(client.request(request.method, url, content=body, headers=headers))


def _family(model: str) -> _Family:
    family = next((family for name, family in _FAMILIES.items() if name in model), None)
    if family is None:
        known = ", ".join(_FAMILIES)
        raise InputError(
            Problem("encoder.model", f"{model!r} is not an embedding model of Bedrock's", f"known: {known}…")
        )
    return family


def _to_exception(refusal: Refusal) -> Exception:
    """What a refusal of the service means for the request."""
    code = refusal.headers.get("x-amzn-errortype", refusal.code).partition(":")[0].rpartition("#")[2]
    if code == "ValidationException" and says_too_long(refusal.words):
        return TooLong(refusal.message)
    if code in _THROTTLED | _PASSING or refusal.status >= 500 or refusal.status == 429:
        wait = retry_after(refusal.headers)
        return Transient(refusal.message, retry_after=wait, throttled=code in _THROTTLED or refusal.status == 429)
    return BackendError(refusal.message + _REMEDIES.get(code, ""))
