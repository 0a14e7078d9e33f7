"""The store on a server, against a fake on the loopback: every fault ends in a complete collection or in one error."""

import re
import socket
import threading

import numpy as np
import pytest

from retrievers import retrying
from retrievers.errors import BackendError, InputError
from retrievers.meter import Meter
from retrievers.stores import StoreOptions, collection_name, connection, qdrant
from retrievers.stores.connection import Collections
from tests.support.qdrant_fake import fake_qdrant, store_at
from tests.support.servers import PATIENCE
from tests.support.small import call

RNG = np.random.default_rng(11)
COUNT = 100
IDS = [f"d{i}" for i in range(COUNT)]
VECTORS = RNG.standard_normal((COUNT, 8)).astype(np.float32)
UPSERTS = ("PUT", "/points")
NAME = collection_name("c")


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(retrying, "FIRST_PAUSE", 0.005)
    monkeypatch.setattr(retrying, "PATIENCE", 0.1)
    monkeypatch.setattr(qdrant, "LOOK_EVERY", 0.005)
    monkeypatch.setattr(qdrant, "UPSERT", 10)
    connection._warn_of_versions.cache_clear()


@pytest.fixture
def patient(hasty, monkeypatch):
    """What passes is waited for, however busy this machine is."""
    monkeypatch.setattr(retrying, "PATIENCE", 60)


@pytest.fixture
def fake():
    with fake_qdrant() as running:
        yield running


@pytest.fixture
def opened(fake):
    """Opens a store on the server; closes all at the end."""
    stores = []

    def one(**options):
        stores.append(store_at(options.pop("url", fake.url), **options))
        return stores[-1]

    yield one
    for store in stores:
        store.close()


@pytest.fixture
def meter():
    return Meter()


@pytest.fixture
def store(opened, meter):
    return opened(meter=meter)


def build(store):
    store.create(8)
    store.upsert(IDS, VECTORS)
    store.finish({"truncated": ["d3"]})


def retries(meter):
    return sum(totals.counts.get("retries", 0) for totals in meter.stages().values())


def test_shards_copies_and_approximation_reach_the_server(fake, opened):
    opened(shards=3, replication=2, m=24, quantization="product").create(8)
    assert fake.created["shard_number"] == 3 and fake.created["replication_factor"] == 2
    assert fake.created["hnsw_config"]["m"] == 24
    assert fake.created["quantization_config"]["product"]["compression"] == "x16"


def test_the_graph_is_built_after_the_upload_where_the_block_says_so(fake, opened):
    store = opened(m=24, defer_graph=True)
    build(store)
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


@pytest.mark.parametrize(
    ("options", "indexed", "thresholds"),
    [
        ({"m": 16}, COUNT, (1, 10)),
        ({"quantization": "scalar"}, COUNT, (1, 10)),
        ({"m": 16, "defer_graph": True}, COUNT, (1, 10)),
        ({"m": 16, "indexing_threshold": 10_000, "full_scan_threshold": 5_000}, 0, (10_000, 5_000)),
    ],
)
def test_what_is_asked_for_is_done_in_a_small_collection_and_what_was_not_is_told(opened, options, indexed, thresholds):
    """By default a server builds a graph and codes only above 10 MB of vectors; in Edge there is no such limit."""
    store = opened(**options)
    build(store)
    assert store.facts == {
        "server": "Qdrant 1.18.3", "points": str(COUNT), "indexed_points": str(indexed), "optimizer": "ok",
        "indexing_threshold_kb": str(thresholds[0]), "full_scan_threshold_kb": str(thresholds[1]),
    }  # fmt: skip


def test_options_by_which_a_collection_is_built_are_part_of_its_name(opened):
    choices = [{}, {"shards": 3}, {"replication": 2}, {"m": 16}, {"m": 16, "indexing_threshold": 5},
               {"m": 16, "full_scan_threshold": 50}, {"quantization": "binary"}]  # fmt: skip
    names = {opened(**options).collection for options in choices}
    assert len(names) == len(choices)
    assert all(name.startswith("harness-") and len(name) <= 80 for name in names)
    assert opened(m=16, ef=7).collection == opened(m=16).collection  # of a search


PLACES = [UPSERTS, ("PUT", NAME), ("GET", "/exists"), ("POST", "/count"), ("PATCH", NAME)]


@pytest.mark.parametrize(
    ("place", "fault"),
    [
        *((UPSERTS, fault) for fault in (500, 429, "cut")),
        *((place, fault) for place in PLACES for fault in (503, "after")),
    ],
)
def test_a_fault_that_passes_is_retried_and_counted(patient, fake, store, meter, fault, place):
    fake.faults += [(*place, fault)]
    build(store)
    assert fake.engine.count(NAME).count == COUNT
    assert retries(meter) == 1


