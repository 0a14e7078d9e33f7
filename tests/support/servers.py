"""Servers on the loopback that speak the providers' protocols, with switches for every
fault.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import socket
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from retrievers.encoders.hashing import HashingEncoder
from retrievers.meter import single_call


def real_vectors(texts):
    """What every provider answers: hashed n-grams, so that texts about the same are
    near each other.
    """
    return (
        HashingEncoder(dimensions=128).embed(texts, "document", single_call()).vectors
    )


def resized(vectors, width):
    """Vectors cut to a width, or filled up with zeros."""
    padded = np.zeros((len(vectors), width or vectors.shape[1]), dtype=np.float32)
    common_width = min(padded.shape[1], vectors.shape[1])
    padded[:, :common_width] = vectors[:, :common_width]
    return padded


PATIENCE = 300
"""Seconds to wait for what must come, however busy the machine is."""


def tokens_of(text):
    """The servers' own tokens: words and single marks."""
    return len(re.findall(r"\w+|[^\w\s]", text))


PAGE = b"<!doctype html><html><body>Sign in to the company network</body></html>"
BROKEN_BODIES = {
    "page": PAGE,
    "nothing": b"",
    "null": b"null",
    "deep": b"[" * 100_000,
    "error-with-200": (
        b'{"error": {"message": "the model is being moved", "code": "moved"}}'
    ),
}
"""Fault -> what is answered with status 200 by any service."""


class Refusal(Exception):
    """An answer that is no success."""

    def __init__(
        self,
        status,
        kind,
        message,
        headers: Mapping[str, str] | None = None,
        param=None,
    ):
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.param = param
        self.headers = dict(headers or {})


class Provider:
    """What a fake provider is told and what it remembers.

    `script` holds the faults of the next requests, one each; `always` is a fault of
    every request after them. `refusals`: fault -> what a Refusal is made of, "{key}"
    for what the header `secret` holds.
    """

    secret = "Authorization"
    refusals: Mapping[str, tuple] = {}

    def __init__(
        self,
        script: Iterable[str] = (),
        *,
        always="",
        latency=0.0,
        max_tokens=8192,
        dimensions=128,
    ):
        self.script = deque(script)
        self.always = always
        self.latency = latency
        self.max_tokens, self.dimensions = max_tokens, dimensions
        self.closing = threading.Event()
        self.hung_up = threading.Event()
        self.lock = threading.Lock()
        self.requests: list[dict] = []
        self.embedded: list[str] = []
        self.defects: list = []
        self.at_once = self.most_at_once = 0
        self.url = ""

    @contextmanager
    def admitted(self, body, headers):
        """Note a request and give its fault."""
        with self.lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            sent = {name.lower(): value for name, value in headers.items()}
            self.requests.append(
                {"body": body, "headers": sent, "at": time.monotonic()}
            )
            fault = self.script.popleft() if self.script else self.always
        try:
            yield fault
        finally:
            with self.lock:
                self.at_once -= 1

    def vectors(self, texts, fault):
        for text in texts:
            if tokens_of(text) > self.max_tokens:
                raise self.too_long(tokens_of(text))
        with self.lock:
            self.embedded.extend(texts)
        vectors = resized(real_vectors(texts), self.dimensions)
        if fault == "nan":
            vectors[0, 0] = np.nan
        if fault == "zero":
            vectors[0] = 0
        spoiled = {
            "few": vectors[:-1],
            "many": vectors[[*range(len(vectors)), 0]],
            "narrow": vectors[:, :-1],
        }
        return spoiled.get(fault, vectors)

    def refusal(self, fault, headers):
        """What is answered after a fault that is refused, or None."""
        if fault not in self.refusals:
            return None
        status, kind, message, *more = self.refusals[fault]
        return Refusal(
            status,
            kind,
            message.format(key=headers.get(self.secret, "").removeprefix("Bearer ")),
            *more,
        )


BROKEN_ROWS = {
    "null": None,
    "words": ["a", "b"],
    "holed": [None] * 128,
    "huge": [1e300] * 128,
    "unpacked": "@@@@",
}
"""What the protocol of OpenAI does not allow for a vector: "embedding-null" and so on
send it with status 200.
"""


