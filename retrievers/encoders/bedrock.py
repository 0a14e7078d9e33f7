"""Embedding models of Amazon Bedrock."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import Field

from retrievers.embedded import Role
from retrievers.encoders.remote_encoder import EmbeddingReply, RemoteEncoder
from retrievers.errors import BackendError, InputError, Problem
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

_CONFIGURE = "run `aws configure`, or set AWS_PROFILE"


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


class BedrockEncoder(RemoteEncoder):
    """Embeds with InvokeModel; credentials, region, profile and endpoint come by AWS's own chain."""

    kind = "bedrock"

    model: str
    """A model's or an inference profile's id."""
    region: str = ""
    """Left out, as AWS's chain has it."""
    profile: str = ""
    """Likewise."""
    endpoint_url: str = ""
    """Likewise."""
    dimensions: int | None = None
    """Titan v2: 256, 512 or 1,024; Cohere v4: 256, 512, 1,024 or 1,536."""
    normalize: bool = True
    """Titan v2 only: vectors of length 1."""
    batch_size: Annotated[int, Field(ge=1, le=96)] = 96
    """Texts a request, at most 96; Titan takes one."""
    _family: _Family

    def model_post_init(self, _: object) -> None:
        """Describe the model; nothing is sent, and no credentials are looked for."""
        if self.endpoint_url:
            check_address("encoder.endpoint_url", self.endpoint_url)
        self._family = family = _family(expand(self.model))
        if self.dimensions is not None and self.dimensions not in family.dimensions:
            known = ", ".join(map(str, family.dimensions)) or "only its own"
            what = f"{self.model} cannot have {self.dimensions}"
            raise InputError(Problem("encoder.dimensions", what, f"it has {known}"))
        self._reached(EndpointAccess("aws"), family.tokens)

    @property
    def request_size(self) -> int:
        """Texts a request, at most."""
        return min(self.batch_size, self._family.texts)

    @property
    def max_characters(self) -> int:
        """Of one text that the model takes, at most; 0: no limit."""
        return self._family.characters

    @property
    def name(self) -> str:
        """As messages call it."""
        return f"{redact_url(self.endpoint_url) or 'Amazon Bedrock'} ({self.model})"

    def _named(self, said: Mapping[str, Any]) -> str:
        return fingerprint(
            self.kind,
            self.model,
            dimensions=self.dimensions,
            normalize=self.normalize,
            endpoint=self.endpoint_url,
        )

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps."""
        where = {"region": self.region} if self.region else {}
        return {**self._described(**where), "source": "bedrock"}

    def check(self) -> None:
        """Look for what a run needs, before it starts: credentials and a region, by AWS's chain.

        Raises:
            InputError: something is missing.
        """
        import botocore.exceptions

        try:
            session = self._session()
            if (
                session.get_credentials() is None
                and "AWS_BEARER_TOKEN_BEDROCK" not in os.environ
            ):
                raise InputError(
                    Problem("AWS credentials", "were not found", _CONFIGURE)
                )
            if not session.region_name:
                what = "is not known to AWS's chain either"
                raise InputError(
                    Problem("encoder.region", what, 'region = "us-east-1"')
                )
        except botocore.exceptions.BotoCoreError as failure:
            raise InputError(Problem("AWS", error_line(str(failure)))) from None

    def _counted(self, texts: Sequence[str]) -> Tokens:
        """Estimate the tokens that would be billed; Bedrock's tokenizers are not public."""
        return Tokens(
            estimate_tokens([text[: self.max_characters or None] for text in texts]),
            exact=False,
        )

    async def _send(self, texts: list[str], role: Role) -> EmbeddingReply:
        cohere = "cohere." in expand(self.model)
        body: dict[str, Any] = {
            "texts": texts,
            "input_type": f"search_{role}",
            "truncate": "NONE",
        }
        if not cohere:
            body = {"inputText": texts[0]} | (
                {"normalize": self.normalize} if self._family.dimensions else {}
            )
        body |= self._fewer("output_dimension" if cohere else "dimensions")
        answer, headers = await in_thread(
            partial(self._invoke, self._client(), json.dumps(body))
        )
        with explain_unreadable(self.name, answer):
            if not cohere:
                return EmbeddingReply(
                    [(0, answer["embedding"])], answer.get("inputTextTokenCount")
                )
            embeddings = answer["embeddings"]
            rows = embeddings["float"] if isinstance(embeddings, dict) else embeddings
            count = headers.get("x-amzn-bedrock-input-token-count", "")
            return EmbeddingReply(
                list(enumerate(rows)),
                int(count) if count.isdecimal() and len(count) < 13 else None,
            )

    def _open(self) -> Any:
        from botocore.config import Config

        session = self._session()
        known = session.get_credentials()
        for key in filter(None, (known.secret_key, known.token) if known else ()):
            resolve_secret(key)
        hide_values(self.endpoint_url)
        once = Config(
            retries={"total_max_attempts": 1},
            max_pool_connections=self._limits.concurrency,
            connect_timeout=self.timeout,
            read_timeout=self.timeout,
        )
        return session.client(
            "bedrock-runtime",
            endpoint_url=expand(self.endpoint_url) or None,
            config=once,
        )

    def _invoke(self, client: Any, body: str) -> tuple[Any, Mapping[str, str]]:
        """Call the model once, and read the whole body; returns it with the headers."""
        import botocore.exceptions as lost
        from botocore.parsers import ResponseParserError

        try:
            kind = "application/json"
            answer = client.invoke_model(
                modelId=expand(self.model), body=body, contentType=kind, accept=kind
            )
            text = answer["body"].read()
        except lost.ClientError as refused:
            said, error = (
                refused.response["ResponseMetadata"],
                refused.response["Error"],
            )
            words, code = (
                json.dumps({"message": error.get("Message", "")}),
                error.get("Code", ""),
            )
            raise classify_response_error(
                self.name, said["HTTPStatusCode"], words, said["HTTPHeaders"], code
            ) from None
        except ResponseParserError as failure:
            raise TransientFailure(
                f"{self.name}: an answer that cannot be read came back: {error_line(str(failure))}"
            ) from None
        except (
            lost.HTTPClientError,
            lost.ConnectionError,
            lost.IncompleteReadError,
        ) as failure:
            raise classify_connection_error(
                self.name, client.meta.endpoint_url, failure
            ) from None
        except lost.BotoCoreError as failure:
            raise BackendError(f"{self.name}: {error_line(str(failure))}") from None
        with explain_unreadable(self.name, text.decode("utf-8", "replace")):
            return json.loads(text), answer["ResponseMetadata"]["HTTPHeaders"]

    def _session(self) -> boto3.Session:
        import boto3

        return boto3.Session(
            profile_name=expand(self.profile) or None,
            region_name=expand(self.region) or None,
        )


def _family(model: str) -> _Family:
    family = next((family for name, family in _FAMILIES.items() if name in model), None)
    if family is None:
        what, known = (
            f"{model!r} is not an embedding model of Bedrock's",
            ", ".join(_FAMILIES),
        )
        raise InputError(Problem("encoder.model", what, f"known: {known}…"))
    return family