def test_a_server_that_is_away_is_named_once_while_it_is_waited_for(fake, store, caplog):
    build(store)
    fake.faults += [("POST", "/query/batch", 503)] * 4
    store.search(VECTORS[:1], 3)
    said = [record.getMessage() for record in caplog.records if record.name == retrying.log.name]
    assert re.fullmatch(rf"waiting for {fake.url}: .*503.*, try 2, gives up in 0 s", "\n".join(said))


def test_a_server_too_slow_to_answer_is_asked_again(patient, fake, opened, meter, monkeypatch):
    monkeypatch.setattr(connection, "TIMEOUT", 1)
    store = opened(meter=meter)
    fake.faults += [(*UPSERTS, "slow")]
    build(store)
    assert retries(meter) == sum(request[1].endswith("/points") for request in fake.requests) - COUNT // 10 >= 1


def test_a_creation_whose_answer_was_lost_is_no_failure(patient, fake, store):
    fake.faults += [("PUT", NAME, "after"), ("PUT", NAME, 409)]
    build(store)
    assert store.finished() is not None


def test_a_search_survives_cut_connections(patient, fake, store, meter):
    build(store)
    undisturbed = store.search(VECTORS[:50], 5)
    fake.faults += [("POST", "/query/batch", "cut"), ("POST", "/query/batch", 502)]
    assert store.search(VECTORS[:50], 5) == undisturbed
    assert retries(meter) == 2


def test_queries_travel_in_several_requests_at_once_and_bring_ids_alone(fake, store, monkeypatch):
    """One after the other, the server waited while each answer was read: half of the time of a search."""
    build(store)
    alone = [store.search(VECTORS[i : i + 1], 5)[0] for i in range(40)]
    monkeypatch.setattr(qdrant, "SEARCH", 10)
    gathered, payloads, answer_points = threading.Barrier(qdrant.PARALLEL), set(), fake.answer_points

    def fault(method, path):
        if path.endswith("/query/batch"):
            gathered.wait(PATIENCE)  # broken, and an error, unless all four come

    def answer(method, name, rest, body):
        payloads.update(str(one["with_payload"]) for one in body.get("searches", ()))
        return answer_points(method, name, rest, body)

    monkeypatch.setattr(fake, "fault", fault)
    monkeypatch.setattr(fake, "answer_points", answer)
    assert store.search(VECTORS[:40], 5) == alone
    assert payloads == {"['id']"}


def test_a_half_finished_upload_is_taken_up_again_without_sending_twice(fake, store, opened):
    store.create(8)
    store.upsert(IDS[:60], VECTORS[:60])
    fake.faults += [(*UPSERTS, 500)] * 1000
    with pytest.raises(BackendError, match="an upload goes on from where it was cut short"):
        store.upsert(IDS[60:], VECTORS[60:])
    fake.faults.clear()
    fake.requests.clear()

    resumed = opened()
    assert resumed.finished() is None
    build(resumed)
    sent = sum(method == "PUT" and path.endswith("/points") for method, path in fake.requests)
    assert sent == 4  # of ten batches, six were there
    assert resumed.finished() is not None


def test_a_half_finished_upload_is_not_taken_up_where_all_is_to_be_made_anew(fake, store, opened):
    """Its vectors may be of a model that has changed since."""
    store.create(8)
    store.upsert(IDS[:60], VECTORS[:60])
    fake.requests.clear()
    again = opened()
    again.create(8, anew=True)
    again.upsert(IDS, VECTORS)
    again.finish({})
    assert sum(method == "PUT" and path.endswith("/points") for method, path in fake.requests) == 10


def test_after_a_failure_no_further_batch_is_tried(fake, store):
    store.create(8)
    fake.faults += [(*UPSERTS, 500)] * 1000
    with pytest.raises(BackendError, match="500"):
        store.upsert(IDS * 10, np.tile(VECTORS, (10, 1)))
    tried = sum(method == "PUT" and path.endswith("/points") for method, path in fake.requests)
    assert tried <= 3 * qdrant.PARALLEL * 12  # of 100 batches, within patience


@pytest.mark.parametrize(("scheme", "error"), [("http", "ConnectError"), ("grpc", "UNAVAILABLE")])
def test_a_server_that_is_not_there_is_one_clear_error(opened, scheme, error):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"{scheme}://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(
            BackendError, match=rf"^{url}: {error}: .*; is it running\? start it, then run again$"
        ) as refused:
            opened(url=url).finished()
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "version", ["A" * 20_000, "\x00", "9.20\u202e", "", "dev", "1." + "9" * 5000, "9" * 5000 + ".1", "1.15.5"]
)
def test_a_server_without_metadata_of_collections_or_with_no_version_is_refused(fake, store, version):
    fake.version = version
    with pytest.raises(
        InputError, match=r"metadata of collections came with 1\.16 \(use Qdrant 1\.16 or newer"
    ) as told:
        store.finished()
    assert len(str(told.value)) < 300
    assert str(told.value).isprintable()


