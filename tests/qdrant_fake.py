"""A Qdrant server for tests: enough of its REST interface over the client's own in-memory engine, with faults to order.

What it cannot show: another engine's float noise, indexing that takes time, gRPC, clusters.
"""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from qdrant_client import QdrantClient, models


class FakeQdrant(ThreadingHTTPServer):
    """`faults` holds (method, path ending, fault), each used once: an HTTP status, "cut", "after", "slow",
    or the bytes of an answer with status 200."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.engine = QdrantClient(":memory:")
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.faults = []
        self.requests = []
        self.version = "1.20.0"
        self.api_key = None
        self.updates = []
        self.indexed = []
        self.status = []  # statuses to report before green

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def fault(self, method, path):
        with self.lock:
            self.requests.append((method, path))
            for index, (its_method, ending, fault) in enumerate(self.faults):
                if method == its_method and path.endswith(ending):
                    del self.faults[index]
                    return fault
        return None

    def answer(self, method, parts, body):
        engine = self.engine
        match method, parts:
            case "GET", []:
                return None
            case "GET", ["collections", name, "exists"]:
                return {"exists": engine.collection_exists(name)}
            case "GET", ["collections", name]:
                info = engine.get_collection(name).model_dump(mode="json")
                return {**info, "status": self.status.pop(0) if self.status else "green"}
            case "PUT", ["collections", name]:
                self.created = body
                sparse = {
                    key: models.SparseVectorParams(**one) for key, one in (body.get("sparse_vectors") or {}).items()
                }
                return engine.create_collection(name, vector_params(body["vectors"]), sparse)
            case "DELETE", ["collections", name]:
                return engine.delete_collection(name)
            case "PATCH", ["collections", name]:
                self.updates.append(body)
                return engine.update_collection(name, metadata=body["metadata"]) if "metadata" in body else True
            case "PUT", ["collections", name, "index"]:  # the client's engine has no index of payloads
                self.indexed.append((name, body["field_name"], body["field_schema"]))
                return {"operation_id": 0, "status": "completed"}
            case "PUT", ["collections", name, "points"]:
                engine.upsert(name, points_of(body))
                return {"operation_id": 1, "status": "completed"}
            case "POST", ["collections", name, "points"]:
                return dumped(engine.retrieve(name, body["ids"], with_payload=False))
            case "POST", ["collections", name, "points", "count"]:
                return {"count": engine.count(name).count}
            case "POST", ["collections", name, "points", "query", "batch"]:
                # The client's engine searches exactly, and would warn that it heeds no parameters.
                searches = [models.QueryRequest(**without_params(search)) for search in body["searches"]]
                return dumped(engine.query_batch_points(name, searches))
        raise AssertionError(f"the fake does not know {method} {parts}")


def vector_params(table):
    """Of the one vector of each point, or of those that have names."""
    if not table:
        return {}
    if "size" in table:
        return models.VectorParams(**table)
    return {name: models.VectorParams(**one) for name, one in table.items()}


def points_of(body):
    return models.Batch(**body["batch"]) if "batch" in body else [models.PointStruct(**one) for one in body["points"]]


def without_params(search):
    inner = {"prefetch": list(map(without_params, search["prefetch"]))} if search.get("prefetch") else {}
    return {**search, **inner, "params": None}


def dumped(items):
    return [item.model_dump(mode="json") for item in items]


class Handler(BaseHTTPRequestHandler):
    def handle_any(self):
        server = self.server
        path = urlsplit(self.path).path
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or "null")
        fault = server.fault(self.command, path)
        if fault == "slow":  # not before the client gave up
            server.closing.wait(300)
        if fault == "cut":
            return self.cut()
        if isinstance(fault, int):
            return self.send(fault, {"status": {"error": "ordered"}}, {"Retry-After": "0"} if fault == 429 else {})
        if isinstance(fault, bytes):
            return self.send(200, fault)
        if server.api_key is not None and self.headers.get("api-key") != server.api_key:
            return self.send(401, {"status": {"error": "no key"}})
        try:
            with server.lock:
                result = server.answer(self.command, [part for part in path.split("/") if part], body)
        except ValueError as error:
            return self.send(409 if "already exists" in str(error) else 400, {"status": {"error": str(error)}})
        if fault == "after":  # done, but the answer never arrives
            return self.cut()
        if path == "/":
            return self.send(200, {"title": "qdrant", "version": server.version})
        return self.send(200, {"result": result, "status": "ok", "time": 0.0})

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815  (the standard library's names)

    def cut(self):
        self.close_connection = True
        self.connection.close()

    def send(self, status, content, headers=()):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        try:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            for name, value in dict(headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            pass  # the client gave up waiting

    def log_message(self, *args):
        pass


@contextmanager
def fake_qdrant():
    server = FakeQdrant()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
        server.engine.close()
