"""Servers on the loopback that speak the providers' protocols, with switches for every fault."""

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
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from retrievers.cache import Cache
from retrievers.encoders.hashing import HashingEncoder
from retrievers.meter import single_call


def real_vectors(texts):
    """What every provider answers: hashed n-grams, so that texts about the same are near each other."""
    return HashingEncoder(dimensions=128).embed(texts, "document", single_call()).vectors


def resized(vectors, width):
    """Vectors cut to a width, or filled up with zeros."""
    found = np.zeros((len(vectors), width or vectors.shape[1]), dtype=np.float32)
    some = min(found.shape[1], vectors.shape[1])
    found[:, :some] = vectors[:, :some]
    return found


def stored(folder):
    """The rows of the cache in a folder of a test."""
    with Cache(folder / "c") as cache:
        return sum(holding.rows for holding in cache.info())


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
    "error-with-200": b'{"error": {"message": "the model is being moved", "code": "moved"}}',
}
"""Fault -> what is answered with status 200 by any service."""


class Refusal(Exception):
    def __init__(self, status, kind, message, headers: Mapping[str, str] | None = None, param=None):
        super().__init__(message)
        self.param = param
        self.status, self.kind, self.message, self.headers = status, kind, message, dict(headers or {})


class Provider:
    """What a fake provider is told and what it remembers.

    `script` holds the faults of the next requests, one each; `always` is a fault of every request after them. The
    first `together` requests are answered when all of them have come.
    """

    def __init__(self, script: Iterable[str] = (), *, always="", latency=0.0, max_tokens=8192, dimensions=128):
        self.script = deque(script)
        self.always = always
        self.latency = latency
        self.closing = threading.Event()
        self.hung_up = threading.Event()
        self.max_tokens = max_tokens
        self.dimensions = dimensions
        self.requests: list[dict] = []
        self.embedded: list[str] = []
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()
        self.url = ""
        self.defects: list = []

    def admit(self, body, headers):
        """Note a request and return its fault."""
        with self.lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            self.requests.append({"body": body, "headers": {name.lower(): value for name, value in headers.items()}})
            return self.script.popleft() if self.script else self.always

    def leave(self):
        with self.lock:
            self.at_once -= 1

    def vectors(self, texts, fault):
        for text in texts:
            if tokens_of(text) > self.max_tokens:
                raise self.too_long(tokens_of(text))
        with self.lock:
            self.embedded.extend(texts)
        found = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        real = real_vectors(texts)[:, : self.dimensions]
        found[:, : real.shape[1]] = real
        match fault:
            case "few":
                found = found[:-1]
            case "many":
                found = np.concatenate([found, found[:1]])
            case "narrow":
                found = found[:, :-1]
            case "nan":
                found[0, 0] = np.nan
            case "zero":
                found[0] = 0
        return found


BROKEN_ROWS = {
    "embedding-null": {"embedding": None},
    "embedding-number": {"embedding": 1},
    "embedding-words": {"embedding": ["a", "b"]},
    "embedding-holed": {"embedding": [None] * 128},
    "embedding-huge": {"embedding": [1e300] * 128},
    "base64-bad": {"embedding": "@@@@"},
}
BROKEN_PARTS = {"data-null": {"data": None}, "rows-null": {"data": [None]}, "usage-word": {"usage": "x"}}
"""Fault -> what the protocol of OpenAI does not allow, sent with status 200."""


