"""Every store: the same questions, the same answers."""

import itertools
import re
import subprocess
import sys
import uuid
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.errors import BackendError, InputError
from retrievers.meter import Meter
from retrievers.stores import StoreOptions, open_store
from retrievers.stores.points import DOCUMENTS, EngineHits, past_ties, point_id
from retrievers.types import RESOLUTION, ranked
from tests.support.disks import small_disk
from tests.support.store_places import KEEPING, LOCATIONS, fill

PROJECT = Path(__file__).parents[2]


def random_vectors(count, dimensions, seed=1):
    return np.random.default_rng(seed).standard_normal((count, dimensions)).astype(np.float32)


def near_and_equal(count, dimensions):
    """Groups of equal vectors, of the same direction at another length, and of directions 1e-7 apart."""
    base = random_vectors(count // 4, dimensions)
    chance = random_vectors(count // 4, dimensions, seed=2)
    return np.concatenate([base, base, base * np.float32(3), base + chance * np.float32(1e-7)])


CORPORA = {
    "random": random_vectors(300, 48),
    "wide": random_vectors(60, 384),
    "narrow": random_vectors(100, 2),
    "tied": near_and_equal(160, 8),
    "grid": np.array(list(itertools.product((-1, 0, 1), repeat=5)), dtype=np.float32)[np.arange(243) != 121],
    "one": random_vectors(1, 4),
    "vast": random_vectors(150, 16) * np.float32(1e37),  # lengths that 32 bits cannot hold
    "minute": random_vectors(150, 16) * np.float32(1e-37),
}


@pytest.mark.parametrize("corpus", CORPORA)
@pytest.mark.parametrize("location", LOCATIONS)
def test_every_store_gives_the_exact_answer_in_the_one_order(places, location, corpus):
    """The oracle: cosines in 64 bits by NumPy. A swap passes where these differ by less than 1e-6 of the largest."""
    vectors = CORPORA[corpus][: 40 if location == "folder" else None]  # a folder commits each point by itself
    ids = [f"doc {i}" for i in np.random.default_rng(3).permutation(len(vectors))]
    store = places(location)
    fill(store, ids, vectors)
    queries = np.concatenate([random_vectors(8, vectors.shape[1], seed=4), vectors[:3]])
    wide = vectors.astype(np.float64)
    asked = queries.astype(np.float64)
    cosines = (asked / np.linalg.norm(asked, axis=1, keepdims=True)) @ (
        wide / np.linalg.norm(wide, axis=1, keepdims=True)
    ).T
    for limit in (1, 10, 100):
        for scores, ranking in zip(cosines, store.search(queries, limit), strict=True):
            expected = ranked(ids, scores, limit)
            true = dict(zip(ids, scores.tolist(), strict=True))
            unit = RESOLUTION * np.abs(scores).max()
            assert len(set(ranking.doc_ids)) == len(expected)
            assert ranking.scores == pytest.approx(expected.scores, abs=2 * unit)
            for ours, theirs in zip(ranking.doc_ids, expected.doc_ids, strict=True):
                assert ours == theirs or abs(true[ours] - true[theirs]) < unit


@pytest.mark.parametrize("location", LOCATIONS)
def test_the_answer_depends_neither_on_the_batch_nor_on_what_was_asked_before(places, location):
    vectors = random_vectors(60 if location == "folder" else 300, 32)
    store = places(location)
    fill(store, [str(i) for i in range(len(vectors))], vectors)
    queries = random_vectors(12, 32, seed=5)
    together = store.search(queries, 10)
    for _ in range(2):
        assert [store.search(query[None], 10)[0] for query in queries] == together


@pytest.mark.parametrize("location", LOCATIONS)
def test_equal_vectors_come_in_descending_order_of_id_however_many_tie(places, location):
    vectors = np.tile(np.array([[1, 2, 3]], np.float32), (70, 1))
    store = places(location)
    fill(store, [f"d{i}" for i in range(70)], vectors)
    [ranking] = store.search(vectors[:1], 4)
    assert ranking.doc_ids == ("d9", "d8", "d7", "d69")


@pytest.mark.parametrize("location", LOCATIONS)
def test_a_point_sent_twice_is_missed_at_the_end(places, location):
    store = places(location)
    store.create(2)
    store.upsert(["a", "b"], np.array([[1, 0], [0, 1]], np.float32))
    store.upsert(["a"], np.array([[-1, 0]], np.float32))
    with pytest.raises(BackendError, match="2 points for 3 documents"):
        store.finish({})


@pytest.mark.parametrize("location", KEEPING)
def test_a_finished_collection_is_found_with_its_notes_and_gives_the_same_bytes(places, location):
    vectors = random_vectors(60, 16)
    first = places(location)
    assert first.finished() is None
    fill(first, [str(i) for i in range(60)], vectors, {"truncated": ["3", "7"], "empty": []})
    answers = first.search(vectors[:20], 10)
    first.close()
    for _ in range(2):
        again = places(location)
        assert again.finished() == {"truncated": ("3", "7"), "empty": ()}
        assert again.search(vectors[:20], 10) == answers
        again.close()


@pytest.mark.parametrize("location", KEEPING)
def test_a_half_built_collection_is_never_taken_for_a_finished_one(places, location):
    vectors = random_vectors(60, 16)
    ids = [str(i) for i in range(60)]
    half = places(location)
    half.create(16)
    half.upsert(ids[:25], vectors[:25])
    half.close()
    resumed = places(location)
    assert resumed.finished() is None
    fill(resumed, ids, vectors)
    assert resumed.finished() == {}
    [ranking] = resumed.search(vectors[50:51], 1)
    assert ranking.doc_ids == ("50",)


@pytest.mark.parametrize("location", KEEPING)
def test_a_finished_collection_can_be_made_anew(places, location):
    first = places(location)
    fill(first, ["a", "b"], np.eye(2, dtype=np.float32))
    first.close()
    second = places(location)
    fill(second, ["c", "d", "e"], np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0]], np.float32))
    [ranking] = second.search(np.array([[1, 0, 0]], np.float32), 5)
    assert ranking.doc_ids == ("c", "e", "d")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the refused client leaves a file open
