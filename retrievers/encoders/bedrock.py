"""Amazon Bedrock's embedding models: Titan, one text a call, and Cohere."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from retrievers.errors import BackendError, InputError, Problem, check_positive
from retrievers.fingerprints import fingerprint
from retrievers.meter import Call
from retrievers.prices import Price, price_of
from retrievers.remote.faults import TooLong, Transient, retry_after, says_too_long
from retrievers.remote.redaction import redacted
from retrievers.remote.splitting import EmbeddingReply, EmbeddingRequests, packed, rectangular
from retrievers.tokens import Tokens, estimate
from retrievers.types import Embedded, Encoder, Limits, Role

if TYPE_CHECKING:
    import boto3

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


class BedrockEncoder(Encoder):
    """Embeds with InvokeModel; credentials, region, profile and endpoint come by AWS's own chain."""

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
        concurrency: int = 8,
        rpm: float = 0,
        tpm: float = 0,
        timeout: float = 60,
        patience: float = 300,
        price: float | None = None,
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
            concurrency: requests at once, at most; fewer while the service throttles.
            rpm: requests a minute that the account may send; 0: unknown.
            tpm: tokens a minute; 0: unknown.
            timeout: seconds for one try.
            patience: seconds after which a request that keeps failing is given up.
            price: dollars for a million tokens; left out, the list price.
        """
        check_positive("encoder", batch_size=batch_size, concurrency=concurrency, timeout=timeout)
        self._family = _family(model)
        if dimensions is not None and dimensions not in self._family.dimensions:
            known = ", ".join(map(str, self._family.dimensions)) or "only its own"
            raise InputError(Problem("encoder.dimensions", f"{model} cannot have {dimensions}", f"it has {known}"))
        self.model = model
        self._price = price_of("bedrock", model, own=price)
        self._region = region
        self._profile = profile
        self._endpoint = endpoint_url
        self._dimensions = dimensions
        self._normalize = normalize
        self._batch_size = min(batch_size, self._family.texts)
        self._timeout = timeout
        self._lock = Lock()
        self._client: Any | None = None
        self._limits = Limits(concurrency, rpm, tpm, patience, self._family.tokens, self._family.characters)
        self._requests = EmbeddingRequests(self._limits, self._price, count=estimate)

    @property
    def fingerprint(self) -> str:
        """All that changes a vector: the model, its dimensions, normalisation; an endpoint of one's own."""
        return fingerprint(
            "bedrock",
            self.model,
            dimensions=self._dimensions,
            normalize=self._normalize,
            endpoint=self._endpoint,
        )

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps."""
        dimensions = {} if self._dimensions is None else {"dimensions": str(self._dimensions)}
        where = {"region": self._region} if self._region else {}
        return {"model": self.model, "source": "bedrock", **where, **dimensions}

    @property
    def price(self) -> Price | None:
        """The experiment's price, else Amazon's list price."""
        return self._price

    @property
    def limits(self) -> Limits:
        """The declared limits of the rate, and the family's of a text's length."""
        return self._limits

    @property
    def concurrency(self) -> int:
        """Requests at once."""
        return self._limits.concurrency

    def count(self, texts: Sequence[str], role: Role) -> Tokens:
        """Estimate the tokens that would be billed; Bedrock's tokenizers are not public."""
        limit = self._family.characters
        return Tokens(estimate([text[:limit] for text in texts] if limit else texts), exact=False)

    def batches(self, texts: Sequence[str], role: Role) -> Iterator[Sequence[int]]:
        """Pack texts into requests; Titan takes one a call."""
        counts = self.count(texts, role).counts.clip(max=self._family.tokens)
        return packed(counts, size=self._batch_size, total=self._family.tokens * 96, alone=self._family.tokens)

    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Send one request; `tokens` are what the service says, shared out where it answers for several texts."""
        send = self._cohere if "cohere." in self.model else self._titan
        self._bedrock()  # before the clock of the rate runs: loading the SDK takes a while
        return self._requests.embed(texts, lambda some: send(some, role), call)

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

    def _titan(self, texts: list[str], role: Role) -> EmbeddingReply:
        (text,) = texts
        body: dict[str, Any] = {"inputText": text}
        if self._family.dimensions:
            body["normalize"] = self._normalize
            if self._dimensions is not None:
                body["dimensions"] = self._dimensions
        content, _ = self._invoke(body)
        return EmbeddingReply(rectangular([content["embedding"]]), int(content.get("inputTextTokenCount", 0)))

    def _cohere(self, texts: list[str], role: Role) -> EmbeddingReply:
        body: dict[str, Any] = {"texts": texts, "input_type": f"search_{role}", "truncate": "NONE"}
        if self._dimensions is not None:
            body["output_dimension"] = self._dimensions
        content, headers = self._invoke(body)
        embeddings = content["embeddings"]
        rows = embeddings["float"] if isinstance(embeddings, dict) else embeddings
        return EmbeddingReply(rectangular(rows), int(headers.get("x-amzn-bedrock-input-token-count", 0)))

    def _invoke(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], Mapping[str, str]]:
        """Call the model once; return its answer and the headers."""
        try:
            answer = self._bedrock().invoke_model(
                modelId=self.model, body=json.dumps(body), contentType="application/json", accept="application/json"
            )
            content = json.loads(answer["body"].read())
        except Exception as failure:
            raise self._understood(failure) from None
        if not isinstance(content, dict) or not {"embedding", "embeddings"} & content.keys():
            raise BackendError(f"bedrock ({self.model}): no vectors came back")
        return content, answer["ResponseMetadata"]["HTTPHeaders"]

    def _understood(self, failure: Exception) -> Exception:
        """What a failure of the SDK means for the request."""
        import botocore.exceptions as aws

        message = redacted(f"bedrock ({self.model}): {failure}", keep=[self.model])
        if isinstance(failure, aws.ClientError):
            code = failure.response.get("Error", {}).get("Code", "")
            answer = failure.response.get("ResponseMetadata", {})
            if code == "ValidationException" and says_too_long(str(failure)):
                return TooLong(message)
            if code in _THROTTLED | _PASSING or answer.get("HTTPStatusCode", 0) >= 500:
                wait = retry_after(answer.get("HTTPHeaders", {}))
                return Transient(message, retry_after=wait, throttled=code in _THROTTLED)
            return BackendError(message + _REMEDIES.get(code, ""))
        if isinstance(failure, aws.HTTPClientError | aws.ConnectionError | aws.IncompleteReadError | ValueError):
            return Transient(message)  # broken off, or JSON that is not whole
        return BackendError(message) if isinstance(failure, aws.BotoCoreError) else failure

    def _bedrock(self) -> Any:
        from botocore.config import Config

        with self._lock:
            if self._client is None:
                self._client = self._session().client(
                    "bedrock-runtime",
                    endpoint_url=self._endpoint or None,
                    config=Config(
                        retries={"total_max_attempts": 1},
                        max_pool_connections=self.concurrency,
                        connect_timeout=self._timeout,
                        read_timeout=self._timeout,
                    ),
                )
            return self._client

    def _session(self) -> boto3.Session:
        import boto3

        return boto3.Session(profile_name=self._profile or None, region_name=self._region or None)


def _family(model: str) -> _Family:
    family = next((family for name, family in _FAMILIES.items() if name in model), None)
    if family is None:
        known = ", ".join(_FAMILIES)
        raise InputError(Problem("encoder.model", f"{model!r} is no embedding model of Bedrock's", f"known: {known}…"))
    return family