class OpenAIProvider(Provider):
    """POST /v1/embeddings."""

    refusals: Mapping[str, tuple] = {
        "429": (429, "rate_limit_exceeded", "Rate limit reached for requests"),
        "429-after": (
            429,
            "rate_limit_exceeded",
            "Rate limit reached",
            {"Retry-After": "0.5"},
        ),
        "500": (500, "server_error", "The server had an error"),
        "503": (503, "server_error", "Overloaded"),
        "quota": (429, "insufficient_quota", "You exceeded your current quota"),
        "unpaid": (402, "payment_required", "The balance is used up"),
        "expired": (401, "invalid_api_key", "Incorrect API key provided: {key}."),
        "missing": (404, "model_not_found", "The model does not exist"),
        "batch": (
            400,
            "max_tokens_per_request",
            "Requested 319487 tokens, max 300000 per request",
        ),
    }

    def too_long(self, tokens):
        message = (
            f"This model's maximum context length is {self.max_tokens} tokens, "
            f"however you requested {tokens} tokens"
        )
        return Refusal(
            400,
            "context_length_exceeded",
            f"{message} ({tokens} in your prompt). Please reduce your prompt.",
        )

    def error(self, refusal):
        kind, param = refusal.kind, refusal.param
        return {
            "error": {
                "message": refusal.message,
                "type": kind,
                "param": param,
                "code": kind,
            }
        }

    def answer(self, path, body, headers, fault):
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        vectors = self.vectors(texts, fault)
        if "dimensions" in body:
            vectors = vectors[:, : body["dimensions"]]
        data = [
            {
                "object": "embedding",
                "index": i,
                "embedding": self._written(row, body.get("encoding_format")),
            }
            for i, row in enumerate(vectors)
        ]
        match fault:
            case "shuffled":
                data.reverse()
            case "twice":
                data[0]["index"] = data[-1]["index"]
            case "empty":
                data = []
            case "unindexed":
                data = [{"embedding": row["embedding"]} for row in data]
        if fault.startswith("embedding-"):
            data[0]["embedding"] = BROKEN_ROWS[fault.removeprefix("embedding-")]
        total = sum(map(tokens_of, texts))
        usage = {"prompt_tokens": total, "total_tokens": total}
        model = "another" if fault == "other-model" else body["model"]
        body = {"object": "list", "data": data, "model": model, "usage": usage}
        return body | ({"usage": "x"} if fault == "usage-word" else {}), {}

    def _written(self, row, form):
        return (
            base64.b64encode(row.astype("<f4").tobytes()).decode()
            if form == "base64"
            else row.tolist()
        )


class BedrockProvider(Provider):
    """POST /model/<id>/invoke, for Titan and Cohere."""

    secret = "X-Amz-Security-Token"
    refusals: Mapping[str, tuple] = {
        "429": (
            429,
            "ThrottlingException",
            "Too many requests, please wait before trying again.",
        ),
        "500": (500, "InternalServerException", "An internal server error occurred."),
        "503": (
            503,
            "ServiceUnavailableException",
            "Bedrock is unable to process your request.",
        ),
        "quota": (
            400,
            "ServiceQuotaExceededException",
            "Your request exceeds the service quota.",
        ),
        "model-timeout": (
            408,
            "ModelTimeoutException",
            "Model has timed out in processing the request.",
        ),
        "expired": (
            403,
            "ExpiredTokenException",
            "The security token included in the request is expired: {key}",
        ),
        "denied": (403, "AccessDeniedException", "You don't have access to the model"),
    }

    def too_long(self, tokens):
        limit = (
            f"Max input tokens: {self.max_tokens}, request input token count: {tokens} "
        )
        return Refusal(
            400,
            "ValidationException",
            f"400 Bad Request: Too many input tokens. {limit}",
        )

    def refusal(self, fault, headers):
        if not headers.get("Authorization", "").startswith(
            "AWS4-HMAC-SHA256 Credential="
        ):
            return Refusal(
                403,
                "MissingAuthenticationTokenException",
                "Missing Authentication Token",
            )
        return super().refusal(fault, headers)

    def error(self, refusal):
        refusal.headers["x-amzn-ErrorType"] = refusal.kind
        return {"message": refusal.message}

    def answer(self, path, body, headers, fault):
        if "titan" in path:
            text = body["inputText"]
            if len(text) > 50_000:
                raise self._too_many(50_000, text)
            vectors = self.vectors([text], fault)[
                :, : body.get("dimensions", self.dimensions)
            ]
            return {
                "embedding": vectors[0].tolist(),
                "inputTextTokenCount": tokens_of(text),
            }, {}
        texts = body["texts"]
        assert len(texts) <= 96
        for text in texts:
            if len(text) > 2048:
                raise self._too_many(2048, text)
        body = {
            "id": "0",
            "embeddings": self.vectors(texts, fault).tolist(),
            "texts": texts,
        }
        return body, {
            "x-amzn-bedrock-input-token-count": str(sum(map(tokens_of, texts)))
        }

    def _too_many(self, most, text):
        message = (
            f"expected maxLength: {most}, actual: {len(text)}, please reformat your "
            "input"
        )
        return Refusal(400, "ValidationException", message)