def test_a_collection_held_by_another_process_is_the_users_mistake(places, tmp_path):
    stores = {str(tmp_path / "qdrant"): places("folder")}
    if find_spec("qdrant_edge"):
        stores["edge"] = places("edge")
    for store in stores.values():
        fill(store, ["a"], random_vectors(1, 4))
        store.close()
    holder = f"""
import sys
from pathlib import Path
from retrievers.meter import Meter
from retrievers.stores import StoreOptions, open_store
known = dict(documents=1, folder=Path({str(tmp_path)!r}), meter=Meter())
opened = [open_store(StoreOptions(place), {places.content!r}, **known) for place in {list(stores)!r}]
print([one.finished() for one in opened], flush=True)
sys.stdin.read()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", holder], cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == f"{[{}] * len(stores)}\n"
        for store in stores.values():
            with pytest.raises(InputError, match="another process uses it"):
                store.finished()
    finally:
        process.communicate()
    assert all(store.finished() == {} for store in stores.values())


def test_a_collection_without_a_list_of_its_documents_is_one_of_an_older_version(places, tmp_path):
    fill(places("edge"), ["a"], random_vectors(1, 4))
    [listed] = tmp_path.rglob("ids.json")
    listed.unlink()
    assert places("edge").finished() is None


def test_retrievers_of_one_process_may_share_a_collection(places):
    fill(places("edge", m=8), ["a", "b"], random_vectors(2, 4))
    near, far = places("edge", m=8, ef=16), places("edge", m=8, ef=200)
    query = random_vectors(1, 4)
    assert near.search(query, 2) == far.search(query, 2)
    near.close()
    assert len(far.search(query, 2)[0]) == 2


@pytest.mark.parametrize("location", ["folder", "edge"])
def test_a_file_in_the_place_of_the_folder_is_the_users_mistake(tmp_path, location):
    (tmp_path / "taken").write_text("")
    place = {"folder": str(tmp_path / "taken")}.get(location, location)
    store = open_store(StoreOptions(place), "c", documents=16_384, folder=tmp_path / "taken", meter=Meter())
    with pytest.raises(InputError, match="cannot be written"):
        fill(store, ["a"], random_vectors(1, 4))


@pytest.mark.parametrize("moment", ["create", "upsert", "search"])
def test_a_full_disk_is_told_before_the_engine_dies_of_it(places, monkeypatch, moment):
    vectors = random_vectors(20, 4)
    store = places("edge")
    fill(store, [f"d{i}" for i in range(20)], vectors)
    if moment == "upsert":
        store.create(4)
    if moment == "search":
        store.close()
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=50_000_000))
    acts = {
        "create": lambda: store.create(4),
        "upsert": lambda: store.upsert(["a"], vectors[:1]),
        "search": lambda: store.search(vectors, 1),
    }
    with pytest.raises(InputError, match=r"needs \d+ MB of disk, and 50 MB are free \(free disk space"):
        acts[moment]()
    monkeypatch.undo()
    acts[moment]()


REALLY_FULL = """
import sys
from pathlib import Path
import numpy as np
from retrievers.cache import Cache
from retrievers.identity import keys
from retrievers.errors import HarnessError
from retrievers.meter import Meter
from retrievers.stores import StoreOptions, open_store
from retrievers.types import Embedded

vectors = np.random.default_rng(1).standard_normal((4000, 384), dtype=np.float32)
names = [f"d{i}" for i in range(len(vectors))]
for kind in sys.argv[2:]:
    place = Path(sys.argv[1]) / kind
    try:
        if kind == "cache":
            with Cache(place / "cache.sqlite") as cache:
                cache.put("m", keys("m", "document", names), Embedded(vectors, *np.ones((2, 4000), np.int64)))
        else:
            location = "edge" if kind == "edge" else str(place)
            store = open_store(StoreOptions(location), "c", documents=10, folder=place, meter=Meter())
            store.create(384)
            store.upsert(names, vectors)
    except HarnessError as error:
        print(f"{kind}: {type(error).__name__}: {error}", flush=True)
