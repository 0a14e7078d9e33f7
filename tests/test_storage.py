"""How a file comes to be where every machine reads it: whole or not at all, on disks and object stores that fail."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from retrievers import retrying, shard_file, vector_shards
from retrievers.embedding import Embedder
from retrievers.encoders.hashing import HashingEncoder
from retrievers.errors import BackendError, InputError
from retrievers.meter import Meter
from retrievers.storage import open_storage
from retrievers.vector_shards import VectorShards, list_files, stored, vector_keys, write_shard
from tests.disks import small_disk
from tests.servers import Answering, running
from tests.shards import write_vectors
from tests.test_vector_shards import PRINT, embedded, texts

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(retrying, "FIRST_PAUSE", 0.005)
    monkeypatch.setattr(retrying, "PATIENCE", 0.05)  # pyarrow itself insists for 6 seconds


def test_a_writer_that_is_killed_before_the_name_leaves_no_part(tmp_path):
    """Killed between the temporary name and the rename: nothing half-written is ever read."""
    code = f"""
import os, signal
from pyarrow import fs
from retrievers.storage import open_storage
from retrievers.vector_shards import vector_keys
from tests.shards import write_vectors
from tests.test_vector_shards import embedded
class Killed(fs.LocalFileSystem):
    def move(self, *names):
        os.kill(os.getpid(), signal.SIGKILL)
storage = open_storage({str(tmp_path)!r})._replace(filesystem=Killed())
write_vectors(storage, {PRINT!r}, "query", vector_keys({PRINT!r}, "query", ["a"]), embedded(1))
"""
    ended = subprocess.run([sys.executable, "-c", code], check=False, cwd=Path(__file__).parents[1])
    assert ended.returncode == -signal.SIGKILL
    folder = tmp_path / "vectors" / "fake%2Fmodel%401" / "query"
    assert [file.suffix for file in folder.iterdir()] == [".part"]
    names = vector_keys(PRINT, "query", ["a"])
    assert not VectorShards(open_storage(str(tmp_path)), PRINT, "query").held(names).any()
    write_vectors(open_storage(str(tmp_path)), PRINT, "query", names, embedded(1))
    assert VectorShards(open_storage(str(tmp_path)), PRINT, "query").held(names).all()


def test_a_place_that_cannot_be_written_is_one_message(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BackendError, match="cannot be written"):
        write_vectors(
            open_storage(str(tmp_path / "file")), PRINT, "query", vector_keys(PRINT, "query", ["a"]), embedded(1)
        )


def test_on_a_full_disk_the_parts_before_stay_and_nothing_half_written(tmp_path):
    with small_disk(tmp_path / "disk", "256k") as disk:
        storage = open_storage(str(disk))
        names = vector_keys(PRINT, "query", texts(10))
        first = write_vectors(storage, PRINT, "query", names, embedded(10))
        with pytest.raises(BackendError, match="No space left"):
            write_vectors(
                storage, PRINT, "query", vector_keys(PRINT, "query", texts(2_000, "other")), embedded(2_000, 300)
            )
        assert [str(file) for file in Path(first).parent.iterdir()] == [first]
        assert VectorShards(storage, PRINT, "query").held(names).all()


@pytest.mark.parametrize("url", ["nonsense://bucket/path", "s3://bucket/path?nonsense=1"])
def test_a_place_that_is_none_is_one_message(url):
    with pytest.raises(InputError, match="cannot be opened"):
        open_storage(url)


SECRET = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEYab"
SECRET_PLACES = [
    f"s3://AKIAEXAMPLEKEYID1234:{SECRET}@nobucket/x?nonsense=1",
    f"s3://AKIAEXAMPLEKEYID1234:{SECRET}@nobucket/x?endpoint_override=127.0.0.1:9&scheme=http",
    f"ftp://user:{SECRET}@127.0.0.1:9/x",
    f"http://user:{SECRET}@127.0.0.1:9/x?sig={SECRET}",
    f"zzz://user:{SECRET}@127.0.0.1:9/x",
    f"zzz://user:{SECRET}@[::1/x?sig={SECRET}",
    f"abfs://c@a.dfs.core.windows.net/x?sig={SECRET}",
]



def test_a_scheme_whose_package_is_missing_names_it():
    with pytest.raises(InputError, match="adlfs"):
        open_storage("abfs://container@account.dfs.core.windows.net/path")


@pytest.mark.parametrize("scheme", ["memory", "local"])
def test_any_other_scheme_is_opened_by_fsspec(tmp_path, scheme):
    url = f"{scheme}://{tmp_path.as_posix()}"
    storage = open_storage(url)
    names = vector_keys(PRINT, "document", texts(9))
    (path,) = {write_vectors(storage, PRINT, "document", names, embedded(9)) for _ in range(2)}
    _, read = VectorShards(open_storage(url), PRINT, "document").get(names)
    assert read.vectors.tolist() == embedded(9).vectors.tolist()
    assert list_files(storage, PRINT, "document") == [path]
    files = [one.base_name for one in storage.filesystem.get_file_info(_below(storage.path))]
    assert [name for name in files if name.endswith(".part")] == []


def _below(path):
    from pyarrow import fs

    return fs.FileSelector(path, recursive=True)


@pytest.fixture
def credentials(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def bucket(host: str, port: int) -> str:
    return f"s3://bucket/team?endpoint_override={host}:{port}&scheme=http&region=us-east-1&allow_bucket_creation=true"


@pytest.fixture
def s3(credentials) -> Iterator[SimpleNamespace]:
    """A bucket of moto's server, which speaks S3 over HTTP: not ours, on the loopback."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0, verbose=False)
    server.start()
    yield SimpleNamespace(url=bucket(*server.get_host_and_port()), server=server)
    server.stop()


