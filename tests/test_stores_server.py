"""The server store against a fake on the loopback: every fault ends in a complete collection or in one clear error."""

import socket

import numpy as np
import pytest

from retrievers.errors import BackendError, InputError
from retrievers.meter import Meter
from retrievers.stores import connection, server
from retrievers.stores.options import StoreOptions
from retrievers.stores.server import ServerStore
from tests.qdrant_fake import fake_qdrant

RNG = np.random.default_rng(11)
COUNT = 100
IDS = [f"d{i}" for i in range(COUNT)]
VECTORS = RNG.standard_normal((COUNT, 8)).astype(np.float32)
UPSERTS = ("PUT", "/points")


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(connection, "FIRST_PAUSE", 0.005)
    monkeypatch.setattr(server, "GREEN_EVERY", 0.005)
    monkeypatch.setattr(server, "UPSERT", 10)


@pytest.fixture
def fake():
    with fake_qdrant() as running:
        yield running


@pytest.fixture
def store(fake):
    made = ServerStore(StoreOptions(fake.url), "c", Meter())
    yield made
    made.close()


def build(store):
    store.create(8)
    store.upsert(IDS, VECTORS)
    store.finish({"truncated": ["d3"]})


def retries(store):
    return sum(totals.counts.get("retries", 0) for totals in store._connection._meter.stages().values())


def test_a_collection_is_made_found_again_and_searched(fake, store):
    assert store.finished() is None
    build(store)
    again = ServerStore(StoreOptions(fake.url), "c", Meter())
    assert again.finished() == {"truncated": ("d3",)}
    [ranking] = again.search(VECTORS[5:6], 3)
    again.close()
    assert ranking.doc_ids[0] == "d5" and ranking.scores[0] == pytest.approx(1)
    assert retries(store) == 0


def test_shards_copies_and_approximation_reach_the_server(fake):
    options = StoreOptions(fake.url, shards=3, replication=2, m=24, quantization="product")
    store = ServerStore(options, "c", Meter())
    store.create(8)
    store.close()
    assert fake.created["shard_number"] == 3 and fake.created["replication_factor"] == 2
    assert fake.created["hnsw_config"]["m"] == 24
    assert fake.created["quantization_config"]["product"]["compression"] == "x16"


def test_the_graph_is_built_after_the_upload_where_the_block_says_so(fake):
    store = ServerStore(StoreOptions(fake.url, m=24, defer_graph=True), "c", Meter())
    build(store)
    store.close()
    assert fake.created["hnsw_config"]["m"] == 0
    assert [update["hnsw_config"]["m"] for update in fake.updates if update.get("hnsw_config")] == [24]
    uploads = [place for place, (method, path) in enumerate(fake.requests) if (method, path[-7:]) == ("PUT", "/points")]
    patches = [place for place, (method, _) in enumerate(fake.requests) if method == "PATCH"]
    assert max(uploads) < min(patches)


def test_a_deferred_graph_needs_a_graph_and_a_server():
    with pytest.raises(InputError, match="set m"):
        StoreOptions("http://localhost:6333", defer_graph=True)
    with pytest.raises(InputError, match="is for a server"):
        StoreOptions("edge", m=16, defer_graph=True)


@pytest.mark.parametrize("fault", [500, 503, 429, "cut", "after"])
@pytest.mark.parametrize("place", [UPSERTS, ("PUT", "/c"), ("GET", "/exists"), ("POST", "/count"), ("PATCH", "/c")])
def test_a_fault_that_passes_is_retried_and_counted(fake, store, fault, place):
    fake.faults += [(*place, fault)]
    build(store)
    assert fake.engine.count("c").count == COUNT
    assert retries(store) == 1


def test_a_server_too_slow_to_answer_is_asked_again(fake, monkeypatch):
    monkeypatch.setattr(connection, "TIMEOUT", 1)
    fake.faults += [(*UPSERTS, "slow")]
    store = ServerStore(StoreOptions(fake.url), "c", Meter())
    build(store)
    store.close()
    assert retries(store) == sum(request[1].endswith("/points") for request in fake.requests) - COUNT // 10 >= 1


def test_a_creation_whose_answer_was_lost_is_no_failure(fake, store):
    fake.faults += [("PUT", "/c", "after"), ("PUT", "/c", 409)]
    build(store)
    assert store.finished() is not None


def test_a_search_survives_cut_connections(fake, store):
    build(store)
    undisturbed = store.search(VECTORS[:50], 5)
    fake.faults += [("POST", "/query/batch", "cut"), ("POST", "/query/batch", 502)]
    again = store.search(VECTORS[:50], 5)
    assert [ranking.doc_ids for ranking in again] == [ranking.doc_ids for ranking in undisturbed]
    assert retries(store) == 2


def test_a_half_finished_upload_is_taken_up_again_without_sending_twice(fake, store):
    store.create(8)
    store.upsert(IDS[:60], VECTORS[:60])
    fake.faults += [(*UPSERTS, 500)] * 1000
    with pytest.raises(BackendError, match="an upload goes on from where it was cut short"):
        store.upsert(IDS[60:], VECTORS[60:])
    fake.faults.clear()
    fake.requests.clear()

    resumed = ServerStore(StoreOptions(fake.url), "c", Meter())
    assert resumed.finished() is None
    build(resumed)
    sent = sum(method == "PUT" and path.endswith("/points") for method, path in fake.requests)
    assert sent == 4  # of ten batches, six were there
    assert resumed.finished() is not None
    resumed.close()


