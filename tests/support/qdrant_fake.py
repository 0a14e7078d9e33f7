"""A Qdrant server for tests: enough of its REST interface over the client's own
in-memory engine, with faults to order.

What a real server (1.18.3) was seen to do is copied: the release that it names, and
that graphs and codes are built only in segments above a threshold. What it cannot show:
another engine's float noise, indexing that takes time, clusters.
"""

import json
import marshal
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from qdrant_client import QdrantClient, models
from qdrant_client.embed import schema_parser

from retrievers.meter import Meter
from retrievers.stores.open import open_store
from retrievers.stores.options import StoreOptions
from tests.support.servers import Answering, running

# Each of the 660 clients of the tests copies the same schemas: 0.5 ms instead of 3.
schema_parser.deepcopy = lambda schemas: marshal.loads(marshal.dumps(schemas))
VERSION = "1.18.3"
OF_INDEX = (
    "hnsw_config",
    "optimizers_config",
    "quantization_config",
    "shard_number",
    "replication_factor",
)
THRESHOLD = 10_000
"""kB of vectors above which a server indexes a segment, and above which it searches a
graph.
"""


def store_at(location, *, content="c", meter=None, form="dense", **options):
    """Returns the store of a collection on a server, in memory or in a folder."""
    options_of_store = StoreOptions(location, **options)
    return open_store(
        options_of_store,
        content,
        documents=1,
        folder=Path(),
        meter=meter or Meter(),
        form=form,
    )


class Engine(QdrantClient):
    """The client's own engine, which tells of a collection what a server would."""

    def __init__(self):
        super().__init__(":memory:")
        self.asked = {}

    def create_collection(
        self,
        collection_name,
        vectors_config=None,
        sparse_vectors_config=None,
        **collection_options,
    ):
        self.asked[collection_name] = collection_options
        return super().create_collection(
            collection_name, vectors_config, sparse_vectors_config
        )

    def get_collection(self, collection_name):
        info = super().get_collection(collection_name)
        asked = self.asked[collection_name]
        graph = info.config.hnsw_config
        optimizer = info.config.optimizer_config
        params = info.config.params
        optimizer.indexing_threshold = THRESHOLD
        for part, name in ((graph, "hnsw_config"), (optimizer, "optimizers_config")):
            for key, value in (asked.get(name) or {}).items():
                if value is not None:
                    setattr(part, key, value)
        params.shard_number = asked.get("shard_number")
        params.replication_factor = asked.get("replication_factor")
        size = info.points_count * 4 * getattr(params.vectors, "size", 0) / 1024
        if (
            graph.m or asked.get("quantization_config")
        ) and size >= optimizer.indexing_threshold:
            info.indexed_vectors_count = info.points_count
        return info


