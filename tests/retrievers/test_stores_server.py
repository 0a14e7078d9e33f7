"""The store on a fake server: faults end in a complete collection, or one error."""

import re
import socket
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest

from retrievers.errors import BackendError, InputError
from retrievers.facts import CollectionFacts
from retrievers.meter import Meter
from retrievers.services import caller
from retrievers.stores import connection, qdrant
from retrievers.stores.open import collection_name
from retrievers.stores.options import StoreOptions
from tests.support.qdrant_fake import fake_qdrant, store_at
from tests.support.small import call

COUNT = 100
IDS = [f"d{i}" for i in range(COUNT)]
VECTORS = np.random.default_rng(11).standard_normal((COUNT, 8)).astype(np.float32)
UPSERTS = ("PUT", "/points")
NAME = collection_name("c")


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    for module, name, value in (
        (caller, "FIRST_PAUSE", 0.005),
        (connection, "STORE_PATIENCE", 0.1),
        (qdrant, "INDEX_POLL_SECONDS", 0.005),
        (qdrant, "SERVER_UPSERT_BATCH", 10),
    ):
        monkeypatch.setattr(module, name, value)


@pytest.fixture
def patient(hasty, monkeypatch):
    """What passes is waited for, however busy this machine is."""
    monkeypatch.setattr(connection, "STORE_PATIENCE", 60)


@pytest.fixture
def fake():
    with fake_qdrant() as running:
        yield running


@pytest.fixture
def opened(fake, meter, stack):
    """Opens a store on the server."""
    return lambda **options: stack.enter_context(
        closing(store_at(options.pop("url", fake.url), meter=meter, **options))
    )


@pytest.fixture
def meter():
    return Meter()


@pytest.fixture
def store(opened):
    return opened()


def build(store, **how):
    store.create(8, **how)
    store.upsert(IDS, VECTORS)
    store.finish({"truncated": ["d3"]})


def sent(fake):
    """How many requests brought points."""
    return sum(
        method == "PUT" and path.endswith("/points") for method, path in fake.requests
    )


def retries(meter):
    return sum(totals.counts.get("retries", 0) for totals in meter.stages().values())


def test_shards_copies_and_approximation_reach_the_server_and_are_part_of_the_name(
    fake, opened
):
    opened(shards=3, replication=2, m=24, quantization="product").create(8)
    assert (fake.created["shard_number"], fake.created["replication_factor"]) == (3, 2)
    assert fake.created["hnsw_config"]["m"] == 24
    assert fake.created["quantization_config"]["product"]["compression"] == "x16"
    choices = [
        {},
        {"shards": 3},
        {"replication": 2},
        {"m": 16},
        {"m": 16, "indexing_threshold": 5},
        {"m": 16, "full_scan_threshold": 50},
        {"quantization": "binary"},
    ]
    names = {opened(**options).collection for options in choices}
    assert len(names) == len(choices)
    assert {name[:8] for name in names} == {"harness-"}
    assert max(map(len, names)) <= 80
    assert opened(m=16, ef=7).collection == opened(m=16).collection  # of a search


DEFERRED = {"m": 16, "defer_graph": True}


@pytest.mark.parametrize(
    ("options", "indexed", "thresholds"),
    [
        ({"m": 16}, COUNT, (1, 10)),
        ({"quantization": "scalar"}, COUNT, (1, 10)),
        (DEFERRED, COUNT, (1, 10)),
        (
            {"m": 16, "indexing_threshold": 10_000, "full_scan_threshold": 5_000},
            0,
            (10_000, 5_000),
        ),
    ],
)
def test_the_server_indexes_as_set_or_reports_that_it_did_not(
    fake, opened, options, indexed, thresholds
):
    """By default a server builds a graph only above 10 MB of vectors; Edge always."""
    store = opened(**options)
    build(store)
    assert store.facts == CollectionFacts(
        server="Qdrant 1.18.3",
        points=COUNT,
        indexed_points=indexed,
        optimizer="ok",
        indexing_threshold_kb=thresholds[0],
        full_scan_threshold_kb=thresholds[1],
    )