def test_parts_lie_on_an_object_store(s3):
    storage = open_storage(s3.url)
    names = vector_keys(PRINT, "document", texts(50))
    for _ in range(2):
        write_vectors(storage, PRINT, "document", names, embedded(50))
    held = VectorShards(open_storage(s3.url), PRINT, "document")
    assert held.get(names)[1].vectors.shape == (50, 3)
    assert stored(storage) == [(PRINT, "document")]


class Refusing(Answering):
    """Answers each upload with the next of the server's refusals; when there are none left, it takes it."""

    protocol_version = "HTTP/1.1"  # by the older one nothing answers `Expect: 100-continue`, and each upload waits 1 s

    def do_GET(self):
        self.send_error(403)

    def do_PUT(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append(self.headers["If-None-Match"])
        status, code = self.server.refusals.pop(0) if self.server.refusals else (200, "")
        self.send(status, f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode() if code else b"")


@contextmanager
def refusing_store():
    """A store of objects that refuses; a client that is refused does not try again, as where nothing answers."""
    with running(Refusing, asked=[], refusals=[]) as server:
        yield server


@pytest.fixture
def refusing(credentials):
    with refusing_store() as server:
        yield server


def test_a_store_that_is_away_for_a_moment_is_waited_for(s3):
    from moto.server import ThreadedMotoServer

    storage, names = open_storage(s3.url), vector_keys(PRINT, "query", ["a", "b"])
    write_vectors(storage, PRINT, "query", names[:1], embedded(1))
    port = s3.server.get_host_and_port()[1]
    s3.server.stop()
    again = ThreadedMotoServer(port=port, verbose=False)
    later = threading.Timer(1.5, again.start)
    later.start()
    write_vectors(storage, PRINT, "query", names[1:], embedded(1))
    later.join()
    held = VectorShards(storage, PRINT, "query")
    again.stop()
    assert held.held(names).all()


@pytest.mark.parametrize(
    ("failure", "again"),
    [
        (OSError("When listing objects: AWS Error NETWORK_CONNECTION during ListObjectsV2: Couldn't connect"), True),
        (OSError("AWS Error UNKNOWN (HTTP status 503)"), True),
        (ConnectionResetError(104, "Connection reset by peer"), True),
        (OSError(28, "No space left on device"), False),
        (OSError("AWS Error ACCESS_DENIED during PutObject operation"), False),
    ],
)
def test_what_may_pass_is_tried_again_and_said(tmp_path, caplog, failure, again):
    tried = []

    def request():
        tried.append(1)
        raise failure

    with pytest.raises(BackendError, match="files cannot be listed"):
        open_storage(str(tmp_path)).ask("files cannot be listed", request)
    assert (len(tried) > 1) == again
    waiting = f"waiting for {tmp_path}: {failure}, try 2, gives up in 0 s"
    assert [record.getMessage() for record in caplog.records] == [waiting] * again


@pytest.mark.parametrize("refusal", [(403, "AccessDenied"), (400, "NotImplemented")])
def test_a_store_that_refuses_is_one_message(refusing, refusal):
    refusing.refusals += [refusal] * 20
    storage = open_storage(bucket(*refusing.server_address))
    with pytest.raises(BackendError, match=r"^s3://bucket/team: a file cannot be written: .*") as told:
        write_vectors(storage, PRINT, "query", vector_keys(PRINT, "query", ["a"]), embedded(1))
    assert str(told.value).count("s3://") == 1


def test_a_shard_is_one_file_and_knows_what_lies_there(tmp_path, monkeypatch):
    embedder = Embedder(HashingEncoder(dimensions=8), None)
    storage, meter = open_storage(str(tmp_path)), Meter()
    with meter.stage("embed"):
        assert write_shard(embedder, "document", storage, [("a", "b"), ("c",)], meter) == (3, 0, 1)
        assert write_shard(embedder, "document", storage, [("d", "a"), ("b", "c")], meter) == (4, 3, 1)
        monkeypatch.setattr(shard_file, "FILE_NUMBERS", 16)  # of two texts
        monkeypatch.setattr(vector_shards, "GROUP", 2)
        assert write_shard(embedder, "document", storage, [("e", "f"), ("g", "h"), ("i",)], meter) == (5, 0, 3)
    assert len(list(tmp_path.rglob("*.parquet"))) == 5
