"""What Bedrock asks of a request and says in a refusal: AWS's signature, and the names of its failures."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from retrievers.errors import BackendError
from retrievers.remote.faults import TooLong, Transient, retry_after, says_too_long
from retrievers.remote.service import JsonService, Refusal

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


class AwsConnection(NamedTuple):
    """What the first request finds out by AWS's chain."""

    session: boto3.Session
    region: str
    service: JsonService


def signed(connected: AwsConnection, url: str, body: bytes) -> Mapping[str, str]:
    """The headers of a request with AWS's signature (version 4), or with the bearer token of Bedrock's own keys."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest

    plain = {"Content-Type": "application/json", "Accept": "application/json"}
    if token := os.environ.get("AWS_BEARER_TOKEN_BEDROCK"):
        return {**plain, "Authorization": f"Bearer {token}"}
    credentials = connected.session.get_credentials()
    if credentials is None:
        raise BackendError("AWS credentials were not found; run `aws configure`, or set AWS_PROFILE")
    request = AWSRequest("POST", url, headers=plain, data=body)
    SigV4Auth(credentials.get_frozen_credentials(), "bedrock", connected.region).add_auth(request)
    return {name: str(value) for name, value in request.headers.items()}


def meaning_of(refusal: Refusal) -> Exception:
    """What a refusal of the service means for the request."""
    code = refusal.headers.get("x-amzn-errortype", refusal.code).partition(":")[0].rpartition("#")[2]
    if code == "ValidationException" and says_too_long(refusal.words):
        return TooLong(refusal.message)
    if code in _THROTTLED | _PASSING or refusal.status >= 500 or refusal.status == 429:
        wait = retry_after(refusal.headers)
        return Transient(refusal.message, retry_after=wait, throttled=code in _THROTTLED or refusal.status == 429)
    return BackendError(refusal.message + _REMEDIES.get(code, ""))