class OpenAIProvider(Provider):
    """POST /v1/embeddings."""

    def too_long(self, tokens):
        return Refusal(
            400,
            "context_length_exceeded",
            f"This model's maximum context length is {self.max_tokens} tokens, however you requested {tokens} tokens "
            f"({tokens} in your prompt; 0 for the completion). Please reduce your prompt; or completion length.",
        )

    def refusal(self, fault, headers):
        key = headers.get("Authorization", "")
        match fault:
            case "429":
                return Refusal(429, "rate_limit_exceeded", "Rate limit reached for requests")
            case "429-after":
                return Refusal(429, "rate_limit_exceeded", "Rate limit reached", {"Retry-After": "1"})
            case "429-date":
                soon = formatdate(time.time() + 1.5, usegmt=True)
                return Refusal(429, "rate_limit_exceeded", "Rate limit reached", {"Retry-After": soon})
            case "500" | "502":
                return Refusal(int(fault), "server_error", "The server had an error")
            case "503":
                return Refusal(503, "server_error", "Overloaded")
            case "quota":
                return Refusal(429, "insufficient_quota", "You exceeded your current quota")
            case "expired":
                return Refusal(401, "invalid_api_key", f"Incorrect API key provided: {key.removeprefix('Bearer ')}.")
            case "missing":
                return Refusal(404, "model_not_found", "The model does not exist")
            case "batch":
                return Refusal(400, "max_tokens_per_request", "Requested 319487 tokens, max 300000 per request")
        return None

    def error(self, refusal):
        kind, param = refusal.kind, refusal.param
        return {"error": {"message": refusal.message, "type": kind, "param": param, "code": kind}}

    def answer(self, path, body, headers, fault):
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        vectors = self.vectors(texts, fault)
        if "dimensions" in body:
            vectors = vectors[:, : body["dimensions"]]
        data = [
            {"object": "embedding", "index": i, "embedding": self._written(row, body.get("encoding_format"))}
            for i, row in enumerate(vectors)
        ]
        if fault == "shuffled":
            data.reverse()
        if fault == "twice":
            data[0]["index"] = data[-1]["index"]
        if fault == "empty":
            data = []
        if fault == "unindexed":
            for row in data:
                del row["index"]
        if fault in BROKEN_ROWS:
            data[0] |= BROKEN_ROWS[fault]
        total = sum(map(tokens_of, texts))
        usage = {"prompt_tokens": total, "total_tokens": total}
        model = "another" if fault == "other-model" else body["model"]
        whole = {"object": "list", "data": data, "model": model, "usage": usage}
        return whole | BROKEN_PARTS.get(fault, {}), {}

    def _written(self, row, form):
        return base64.b64encode(row.astype("<f4").tobytes()).decode() if form == "base64" else row.tolist()


class BedrockProvider(Provider):
    """POST /model/<id>/invoke, for Titan and Cohere."""

    def too_long(self, tokens):
        return Refusal(
            400,
            "ValidationException",
            f"400 Bad Request: Too many input tokens. Max input tokens: {self.max_tokens}, "
            f"request input token count: {tokens} ",
        )

    def refusal(self, fault, headers):
        token = headers.get("X-Amz-Security-Token", "")
        if not headers.get("Authorization", "").startswith("AWS4-HMAC-SHA256 Credential="):
            return Refusal(403, "MissingAuthenticationTokenException", "Missing Authentication Token")
        match fault:
            case "429":
                return Refusal(429, "ThrottlingException", "Too many requests, please wait before trying again.")
            case "500":
                return Refusal(500, "InternalServerException", "An internal server error occurred.")
            case "503":
                return Refusal(503, "ServiceUnavailableException", "Bedrock is unable to process your request.")
            case "quota":
                return Refusal(400, "ServiceQuotaExceededException", "Your request exceeds the service quota.")
            case "model-timeout":
                return Refusal(408, "ModelTimeoutException", "Model has timed out in processing the request.")
            case "expired":
                message = f"The security token included in the request is expired: {token}"
                return Refusal(403, "ExpiredTokenException", message)
            case "denied":
                return Refusal(403, "AccessDeniedException", "You don't have access to the model")
        return None

    def error(self, refusal):
        refusal.headers["x-amzn-ErrorType"] = refusal.kind
        return {"message": refusal.message}

    def answer(self, path, body, headers, fault):
        if "titan" in path:
            text = body["inputText"]
            if len(text) > 50_000:
                raise Refusal(
                    400, "ValidationException", f"expected maxLength: 50000, actual: {len(text)}, please reformat"
                )
            vectors = self.vectors([text], fault)[:, : body.get("dimensions", self.dimensions)]
            embedding = vectors[0].tolist() if len(vectors) else []
            return {"embedding": embedding, "inputTextTokenCount": tokens_of(text)}, {}
        texts = body["texts"]
        assert len(texts) <= 96
        for i, text in enumerate(texts):
            if len(text) > 2048:
                message = f"#/texts/{i}: expected maxLength: 2048, actual: {len(text)}, please reformat your input"
                raise Refusal(400, "ValidationException", message)
        said = {
            "id": "0",
            "response_type": "embeddings_floats",
            "embeddings": self.vectors(texts, fault).tolist(),
            "texts": texts,
        }
        return said, {"x-amzn-bedrock-input-token-count": str(sum(map(tokens_of, texts)))}