def test_a_deferred_graph_is_built_after_the_last_point(fake, opened):
    build(opened(**DEFERRED))
    assert fake.created["hnsw_config"]["m"] == 0
    graphs = [
        update["hnsw_config"] for update in fake.updates if "hnsw_config" in update
    ]
    assert [graph["m"] for graph in graphs if graph] == [16]
    methods = [
        method
        for method, path in fake.requests
        if method == "PATCH" or path.endswith("/points")
    ]
    assert "PUT" in methods[: methods.index("PATCH")]
    assert "PUT" not in methods[methods.index("PATCH") :]


ENDPOINTS = [
    UPSERTS,
    ("PUT", NAME),
    ("GET", "/exists"),
    ("POST", "/count"),
    ("PATCH", NAME),
]


@pytest.mark.parametrize(
    ("endpoint", "fault"),
    [
        *((UPSERTS, fault) for fault in (500, 429, "cut")),
        *((endpoint, fault) for endpoint in ENDPOINTS for fault in (503, "after")),
    ],
)
def test_a_fault_that_passes_is_retried_and_counted(
    patient, fake, store, meter, fault, endpoint
):
    fake.faults += [(*endpoint, fault)]
    build(store)
    assert fake.engine.count(NAME).count == COUNT
    assert retries(meter) == 1


def test_a_search_survives_faults_and_a_missing_server_is_logged_once(
    patient, fake, store, opened, meter, caplog, monkeypatch
):
    monkeypatch.setattr(caller, "SILENT_SECONDS", 0.0)
    fake.faults += [
        ("PUT", NAME, "after"),
        ("PUT", NAME, 409),
    ]  # a creation whose answer was lost is no failure
    build(store)
    assert store.finished() is not None
    undisturbed = store.search(VECTORS[:50], 5)
    before = retries(meter)
    again = opened()
    assert again.finished() is not None
    caplog.clear()
    for faults in ((503, 503), ("cut", 502)):
        fake.faults += [("POST", "/query/batch", fault) for fault in faults]
        assert again.search(VECTORS[:50], 5) == undisturbed
    assert retries(meter) == before + 4
    [message] = [
        record.getMessage()
        for record in caplog.records
        if record.name == caller.log.name
    ]
    assert re.fullmatch(
        rf"waiting for {fake.url}: .*503.*, try 2, gives up in 60 s", message
    )


def test_an_interrupted_upload_is_continued_unless_it_is_fresh(fake, store, opened):
    """Its vectors may be of a model that has changed since."""
    store.create(8)
    store.upsert(IDS[:60], VECTORS[:60])
    fake.faults += [(*UPSERTS, 500)] * 1000
    with pytest.raises(BackendError, match=r"\(tried "):
        store.upsert(IDS[60:], VECTORS[60:])
    for anew, requests in ((False, 4), (True, 10)):  # of ten batches, six were there
        fake.faults.clear()
        fake.requests.clear()
        resumed = opened()
        assert (resumed.finished() is None) == (not anew)
        build(resumed, anew=anew)
        assert sent(fake) == requests and resumed.finished() is not None


@pytest.mark.parametrize(
    ("scheme", "error"), [("http", "ConnectError"), ("grpc", "UNAVAILABLE")]
)
def test_a_missing_server_is_one_error(opened, scheme, error):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
        message = (
            rf"{url}: {error}: .*; is the service running\? start it, then run again$"
        )
        with pytest.raises(BackendError, match=message) as refused:
            opened(url=url).finished()
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("version", ["A" * 20_000, "\x00", "", "dev", "1.15.5"])
def test_a_server_without_metadata_of_collections_or_with_no_version_is_refused(
    fake, store, version
):
    fake.version = version
    with pytest.raises(
        InputError, match=r"came with 1\.16 \(use Qdrant 1\.16 or newer"
    ) as caught:
        store.finished()
    assert len(str(caught.value)) < 300 and str(caught.value).isprintable()