@pytest.mark.parametrize(("version", "warned"), [("1.19.4", 0), ("1.21.0", 0), ("1.16.0", 1), ("2.0.0", 1)])
def test_a_server_far_from_the_client_is_used_with_one_warning(fake, opened, caplog, version, warned):
    fake.version = version
    for _ in range(2):
        store = opened()
        assert store.finished() is None
        assert store.facts == {"server": f"Qdrant {version}"}
    assert sum("more than one minor version apart" in record.getMessage() for record in caplog.records) == warned


def test_vectors_that_the_collection_does_not_take_are_one_error(fake, store):
    store.create(8)
    with pytest.raises(BackendError, match=r"8.*16|16.*8"):
        store.upsert(["a"], np.ones((1, 16), np.float32))


def test_the_key_is_sent_and_never_told(fake, store, opened):
    fake.api_key = "tell-nobody"
    with pytest.raises(InputError, match="refuses access \\(401\\)") as refused:
        store.finished()
    assert "tell-nobody" not in str(refused.value)
    assert "tell-nobody" not in repr(StoreOptions(fake.url, api_key="tell-nobody"))
    assert opened(api_key="tell-nobody").finished() is None


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


def test_collections_are_listed_and_removed(fake, opened):
    build(opened())
    opened(content="half").create(8)
    fake.engine.create_collection("somebody-else's", {})
    held = Collections(StoreOptions(fake.url))
    names = [collection_name("c"), collection_name("half")]
    assert held.list() == [(names[0], COUNT, True), (names[1], 0, False)]
    held.remove(names[0])
    assert [one.name for one in held.list()] == names[1:]
    held.close()


BROKEN = [
    b"<html>Sign in</html>", b"", b"null", b"[]", b"{}", b'{"result": null}', b'{"result": "x"}', b'{"result": [null]}',
    b'{"result": [{"points": null}]}', b'{"result": [{"points": [{"id": 1, "version": 0, "score": "high"}]}]}',
    b'{"result": [{"points": [{"id": 1, "version": 0, "score": NaN, "payload": {"id": "d1"}}]}]}',
    b'{"result": [{"points": [{"id": 1, "version": 0, "score": 0.5, "payload": null}]}]}',
    b'{"result": {"count": "x"}}', b'{"result": []}', b"[" * 100_000,
]  # fmt: skip
CALLS = [("GET", "/"), ("GET", "/exists"), ("GET", NAME), ("PUT", "/points"), ("POST", "/count"), ("POST", "/batch")]


@pytest.mark.parametrize(
    ("call", "body"),
    [*((("POST", "/batch"), body) for body in BROKEN), (("POST", "/count"), b'{"result": {"count": "x"}}'),
     *((call, body) for call in CALLS[:-1] for body in (b"<html>Sign in</html>", b"{}", b'{"result": "x"}'))],
)  # fmt: skip
def test_an_answer_that_is_not_of_the_protocol_is_one_error_or_none(fake, store, opened, call, body):
    build(store)
    before = store.search(VECTORS[:1], 3)
    fake.faults = [(*call, body)] * 20
    again = opened()
    try:
        if again.finished() is None:
            build(again)
        assert again.search(VECTORS[:1], 3) == before
    except (BackendError, InputError) as error:
        assert len(str(error)) < 1000


def test_the_command_line_lists_and_removes_what_runs_have_left_on_a_server(fake, opened, capsys, monkeypatch):
    def command(*words):
        return call(capsys, "cache", *words, "--store", fake.url)

    build(opened())
    opened(content="half").create(8)
    fake.api_key = "tell-nobody"
    assert command("info")[0] == 2
    assert command("info", "--key", "QDRANT_KEY")[0] == 2
    monkeypatch.setenv("QDRANT_KEY", "tell-nobody")
    code, listed, _ = command("info", "--key", "QDRANT_KEY")
    assert code == 0 and listed.splitlines()[0] == f"{fake.url}: 2 collections of runs"
    assert f"       100 points  {NAME}" in listed and f"(unfinished)  {collection_name('half')}" in listed
    code, _, told = command("clear", "harness-d", "--key", "QDRANT_KEY")
    assert (code, "is not on the server" in told) == (2, True)
    assert command("clear", NAME, "--key", "QDRANT_KEY")[1] == f"{fake.url}: 1 collection removed\n"
    assert command("clear", "--all", "--key", "QDRANT_KEY")[1] == f"{fake.url}: 1 collection removed\n"
    assert fake.engine.get_collections().collections == []
    assert "--key: is of a server" in call(capsys, "cache", "info", "--key", "QDRANT_KEY").err