def sent_body(handler):
    """Return the body of a request, or None where the client hung up, or was killed, before it had sent the whole."""
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
        self.head(status, {"Content-Type": "application/json", "Content-Length": str(len(raw))})
        self.wfile.write(raw)

    def log_message(self, *_):
        pass


class _Handler(Answering):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    provider: Provider

    def do_POST(self):
        provider = self.provider
        sent = sent_body(self)
        if sent is None:
            self.close_connection = True
            return
        self._asked(provider, json.loads(sent))

    def do_GET(self):
        self._asked(self.provider, {})

    def _asked(self, provider, body):
        fault = provider.admit(body, self.headers)
        try:
            self._answer(provider, body, fault)
        finally:
            provider.leave()

    def _answer(self, provider, body, fault):
        if provider.latency:
            time.sleep(provider.latency)
        if fault == "slow":  # not before the client gave up
            provider.closing.wait(PATIENCE)
        if fault in {"drop", "reset"}:
            if fault == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return
        if fault.startswith("drip"):
            self._drip(provider, fault)
            return
        refusal = provider.refusal(fault, self.headers)
        status, more = 200, {}
        try:
            if refusal is not None:
                raise refusal
            said, more = provider.answer(self.path, body, self.headers, fault)
        except Refusal as refused:
            said = provider.error(refused)
            status, more = refused.status, refused.headers
        status, more, whole = self._spoiled(provider, fault, (status, more, json.dumps(said).encode()))
        self.head(status, {"Content-Type": "application/json", "Content-Length": str(len(whole)), **more})
        if fault == "half":
            whole = whole[: len(whole) // 2]
            self.close_connection = True
        self.wfile.write(whole)

    def _spoiled(self, provider, fault, answer):
        """Return the status, the headers and the body of an answer after a fault that any service may have."""
        status, more, whole = answer
        if fault == "garbage":
            whole = whole[: len(whole) // 2]
        if fault in {"packed", "cut-gzip"}:
            whole, more = gzip.compress(whole), {**more, "Content-Encoding": "gzip"}
        if fault == "cut-gzip":
            whole = whole[: len(whole) // 2]
        return status, more, BROKEN_BODIES.get(fault, whole)

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
            self.RequestHandlerClass.provider.defects.append(sys.exception())


@contextmanager
def running(handler, **attributes):
    """Run a server on a free port of the loopback; what is given is an attribute of it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    vars(server).update(attributes)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def serving(provider):
    """Serve a provider on a free port of the loopback, its `url` says where."""
    handler = type("Handler", (_Handler,), {"provider": provider})
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    path = getattr(provider, "base", "/v1" if isinstance(provider, OpenAIProvider) else "")
    provider.url = f"http://127.0.0.1:{server.server_address[1]}{path}"
    try:
        yield provider
    finally:
        provider.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
    if provider.defects:
        raise ExceptionGroup("the server met what it does not expect", provider.defects)