def sent_body(handler):
    """Return the body of a request, or None where the client hung up, or was killed,
    before it had sent the whole.
    """
    length = handler.headers["Content-Length"]
    if not length and not handler.rfile.read(1):
        return None
    body = handler.rfile.read(int(length))
    return body if len(body) == int(length) else None


class Answering(BaseHTTPRequestHandler):
    """Sends a body whole, and prints nothing."""

    def head(self, status, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def send(self, status, raw):
        self.head(
            status,
            {"Content-Type": "application/json", "Content-Length": str(len(raw))},
        )
        self.wfile.write(raw)

    def log_message(self, *_):
        pass


class _Handler(Answering):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    provider: Provider

    def do_POST(self):
        sent = sent_body(self)
        if sent is None:
            self.close_connection = True
        else:
            self._asked(self.provider, json.loads(sent))

    def do_GET(self):
        self._asked(self.provider, {})

    def _asked(self, provider, body):
        with provider.admitted(body, self.headers) as fault:
            self._answer(provider, body, fault)

    def _answer(self, provider, body, fault):
        if provider.latency:
            time.sleep(provider.latency)
        if fault == "slow":  # not before the client gave up
            provider.closing.wait(PATIENCE)
        if fault == "reset":
            self.connection.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
        if fault in {"drop", "reset"}:
            self.close_connection = True
        elif fault.startswith("drip"):
            self._drip(provider, fault)
        else:
            self._say(provider, body, fault)

    def _say(self, provider, body, fault):
        status = 200
        more = {}
        try:
            if (refusal := provider.refusal(fault, self.headers)) is not None:
                raise refusal
            said, more = provider.answer(self.path, body, self.headers, fault)
        except Refusal as refused:
            said = provider.error(refused)
            status, more = refused.status, refused.headers
        whole, more = self._spoiled(fault, json.dumps(said).encode(), more)
        self.head(
            status,
            {
                "Content-Type": "application/json",
                "Content-Length": str(len(whole)),
                **more,
            },
        )
        if fault == "half":
            whole = whole[: len(whole) // 2]
            self.close_connection = True
        self.wfile.write(whole)

    def _spoiled(self, fault, content, more):
        """Return the body and the headers of an answer after a fault that any service
        may have.
        """
        if fault in {"packed", "cut-gzip"}:
            content = gzip.compress(content)
            more = {**more, "Content-Encoding": "gzip"}
        if fault in {"garbage", "cut-gzip"}:
            content = content[: len(content) // 2]
        return BROKEN_BODIES.get(fault, content), more

    def _drip(self, provider, fault):
        """Answer for ever, a byte or a header at a time."""
        self.close_connection = True
        try:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            if fault == "drip":
                self.wfile.write(b"Content-Length: 100000\r\n\r\n")
            while not provider.closing.wait(0.05):
                self.wfile.write(b" " if fault == "drip" else b"X-More: 1\r\n")
        except ConnectionError:
            provider.hung_up.set()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):  # a client that hung up
            vars(self).setdefault("defects", []).append(sys.exception())


@contextmanager
def running(handler, **attributes):
    """Run a server on a free port of the loopback, with some attributes."""
    server = _Server(("127.0.0.1", 0), handler)
    vars(server).update(attributes)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def serving(provider):
    """Serve a provider on a free port of the loopback, its `url` says where."""
    with running(
        type("Handler", (_Handler,), {"provider": provider}), defects=provider.defects
    ) as server:
        path = getattr(
            provider, "base", "/v1" if isinstance(provider, OpenAIProvider) else ""
        )
        provider.url = f"http://127.0.0.1:{server.server_address[1]}{path}"
        try:
            yield provider
        finally:
            provider.closing.set()
    if provider.defects:
        raise ExceptionGroup("the server met what it does not expect", provider.defects)