"""


def test_on_a_disk_that_is_really_full_one_message_comes(tmp_path, stack):
    told = {"folder": "InputError: .*database or disk is full", "cache": "BackendError: .*database or disk is full"}
    if find_spec("qdrant_edge"):
        told = {"edge": "InputError: .*needs .* MB of disk", **told}
    for kind in told:
        stack.enter_context(small_disk(tmp_path / kind, "4m"))
    command = [sys.executable, "-c", REALLY_FULL, str(tmp_path), *told]
    said = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=600)
    assert said.returncode == 0, said.stderr
    lines = said.stdout.splitlines()
    assert len(lines) == len(told), said.stdout
    for line, (kind, expected) in zip(lines, told.items(), strict=True):
        assert re.match(f"{kind}: {expected}", line), said.stdout


@pytest.mark.parametrize(
    ("options", "least_recall"),
    [
        ({"m": 16, "ef": 256}, 0.9),
        ({"quantization": "scalar"}, 0.95),
        ({"quantization": "product", "oversampling": 8.0}, 0.5),
        ({"quantization": "binary", "oversampling": 8.0}, 0.6),
    ],
)
def test_approximate_search_finds_most_and_the_exact_one_stays_at_hand(places, options, least_recall):
    vectors = random_vectors(3000, 64)
    ids = [str(i) for i in range(len(vectors))]
    exact, approximate = places("edge"), places("edge", **options)
    fill(exact, ids, vectors)
    fill(approximate, ids, vectors)
    queries = random_vectors(50, 64, seed=6)
    expected = exact.search(queries, 10)
    assert approximate.approximate and not exact.approximate
    assert approximate.search(queries, 10, exact=True) == expected
    found = approximate.search(queries, 10)
    recall = np.mean([len(set(a.doc_ids) & set(b.doc_ids)) / 10 for a, b in zip(found, expected, strict=True)])
    assert least_recall <= recall
    assert recall < 1 or options.get("quantization") != "binary"


@pytest.mark.parametrize(
    ("options", "files"),
    [
        ({"m": 16}, ("matrix.dat", "links_compressed.bin")),
        ({"quantization": "scalar"}, ("quantized.data",)),
        ({"quantization": "product"}, ("quantized.data",)),
        ({"quantization": "binary"}, ("quantized.data",)),
    ],
)
def test_the_bytes_a_search_needs_are_those_of_the_engines_files(places, tmp_path, options, files):
    vectors = random_vectors(2000, 128)  # the engine keeps bits in words of 128
    store = places("edge", **options)
    fill(store, [str(i) for i in range(len(vectors))], vectors)
    store.close()
    on_disk = sum(path.stat().st_size for name in files for path in tmp_path.rglob(name))
    assert StoreOptions("edge", **options).bytes_read(2000, 128) == pytest.approx(on_disk, rel=0.15)


@given(st.uuids())
def test_a_uuid_stays_as_it_is_and_its_other_spellings_are_other_documents(value):
    assert point_id(str(value)) == str(value)
    spellings = {value.hex, str(value).upper(), f"{{{value}}}"} - {str(value)}
    assert str(value) not in {point_id(spelling) for spelling in spellings}


@given(st.sets(st.text(min_size=1), max_size=30))
def test_point_ids_are_uuids_and_differ(ids):
    points = [point_id(document) for document in ids]
    assert len(set(points)) == len(ids)
    assert points == [str(uuid.uuid5(DOCUMENTS, document)) for document in ids]


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=200), st.integers(1, 20), st.randoms(use_true_random=False))
def test_a_tie_at_the_limit_is_resolved_however_the_engine_orders_it(scores, limit, chance):
    rows = [(f"d{i:03}", score / 3) for i, score in enumerate(scores)]

    def ask(queries, size):
        shuffled = chance.sample(rows, len(rows))
        best = sorted(shuffled, key=lambda row: -row[1])[:size]
        return [EngineHits([row[0] for row in best], [row[1] for row in best]) for _ in queries]

    [ranking] = past_ties(ask, np.zeros((1, 2), dtype=np.float32), limit)
    ids, values = zip(*rows, strict=True)
    assert ranking.doc_ids == ranked(ids, values, limit).doc_ids


def test_a_folder_answers_a_query_that_wants_nothing_beside_one_that_does(places):
    store, vectors = places("folder"), np.eye(2, dtype=np.float32)
    store.create(2)
    store.upsert(["a", "b"], vectors, [{"l": "x"}, {"l": "y"}])
    store.finish({})
    found = store.search(vectors, 2, wanted=[(("l", ("y",)),), ()])
    assert [one.doc_ids for one in found] == [("b",), ("b", "a")]


def test_a_collection_without_points_answers_with_nothing_with_a_filter_too(places):
    store = places(":memory:", documents=0)
    store.create(2)
    found = store.search(np.eye(2, dtype=np.float32), 2, wanted=[(("l", ("y",)),), ()])
    assert [one.doc_ids for one in found] == [(), ()]