def test_search_waits_until_the_server_is_green(fake, store):
    store.create(8)
    store.upsert(IDS, VECTORS)
    for statuses in (["yellow", "yellow"], ["grey", "yellow"]):
        fake.status = list(statuses)
        fake.updates.clear()
        store.finish({})
        assert fake.status == []
    assert fake.updates == [
        {"optimizers_config": {}},
        {"metadata": {"finished": {}}},
    ]  # grey is woken
    fake.status = ["red"]
    with pytest.raises(BackendError, match="indexing failed"):
        store.finish({})


BROKEN = [
    b"<html>Sign in</html>",
    b"",
    b"null",
    b"[]",
    b"{}",
    b'{"result": null}',
    b'{"result": "x"}',
    b'{"result": [null]}',
    b'{"result": [{"points": null}]}',
    b'{"result": [{"points": [{"id": 1, "version": 0, "score": "high"}]}]}',
    b'{"result": [{"points": '
    b'[{"id": 1, "version": 0, "score": 0.5, "payload": null}]}]}',
    b'{"result": {"count": "x"}}',
    b'{"result": []}',
    b"[" * 100_000,
]
CALLS = [
    ("GET", "/"),
    ("GET", "/exists"),
    ("GET", NAME),
    ("PUT", "/points"),
    ("POST", "/count"),
    ("POST", "/batch"),
]


@pytest.mark.parametrize(
    ("call", "body"),
    [
        *((("POST", "/batch"), body) for body in BROKEN),
        (("POST", "/count"), b'{"result": {"count": "x"}}'),
        *(
            (call, body)
            for call in CALLS[:-1]
            for body in (b"<html>Sign in</html>", b"{}", b'{"result": "x"}')
        ),
    ],
)
def test_an_answer_that_is_not_of_the_protocol_is_one_error_or_none(
    fake, store, opened, call, body
):
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


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
def test_the_command_line_lists_and_removes_collections(
    fake, opened, capsys, monkeypatch
):
    def command(*words, key=("--key", "QDRANT_KEY")):
        return call(capsys, "cache", *words, "--store", fake.url, *key)

    build(opened())
    opened(content="half").create(8)
    fake.api_key = "tell-nobody"
    with pytest.raises(InputError, match="refuses access \\(401\\)"):
        opened().finished()
    assert "tell-nobody" not in repr(StoreOptions(fake.url, api_key="tell-nobody"))
    assert opened(api_key="tell-nobody").finished() is not None
    assert command("info", key=()).code == command("info").code == 2
    monkeypatch.setenv("QDRANT_KEY", "tell-nobody")
    code, listed, _ = command("info")
    assert code == 0 and listed.splitlines()[0] == f"{fake.url}: 2 collections of runs"
    assert (
        f"       100 points  {NAME}" in listed
        and f"(unfinished)  {collection_name('half')}" in listed
    )
    code, _, errors = command("clear", "harness-d")
    assert (code, "is not on the server" in errors) == (2, True)
    for collection in (NAME, "--all"):
        assert command("clear", collection).out == f"{fake.url}: 1 collection removed\n"
    assert fake.engine.get_collections().collections == []
    assert (
        "--key: is of a server"
        in call(capsys, "cache", "info", "--key", "QDRANT_KEY").err
    )


def test_the_client_gets_the_address_of_a_grpc_server(opened, monkeypatch):
    clients = []
    info = SimpleNamespace(version="1.18.3")

    def client(**options):
        clients.append(options)
        return SimpleNamespace(
            info=lambda: info, collection_exists=lambda name: False, close=lambda: None
        )

    monkeypatch.setattr("qdrant_client.QdrantClient", client)
    assert opened(url="grpc://host:7").finished() is None
    expected = {
        "host": "host",
        "port": 6333,
        "grpc_port": 7,
        "prefer_grpc": True,
        "https": False,
    }
    assert clients[0].items() >= expected.items()