class FakeQdrant:
    """`faults` holds (method, path ending, fault), each used once: an HTTP status,
    "cut", "after", or the bytes of an answer with status 200.
    """

    def __init__(self):
        self.engine = Engine()
        self.lock = threading.Lock()
        self.url = ""
        self.version = VERSION
        self.api_key = None
        self.faults = []
        self.requests = []
        self.updates = []
        self.indexed = []
        self.status = []  # statuses to report before green

    def fault(self, method, path):
        with self.lock:
            self.requests.append((method, path))
            for index, (its_method, ending, fault) in enumerate(self.faults):
                if method == its_method and path.endswith(ending):
                    del self.faults[index]
                    return fault
        return None

    def answer(self, method, parts, body):  # noqa: C901 - a table of requests
        engine = self.engine
        match method, parts:
            case "GET", []:
                return None
            case "GET", ["collections"]:
                return engine.get_collections().model_dump(mode="json")
            case "GET", ["collections", name, "exists"]:
                return {"exists": engine.collection_exists(name)}
            case "GET", ["collections", name]:
                info = engine.get_collection(name).model_dump(mode="json")
                return {**info, "status": self.next_status()}
            case "PUT", ["collections", name]:
                return self.create(name, body)
            case "DELETE", ["collections", name]:
                return engine.delete_collection(name)
            case "PATCH", ["collections", name]:
                return self.update(name, body)
            case _, ["collections", name, *rest]:
                return self.answer_points(method, name, rest, body)
        raise AssertionError(f"the fake does not know {method} {parts}")

    def next_status(self):
        return self.status.pop(0) if self.status else "green"

    def update(self, name, body):
        self.updates.append(body)
        requested = self.engine.asked[name]
        changed = body.get("hnsw_config", {})
        requested["hnsw_config"] = {**requested["hnsw_config"], **changed}
        if "metadata" not in body:
            return True
        return self.engine.update_collection(name, metadata=body["metadata"])

    def answer_points(self, method, name, path_parts, body):
        engine = self.engine
        match method, path_parts:
            case "PUT", ["index"]:  # the client's engine has no index of payloads
                self.indexed.append((name, body["field_name"], body["field_schema"]))
                return {"operation_id": 0, "status": "completed"}
            case "PUT", ["points"]:
                engine.upsert(name, models.Batch(**body["batch"]))
                return {"operation_id": 1, "status": "completed"}
            case "POST", ["points"]:
                return dumped(engine.retrieve(name, body["ids"], with_payload=False))
            case "POST", ["points", "count"]:
                return {"count": engine.count(name).count}
            case "POST", ["points", "query", "batch"]:
                # The client's engine searches exactly, and would warn that it heeds no
                # parameters.
                searches = [
                    models.QueryRequest(**{**search, "params": None})
                    for search in body["searches"]
                ]
                return dumped(engine.query_batch_points(name, searches))
        raise AssertionError(f"the fake does not know {method} {path_parts}")

    def create(self, name, body):
        self.created = body
        sparse = {
            key: models.SparseVectorParams(**parameters)
            for key, parameters in (body.get("sparse_vectors") or {}).items()
        }
        vectors = models.VectorParams(**body["vectors"]) if body["vectors"] else {}
        index_options = {key: body.get(key) for key in OF_INDEX}
        return self.engine.create_collection(name, vectors, sparse, **index_options)


def dumped(items):
    return [item.model_dump(mode="json") for item in items]


class Handler(Answering):
    fake: FakeQdrant

    def handle_any(self):
        fake, path = self.fake, urlsplit(self.path).path
        body = json.loads(
            self.rfile.read(int(self.headers.get("content-length") or 0)) or "null"
        )
        fault = fake.fault(self.command, path)
        if isinstance(fault, int):
            return self.send(
                fault,
                {"status": {"error": "ordered"}},
                {"Retry-After": "0"} if fault == 429 else {},
            )
        if isinstance(fault, bytes):
            return self.send(200, fault)
        if fake.api_key is not None and self.headers.get("api-key") != fake.api_key:
            return self.send(401, {"status": {"error": "no key"}})
        try:
            with fake.lock:
                parts = [part for part in path.split("/") if part]
                result = (
                    None if fault == "cut" else fake.answer(self.command, parts, body)
                )
        except ValueError as error:
            return self.send(
                409 if "already exists" in str(error) else 400,
                {"status": {"error": str(error)}},
            )
        if fault in ("cut", "after"):  # not done, or done, but the answer never arrives
            self.close_connection = True
            return self.connection.close()
        if path == "/":
            return self.send(200, {"title": "qdrant", "version": fake.version})
        return self.send(200, {"result": result, "status": "ok", "time": 0.0})

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815  (the standard library's names)

    def send(self, status, content, headers=()):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        with suppress(OSError):  # the client gave up waiting
            self.head(
                status,
                {
                    "content-type": "application/json",
                    "content-length": str(len(data)),
                    **dict(headers),
                },
            )
            self.wfile.write(data)


@contextmanager
def fake_qdrant():
    fake = FakeQdrant()
    with running(type("Handler", (Handler,), {"fake": fake})) as server:
        fake.url = f"http://127.0.0.1:{server.server_port}"
        yield fake
    fake.engine.close()
