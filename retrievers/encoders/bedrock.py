"""Amazon Bedrock's embedding models: Titan, one text a call, and Cohere."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar
from urllib.parse import quote

from pydantic import Field

from retrievers.errors import InputError, Problem, check_not_negative, check_positive
from retrievers.fingerprints import fingerprint
from retrievers.meter import Call, Stop
from retrievers.prices import Price, price_of
from retrievers.remote.aws import AwsConnection, meaning_of, signed
from retrievers.remote.redaction import as_written, redacted
from retrievers.remote.service import AnswerPart, JsonService, Listed, Server, check_address
from retrievers.remote.service import TokenCount as Billed
from retrievers.remote.splitting import EmbeddingReply, EmbeddingRequests, packed, rectangular
from retrievers.tokens import Tokens, estimate
from retrievers.types import Embedded, Encoder, Limits, Role

if TYPE_CHECKING:
    import boto3


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
_Schema = TypeVar("_Schema", bound=AnswerPart)


class _TitanAnswer(AnswerPart):
    embedding: _Vector
    input_tokens: Annotated[Billed | None, Field(alias="inputTextTokenCount")] = None


class _CohereByType(AnswerPart):
    vectors: Annotated[Listed[_Vector], Field(alias="float")]


class _CohereAnswer(AnswerPart):
    embeddings: Listed[_Vector] | _CohereByType


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
            timeout: seconds for one whole answer.
            patience: seconds after which a request that keeps failing is given up.
            price: dollars for a million tokens; left out, the list price.
        """
        check_positive("encoder", batch_size=batch_size, concurrency=concurrency, timeout=timeout, patience=patience)
        check_not_negative("encoder", rpm=rpm, tpm=tpm, price=price)
        if endpoint_url:
            check_address("encoder.endpoint_url", endpoint_url)
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
        self._connected: AwsConnection | None = None
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
        return {"model": as_written(self.model), "source": "bedrock", **where, **dimensions}

    @property
    def price(self) -> Price | None:
        """The experiment's price, else Amazon's list price."""
        return self._price

    @property
    def limits(self) -> Limits:
        """The declared limits of the rate, and the family's of a text's length."""
        return self._limits

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
        self._connect()  # before the clock of the rate runs: loading the SDK takes a while
        return self._requests.embed(texts, lambda some: send(some, role, call.stopped), call)

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

    def _titan(self, texts: list[str], role: Role, stopped: Stop) -> EmbeddingReply:
        (text,) = texts
        body: dict[str, Any] = {"inputText": text}
        if self._family.dimensions:
            body["normalize"] = self._normalize
            if self._dimensions is not None:
                body["dimensions"] = self._dimensions
        answer, _ = self._invoke(body, _TitanAnswer, stopped)
        return EmbeddingReply(rectangular([answer.embedding]), answer.input_tokens or 0)

    def _cohere(self, texts: list[str], role: Role, stopped: Stop) -> EmbeddingReply:
        body: dict[str, Any] = {"texts": texts, "input_type": f"search_{role}", "truncate": "NONE"}
        if self._dimensions is not None:
            body["output_dimension"] = self._dimensions
        answer, headers = self._invoke(body, _CohereAnswer, stopped)
        embeddings = answer.embeddings
        rows = embeddings.vectors if isinstance(embeddings, _CohereByType) else embeddings
        count = headers.get("x-amzn-bedrock-input-token-count", "")
        believed = re.fullmatch(r"\d{1,12}", count, re.ASCII)  # as many as `TokenCount` allows
        return EmbeddingReply(rectangular(rows), int(count) if believed else 0)

    def _invoke(
        self, body: Mapping[str, Any], schema: type[_Schema], stopped: Stop
    ) -> tuple[_Schema, Mapping[str, str]]:
        """Call the model once, the request signed as AWS asks; return its answer and the headers."""
        connected = self._connect()
        url = f"{connected.service.server.url.rstrip('/')}/model/{quote(self.model, safe='')}/invoke"
        packed_body = json.dumps(body).encode()
        headers = signed(connected, url, packed_body)
        return connected.service.send(url, packed_body, schema, stopped, headers)

    def _connect(self) -> AwsConnection:
        with self._lock:
            if self._connected is None:
                session = self._session()
                client = session.client("bedrock-runtime", endpoint_url=self._endpoint or None)
                url = self._endpoint or client.meta.endpoint_url
                known = session.get_credentials()
                secrets = tuple(filter(None, (known.secret_key, known.token))) if known else ()
                server = Server(url, self.model, secrets=secrets, timeout=self._timeout, concurrency=self.concurrency)
                self._connected = AwsConnection(session, client.meta.region_name, JsonService(server, meaning_of))
            return self._connected

    def _session(self) -> boto3.Session:
        import boto3

        return boto3.Session(profile_name=self._profile or None, region_name=self._region or None)


def _family(model: str) -> _Family:
    family = next((family for name, family in _FAMILIES.items() if name in model), None)
    if family is None:
        known = ", ".join(_FAMILIES)
        raise InputError(Problem("encoder.model", f"{model!r} is no embedding model of Bedrock's", f"known: {known}…"))
    return family
