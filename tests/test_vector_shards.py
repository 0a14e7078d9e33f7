"""Vectors in Parquet files: found again in the order that is asked for, refused where damaged."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrievers import shard_file
from retrievers.cache import keys
from retrievers.errors import InputError
from retrievers.ragged import SparseVectors, TokenVectors, flat
from retrievers.shard_file import Keys
from retrievers.storage import Storage, open_storage
from retrievers.types import Embedded
from retrievers.vector_shards import (
    VectorShards,
    file_name,
    folder_of,
    import_into,
    list_files,
    stored,
    vector_keys,
)
from tests.shards import write_vectors

PRINT = "fake/model@1"


def embedded(count: int, dimensions: int = 3, start: int = 0) -> Embedded:
    vectors = np.arange(start, start + count * dimensions, dtype=np.float32).reshape(count, dimensions) + 1
    return Embedded(vectors, np.arange(count) + 5, np.arange(count) % 2)


def texts(count: int, prefix: str = "text") -> list[str]:
    return [f"{prefix} {number}" for number in range(count)]


def written(folder: Path, count: int, vectors: Embedded | None = None) -> tuple[Storage, Keys, Path]:
    """A storage with the vectors of some queries, their keys and their file."""
    storage, names = open_storage(str(folder)), vector_keys(PRINT, "query", texts(count))
    return storage, names, Path(write_vectors(storage, PRINT, "query", names, vectors or embedded(count)))


@given(st.lists(st.text(), unique=True, min_size=1, max_size=40), st.integers(1, 5), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_what_was_written_is_read_in_the_order_that_is_asked_for(tmp_path_factory, words, parts, random):
    storage = open_storage(str(tmp_path_factory.mktemp("parts")))
    names = vector_keys(PRINT, "document", words)
    whole = embedded(len(words))
    for rows in np.array_split(np.arange(len(words)), parts):
        if len(rows):
            write_vectors(storage, PRINT, "document", names[rows], Embedded(*(column[rows] for column in whole)))
    order = list(range(len(words)))
    random.shuffle(order)
    asked = np.concatenate([names[order], vector_keys(PRINT, "query", words[:1])])
    held = VectorShards(storage, PRINT, "document")
    assert len(held) == len(words)
    assert held.held(asked).tolist() == [True] * len(words) + [False]
    positions, read = held.get(asked)
    for place, vector, tokens, lost in zip(positions, *read, strict=True):
        assert vector.tolist() == whole.vectors[order[place]].tolist()
        assert (tokens, lost) == (whole.tokens[order[place]], whole.truncated_tokens[order[place]])


def test_a_file_written_twice_is_one_file(tmp_path):
    storage = open_storage(tmp_path.as_uri())
    names = vector_keys(PRINT, "query", texts(4))
    first = write_vectors(storage, PRINT, "query", names, embedded(4))
    order = [2, 0, 3, 1]
    second = write_vectors(storage, PRINT, "query", names[order], Embedded(*(column[order] for column in embedded(4))))
    assert first == second
    assert [Path(path).name for path in list_files(storage, PRINT, "query")] == [file_name(names)]
    assert VectorShards(storage, PRINT, "query").get(names)[1].vectors.tolist() == embedded(4).vectors.tolist()
    assert list(stored(storage)) == [(PRINT, "query")]


def test_files_of_before_which_were_sorted_and_said_whether_they_were_paid_are_read(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    storage = open_storage(str(tmp_path))
    names, whole = vector_keys(PRINT, "query", texts(9)), embedded(9)
    order = sorted(range(9), key=names.tolist().__getitem__)
    path = write_vectors(storage, PRINT, "query", names[order], Embedded(*(column[order] for column in whole)))
    table = parquet.read_table(path)
    parquet.write_table(table.replace_schema_metadata({**table.schema.metadata, "paid": "no"}), path)
    assert parquet.read_schema(path).field("key").type == pa.binary(32)
    assert VectorShards(storage, PRINT, "query").get(names)[1].vectors.tolist() == whole.vectors.tolist()


def test_nothing_is_there_before_anything_was_written(tmp_path):
    held = VectorShards(open_storage(str(tmp_path / "nowhere")), PRINT, "query")
    names = vector_keys(PRINT, "query", texts(2))
    assert len(held) == 0
    assert not held.held(names).any()
    assert len(held.get(names)[0]) == 0
    with pytest.raises(InputError, match="holds no vectors"):
        stored(open_storage(str(tmp_path / "nowhere")))


def test_keys_that_begin_alike_are_told_apart(tmp_path):
    storage = open_storage(str(tmp_path))
    alike = [b"\0" * 8 + bytes([number]) * 24 for number in (3, 1, 2)]
    names = np.frombuffer(b"".join(alike), dtype="V32")
    write_vectors(storage, PRINT, "query", names, embedded(3))
    asked = np.frombuffer(b"".join([alike[1], b"\0" * 8 + b"\7" * 24, alike[0]]), "V32")
    positions, read = VectorShards(storage, PRINT, "query").get(asked)
    assert dict(zip(positions.tolist(), read.vectors.tolist(), strict=True)) == {
        0: embedded(3).vectors[1].tolist(),
        2: embedded(3).vectors[0].tolist(),
    }


def damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize("harm", ["renamed", "cut", "flipped", "empty", "text"])
def test_a_file_that_does_not_match_is_refused(tmp_path, harm):
    storage = open_storage(str(tmp_path))
    names = vector_keys(PRINT, "document", texts(300))
    path = Path(write_vectors(storage, PRINT, "document", names, embedded(300, 8)))
    match harm:
        case "renamed":
            path.rename(path.with_stem("0" * 64))
        case "cut":
            path.write_bytes(path.read_bytes()[:-100])
        case "flipped":
            damaged(path)
        case "empty":
            path.write_bytes(b"")
        case "text":
            path.write_text("no parquet at all")
    with pytest.raises(InputError, match=r"\.parquet"):
        VectorShards(storage, PRINT, "document").get(names)


@pytest.mark.parametrize("form", ["dense", "multivector"])
def test_vectors_of_several_dimensions_or_forms_are_refused(tmp_path, form):
    storage = open_storage(str(tmp_path))
    one, other = vector_keys(PRINT, "query", texts(2)), vector_keys(PRINT, "query", texts(2, "other"))
    write_vectors(storage, PRINT, "query", one, embedded(2, 3))
    write_vectors(storage, PRINT, "query", other, embedded(2, 4) if form == "dense" else ragged(form, 2))
    with pytest.raises(InputError, match="several dimensions"):
        VectorShards(storage, PRINT, "query").get(np.concatenate([one, other]))


def ragged(form: str, count: int) -> Embedded:
    """Texts of which some have no number at all."""
    random = np.random.default_rng(4)
    if form == "sparse":
        whole = random.standard_normal((count, 20), dtype=np.float32)
        whole[random.random((count, 20)) < 0.7] = 0
        whole[0] = 0
        vectors = SparseVectors.of(whole)
    else:
        sizes = [0, *random.integers(1, 6, count - 1).tolist()]
        vectors = TokenVectors.of([random.standard_normal((size, 4), dtype=np.float32) for size in sizes])
    return Embedded(vectors, np.arange(count), np.zeros(count, dtype=np.int64))


@pytest.mark.parametrize("form", ["sparse", "multivector"])
def test_vectors_of_every_form_are_read_as_they_were_written(tmp_path, cache, form):
    storage = open_storage(str(tmp_path))
    names, whole = vector_keys(PRINT, "document", texts(30)), ragged(form, 30)
    for rows in (np.arange(0, 11), np.arange(11, 30)):
        write_vectors(storage, PRINT, "document", names[rows], Embedded(*(column[rows] for column in whole)))
    order = np.random.default_rng(1).permutation(30)
    positions, read = VectorShards(storage, PRINT, "document").get(names[order])
    assert type(read.vectors) is type(whole.vectors)
    assert read.vectors.shape == whole.vectors.shape
    expected = flat(whole.vectors)
    for place, numbers in zip(positions.tolist(), flat(read.vectors), strict=True):
        assert numbers.tobytes() == expected[order[place]].tobytes()
    assert import_into(cache, storage) == [(PRINT, "document", 30, 0)]
    held, cached = cache.get(keys(PRINT, "document", texts(30)), form)
    assert [one.tobytes() for one in flat(cached.vectors)] == [expected[place].tobytes() for place in held.tolist()]


@pytest.mark.parametrize("what", ["fingerprint", "role"])
def test_a_file_of_another_encoder_is_refused(tmp_path, cache, what):
    storage = open_storage(str(tmp_path))
    path = Path(write_vectors(storage, PRINT, "document", vector_keys(PRINT, "document", texts(3)), embedded(3)))
    fingerprint, role = ("other", "document") if what == "fingerprint" else (PRINT, "query")
    there = Path(folder_of(storage, fingerprint, role))
    there.mkdir(parents=True)
    path.rename(there / path.name)
    with pytest.raises(InputError, match="not of the encoder and role of its folder"):
        VectorShards(storage, fingerprint, role)
    with pytest.raises(InputError, match="not of the encoder"):
        import_into(cache, storage)


@pytest.mark.parametrize(
    ("vectors", "told"),
    [
        (SparseVectors(np.array([0, 1]), np.array([9], "i4"), np.ones(1, "f4"), 5), "beyond their dimensions"),
        (SparseVectors(np.array([0, 1]), np.array([-1], "i4"), np.ones(1, "f4"), 5), "beyond their dimensions"),
        (SparseVectors(np.array([0, 1]), np.array([1], "i4"), np.zeros(1, "f4"), 5), "0 or not finite"),
        (SparseVectors(np.array([0, 2]), np.array([2, 2], "i4"), np.ones(2, "f4"), 5), "in no order"),
        (TokenVectors(np.array([0, 1]), np.full((1, 2), np.inf, "f4")), "not finite"),
        (np.array([[np.nan, 1]], "f4"), "not finite"),
    ],
)
def test_vectors_that_are_none_are_refused(tmp_path, vectors, told):
    storage, names, _ = written(tmp_path, 1, Embedded(vectors, np.ones(1, np.int64), np.zeros(1, np.int64)))
    with pytest.raises(InputError, match=told):
        VectorShards(storage, PRINT, "query").get(names)


@pytest.mark.parametrize("column", ["key", "vector", "tokens", "lost"])
def test_a_file_that_lacks_a_column_is_refused(tmp_path, column):
    from pyarrow import parquet

    storage, names, path = written(tmp_path, 1)
    parquet.write_table(parquet.read_table(path).drop_columns([column]), path)
    with pytest.raises(InputError, match=rf"\.parquet: has no column '{column}'"):
        VectorShards(storage, PRINT, "query").get(names)


def rewritten(path: Path, column: str, values) -> None:
    """Put other values into a column of a part; the rest of it stays."""
    from pyarrow import parquet

    table = parquet.read_table(path)
    place = table.column_names.index(column)
    parquet.write_table(table.set_column(place, column, values).replace_schema_metadata(table.schema.metadata), path)


@pytest.mark.parametrize("column", ["tokens", "lost"])
@pytest.mark.parametrize("values", [[-1, 1], [1, None], [1.0, 2.0], ["a", "b"], [[1], [2]], [2**62, 1]])
def test_counts_that_are_none_are_refused(tmp_path, column, values):
    import pyarrow as pa

    storage, names, path = written(tmp_path, 2)
    rewritten(path, column, pa.array(values))
    with pytest.raises(InputError, match=rf"\.parquet: its column '{column}'"):
        VectorShards(storage, PRINT, "query").get(names)


@pytest.mark.parametrize("dimensions", ["9" * 5000, str(2**31), "\u0663", ""])
def test_sparse_vectors_of_dimensions_that_are_none_are_refused(tmp_path, dimensions):
    from pyarrow import parquet

    vectors = SparseVectors(np.array([0, 1]), np.array([2], "i4"), np.ones(1, "f4"), 5)
    storage, names, path = written(tmp_path, 1, Embedded(vectors, np.ones(1), np.zeros(1)))
    stated = {"fingerprint": PRINT, "role": "query", "dimensions": dimensions}
    parquet.write_table(parquet.read_table(path).replace_schema_metadata(stated), path)
    with pytest.raises(InputError, match="beyond their dimensions"):
        VectorShards(storage, PRINT, "query").get(names)


@pytest.mark.parametrize("form", ["dense", "multivector"])
def test_a_small_file_that_unpacks_to_more_than_a_file_may_have_is_refused_unread(tmp_path, monkeypatch, form):
    import pyarrow as pa
    from pyarrow import parquet

    monkeypatch.setattr(shard_file, "MOST_BYTES", 1 << 20)
    ones = np.ones((300, 1024), np.float32)
    vectors = ones if form == "dense" else TokenVectors(np.arange(301), ones)
    storage, _, path = written(tmp_path, 300, Embedded(vectors, np.ones(300), np.zeros(300)))
    assert path.stat().st_size < 1 << 16
    monkeypatch.setattr(parquet.ParquetFile, "read", None)
    taken = pa.total_allocated_bytes()
    with pytest.raises(InputError, match=r"too large: 300 vectors, 1 MiB when unpacked"):
        VectorShards(storage, PRINT, "query")
    assert pa.total_allocated_bytes() - taken < 1 << 20


def test_a_file_of_too_many_rows_is_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setattr(shard_file, "MOST_ROWS", 9)
    storage, _, _ = written(tmp_path, 10)
    with pytest.raises(InputError, match="too large: 10 vectors"):
        VectorShards(storage, PRINT, "query")


def test_a_file_of_many_row_groups_is_read_group_by_group(tmp_path):
    from pyarrow import parquet

    storage, names, path = written(tmp_path, 10)
    parquet.write_table(parquet.read_table(path), path, row_group_size=3)
    held = VectorShards(storage, PRINT, "query")
    assert [len(some) for some, _ in held.all()] == [3, 3, 3, 1]
    order = np.array([7, 0, 9, 3])
    positions, read = held.get(names[order])
    assert read.vectors[np.argsort(positions)].tolist() == embedded(10).vectors[order].tolist()


def test_a_key_that_stands_twice_in_a_file_is_refused(tmp_path):
    storage = open_storage(str(tmp_path))
    names = vector_keys(PRINT, "query", texts(2))
    write_vectors(storage, PRINT, "query", names[[0, 1, 0]], embedded(3))
    with pytest.raises(InputError, match="1 of its keys more than once"):
        VectorShards(storage, PRINT, "query")


@pytest.mark.parametrize("form", ["dense", "sparse", "multivector"])
@pytest.mark.parametrize("change", ["rounding", "another model"])
def test_two_files_that_hold_one_text_may_differ_by_rounding_alone(tmp_path, cache, form, change):
    storage = open_storage(str(tmp_path))
    names = vector_keys(PRINT, "document", texts(8))
    whole = embedded(8) if form == "dense" else ragged(form, 8)
    write_vectors(storage, PRINT, "document", names[:5], Embedded(*(column[:5] for column in whole)))
    numbers = whole.vectors if form == "dense" else whole.vectors.values
    numbers *= np.float32(1.00001)
    if change == "another model":
        numbers[1:] = -numbers[1:]
    write_vectors(storage, PRINT, "document", names[2:], Embedded(*(column[2:] for column in whole)))
    if change == "another model":
        with pytest.raises(InputError, match=r"\.parquet: gives a text another vector than another file does"):
            VectorShards(storage, PRINT, "document")
        return
    held = VectorShards(storage, PRINT, "document")
    assert (held.repeated, len(held.get(names)[0])) == (3, 8)
    assert import_into(cache, storage) == [(PRINT, "document", 8, 3)]


@pytest.mark.parametrize("what", ["folder", "fifo", "link to nothing", "link out"])
def test_what_is_named_like_a_file_and_is_none_is_refused(tmp_path, cache, what):
    storage, _, path = written(tmp_path / "place", 2)
    write_vectors(storage, PRINT, "query", vector_keys(PRINT, "query", texts(1, "other")), embedded(1))
    path.rename(tmp_path / "outside")
    match what:
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "link to nothing":
            path.symlink_to(tmp_path / "nothing")
        case "link out":
            path.symlink_to(tmp_path / "outside")
    told = "is named like a file of vectors, and is not a file, or a link that leads out of the storage"
    with pytest.raises(InputError, match=rf"\.parquet: .*{told}"):
        VectorShards(storage, PRINT, "query")
    with pytest.raises(InputError, match=told):
        import_into(cache, storage)


def test_a_file_replaces_no_row_of_the_cache(tmp_path, cache):
    """What the cache holds is true already, and the first half of a key alone says nothing of its model."""
    storage = open_storage(str(tmp_path))
    own, theirs = keys("victim", "document", ["hello"]), vector_keys("mallory", "document", ["hello"])
    forged = np.frombuffer(own[0] + theirs.tobytes()[16:], dtype="V32")
    cache.put("victim", own, embedded(1))
    write_vectors(storage, "victim", "document", vector_keys("victim", "document", ["hello"]), embedded(1, start=9))
    assert import_into(cache, storage) == [("victim", "document", 1, 0)]
    assert cache.get(own)[1].vectors.tolist() == embedded(1).vectors.tolist()
    write_vectors(storage, "mallory", "document", forged, embedded(1, start=9))
    with pytest.raises(InputError, match="1 of the keys of mallory is that of a row of another model"):
        import_into(cache, storage)
    assert cache.get(own)[1].vectors.tolist() == embedded(1).vectors.tolist()


def test_a_damaged_row_is_replaced_by_a_file(tmp_path, cache):
    storage = open_storage(str(tmp_path))
    names = keys(PRINT, "document", ["hello"])
    write_vectors(storage, PRINT, "document", vector_keys(PRINT, "document", ["hello"]), embedded(1))
    cache.put(PRINT, names, embedded(1, start=9))
    with closing(sqlite3.connect(tmp_path / "c")) as opened:
        opened.execute("UPDATE rows SET checksum = 0")
        opened.commit()
    import_into(cache, storage)
    assert cache.get(names)[1].vectors.tolist() == embedded(1).vectors.tolist()