def test_a_half_finished_upload_is_not_taken_up_where_all_is_to_be_made_anew(fake, store):
    """Its vectors may be of a model that has changed since."""
    store.create(8)
    store.upsert(IDS[:60], VECTORS[:60])
    fake.requests.clear()
    again = ServerStore(StoreOptions(fake.url), "c", Meter())
    again.create(8, anew=True)
    again.upsert(IDS, VECTORS)
    again.finish({})
    assert sum(method == "PUT" and path.endswith("/points") for method, path in fake.requests) == 10
    again.close()


def test_after_a_failure_no_further_batch_is_tried(fake, store):
    store.create(8)
    fake.faults += [(*UPSERTS, 500)] * 1000
    with pytest.raises(BackendError, match="500"):
        store.upsert(IDS * 10, np.tile(VECTORS, (10, 1)))
    tried = sum(method == "PUT" and path.endswith("/points") for method, path in fake.requests)
    assert tried <= 3 * server.PARALLEL * connection.ATTEMPTS  # of 100 batches


@pytest.mark.parametrize(("scheme", "error"), [("http", "no whole answer came"), ("grpc", "UNAVAILABLE")])
def test_a_server_that_is_not_there_is_one_clear_error(scheme, error):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"{scheme}://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(BackendError, match=rf"^{url}: {error}: .*; start the server, then run again$") as refused:
            ServerStore(StoreOptions(url), "c", Meter()).finished()
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("version", ["A" * 20_000, "\x00", "9.20\u202e", ""])
def test_a_version_that_is_none_is_shown_short_and_quoted(fake, store, version):
    fake.version = version
    with pytest.raises(InputError, match="the server is Qdrant '") as caught:
        store.finished()
    assert len(str(caught.value)) < 300
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("version", "accepted"), [("1.19.4", True), ("1.21.0", True), ("1.17.0", False), ("2.0.0", False), ("dev", False)]
)
def test_a_server_of_another_version_is_refused(fake, store, version, accepted):
    fake.version = version
    if accepted:
        assert store.finished() is None
    else:
        with pytest.raises(InputError, match=f"the server is Qdrant {version}, which qdrant-client"):
            store.finished()


def test_a_collection_of_other_dimensions_is_refused(fake, store):
    store.create(8)
    with pytest.raises(
        InputError, match="has dense vectors of 8 dimensions and distance Cosine, not dense vectors of 16"
    ):
        store.create(16)


def test_a_collection_of_another_distance_is_refused(fake, store):
    from qdrant_client.models import Distance, VectorParams

    fake.engine.create_collection("c", VectorParams(size=8, distance=Distance.DOT))
    with pytest.raises(InputError, match="distance Dot"):
        store.create(8)


def test_the_key_is_sent_and_never_told(fake, store):
    fake.api_key = "tell-nobody"
    with pytest.raises(InputError, match="refuses access \\(401\\)") as refused:
        store.finished()
    assert "tell-nobody" not in str(refused.value)
    options = StoreOptions(fake.url, api_key="tell-nobody")
    assert "tell-nobody" not in repr(options)
    admitted = ServerStore(options, "c", Meter())
    assert admitted.finished() is None
    admitted.close()


def test_search_waits_until_the_server_is_green(fake, store):
    store.create(8)
    store.upsert(IDS, VECTORS)
    fake.status = ["yellow", "yellow"]
    store.finish({})
    assert fake.status == []
    fake.status = ["grey", "yellow"]
    fake.updates.clear()
    store.finish({})
    assert fake.status == []
    assert fake.updates == [{"optimizers_config": {}}, {"metadata": {"finished": {}}}]
    fake.status = ["red"]
    with pytest.raises(BackendError, match="indexing failed"):
        store.finish({})


def test_points_that_got_lost_are_an_error(fake, store):
    store.create(8)
    store.upsert(["a", "b", "a"], VECTORS[:3])
    with pytest.raises(BackendError, match="2 points for 3 documents"):
        store.finish({})


BROKEN = [
    b"<html>Sign in</html>", b"", b"null", b"[]", b"{}", b'{"result": null}', b'{"result": "x"}', b'{"result": [null]}',
    b'{"result": [{"points": null}]}', b'{"result": [{"points": [{"id": 1, "version": 0, "score": "high"}]}]}',
    b'{"result": [{"points": [{"id": 1, "version": 0, "score": NaN, "payload": {"id": "d1"}}]}]}',
    b'{"result": [{"points": [{"id": 1, "version": 0, "score": 0.5, "payload": null}]}]}',
    b'{"result": {"count": "x"}}', b'{"result": []}', b"[" * 100_000,
]  # fmt: skip
CALLS = [("GET", "/"), ("GET", "/exists"), ("GET", "/c"), ("PUT", "/points"), ("POST", "/count"), ("POST", "/batch")]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("body", BROKEN)
def test_an_answer_that_is_not_of_the_protocol_is_one_error_or_none(fake, store, call, body):
    build(store)
    before = store.search(VECTORS[:1], 3)
    fake.faults = [(*call, body)] * 20
    again = ServerStore(StoreOptions(fake.url), "c", Meter())
    try:
        if again.finished() is None:
            build(again)
        assert again.search(VECTORS[:1], 3) == before
    except (BackendError, InputError) as error:
        assert len(str(error)) < 1000
    finally:
        again.close()
