"""Vectors in Parquet parts: whole or not at all, found again, refused where damaged."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrievers.cache import keys
from retrievers.errors import BackendError, InputError
from retrievers.parts import Parts
from retrievers.types import Embedded
from retrievers.vectors import list_parts, open_root, part_keys, part_name, stored, write_part

PRINT = "fake/model@1"


def embedded(count: int, dimensions: int = 3, start: int = 0) -> Embedded:
    vectors = np.arange(start, start + count * dimensions, dtype=np.float32).reshape(count, dimensions) + 1
    return Embedded(vectors, np.arange(count) + 5, np.arange(count) % 2)


def texts(count: int, prefix: str = "text") -> list[str]:
    return [f"{prefix} {number}" for number in range(count)]


@given(st.lists(st.text(), unique=True, min_size=1, max_size=40), st.integers(1, 5), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_what_was_written_is_read_in_the_order_that_is_asked_for(tmp_path_factory, words, parts, random):
    root = open_root(str(tmp_path_factory.mktemp("parts")))
    names = part_keys(PRINT, "document", words)
    whole = embedded(len(words))
    for rows in np.array_split(np.arange(len(words)), parts):
        if len(rows):
            write_part(root, PRINT, "document", names[rows], Embedded(*(column[rows] for column in whole)))
    order = list(range(len(words)))
    random.shuffle(order)
    asked = np.concatenate([names[order], part_keys(PRINT, "query", words[:1])])
    held = Parts(root, PRINT, "document")
    assert len(held) == len(words)
    assert held.held(asked).tolist() == [True] * len(words) + [False]
    rows = held.get(asked)
    for place, vector, tokens, lost in zip(rows.positions, *rows.embedded, strict=True):
        assert vector.tolist() == whole.vectors[order[place]].tolist()
        assert (tokens, lost) == (whole.tokens[order[place]], whole.lost[order[place]])


def test_a_part_written_twice_is_one_part(tmp_path):
    root = open_root(tmp_path.as_uri())
    names = part_keys(PRINT, "query", texts(4))
    first = write_part(root, PRINT, "query", names, embedded(4))
    order = [2, 0, 3, 1]
    second = write_part(root, PRINT, "query", names[order], Embedded(*(column[order] for column in embedded(4))))
    assert first == second
    assert [Path(path).stem for path in list_parts(root, PRINT, "query")] == [part_name(names)]
    assert Parts(root, PRINT, "query").get(names).embedded.vectors.tolist() == embedded(4).vectors.tolist()
    assert list(stored(root)) == [(PRINT, "query")]


def test_the_first_half_of_a_key_is_the_caches(tmp_path):
    words = texts(3)
    assert [key[:16] for key in part_keys(PRINT, "document", words).tolist()] == keys(PRINT, "document", words)


def test_nothing_is_there_before_anything_was_written(tmp_path):
    held = Parts(open_root(str(tmp_path / "nowhere")), PRINT, "query")
    names = part_keys(PRINT, "query", texts(2))
    assert len(held) == 0
    assert not held.held(names).any()
    assert len(held.get(names).positions) == 0
    assert list(stored(open_root(str(tmp_path / "nowhere")))) == []


def test_keys_that_begin_alike_are_told_apart(tmp_path):
    root = open_root(str(tmp_path))
    alike = [b"\0" * 8 + bytes([number]) * 24 for number in (3, 1, 2)]
    names = np.frombuffer(b"".join(alike), dtype="V32")
    write_part(root, PRINT, "query", names, embedded(3))
    rows = Parts(root, PRINT, "query").get(np.frombuffer(b"".join([alike[1], b"\0" * 8 + b"\7" * 24, alike[0]]), "V32"))
    assert dict(zip(rows.positions.tolist(), rows.embedded.vectors.tolist(), strict=True)) == {
        0: embedded(3).vectors[1].tolist(),
        2: embedded(3).vectors[0].tolist(),
    }


def damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize("harm", ["renamed", "cut", "flipped", "empty", "text"])
def test_a_part_that_does_not_match_is_refused(tmp_path, harm):
    root = open_root(str(tmp_path))
    names = part_keys(PRINT, "document", texts(300))
    path = Path(write_part(root, PRINT, "document", names, embedded(300, 8)))
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
        Parts(root, PRINT, "document").get(names)


def test_vectors_of_several_dimensions_are_refused(tmp_path):
    root = open_root(str(tmp_path))
    one, other = part_keys(PRINT, "query", texts(2)), part_keys(PRINT, "query", texts(2, "other"))
    write_part(root, PRINT, "query", one, embedded(2, 3))
    write_part(root, PRINT, "query", other, embedded(2, 4))
    with pytest.raises(InputError, match="several dimensions"):
        Parts(root, PRINT, "query").get(np.concatenate([one, other]))


def test_vectors_that_are_not_finite_are_refused(tmp_path):
    root = open_root(str(tmp_path))
    names = part_keys(PRINT, "query", texts(1))
    write_part(root, PRINT, "query", names, Embedded(np.array([[np.nan, 1]], np.float32), np.ones(1), np.zeros(1)))
    with pytest.raises(InputError, match="not finite"):
        Parts(root, PRINT, "query").get(names)


def test_a_writer_that_is_killed_before_the_name_leaves_no_part(tmp_path):
    """Killed between the temporary name and the rename: nothing half-written is ever read."""
    code = f"""
import os, signal, numpy as np
from pyarrow import fs
from retrievers.types import Embedded
from retrievers.vectors import open_root, part_keys, write_part, Root
class Killed(fs.LocalFileSystem):
    def move(self, *names):
        os.kill(os.getpid(), signal.SIGKILL)
root = open_root({str(tmp_path)!r})
names = part_keys({PRINT!r}, "query", ["a"])
write_part(Root(Killed(), root.path, root.url), {PRINT!r}, "query", names,
           Embedded(np.ones((1, 2), np.float32), np.ones(1, np.int64), np.zeros(1, np.int64)))
"""
    ended = subprocess.run([sys.executable, "-c", code], check=False)
    assert ended.returncode == -signal.SIGKILL
    folder = tmp_path / "vectors" / "fake%2Fmodel%401" / "query"
    assert [file.suffix for file in folder.iterdir()] == [".part"]
    names = part_keys(PRINT, "query", ["a"])
    assert not Parts(open_root(str(tmp_path)), PRINT, "query").held(names).any()
    write_part(open_root(str(tmp_path)), PRINT, "query", names, embedded(1))
    assert Parts(open_root(str(tmp_path)), PRINT, "query").held(names).all()


def test_a_place_that_cannot_be_written_is_one_message(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BackendError, match="cannot be written"):
        write_part(open_root(str(tmp_path / "file")), PRINT, "query", part_keys(PRINT, "query", ["a"]), embedded(1))


def test_an_unknown_scheme_is_one_message():
    with pytest.raises(InputError, match="cannot be opened"):
        open_root("nonsense://bucket/path")


def test_parts_lie_on_an_object_store(tmp_path, monkeypatch):
    """moto's server speaks S3 over HTTP: an implementation that is not ours, on the loopback."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        url = (
            f"s3://bucket/team?endpoint_override={host}:{port}&scheme=http&region=us-east-1&allow_bucket_creation=true"
        )
        root = open_root(url)
        names = part_keys(PRINT, "document", texts(50))
        for _ in range(2):
            write_part(root, PRINT, "document", names, embedded(50))
        held = Parts(open_root(url), PRINT, "document")
        assert held.get(names).embedded.vectors.shape == (50, 3)
        assert list(stored(root)) == [(PRINT, "document")]
    finally:
        server.stop()
