"""How a part comes to be where every machine reads it: whole or not at all, on disks and object stores that fail."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from retrievers.embedding import Embedder
from retrievers.encoders.hashing import HashingEncoder
from retrievers.errors import BackendError, HarnessError, InputError
from retrievers.meter import Meter
from retrievers.parts import Parts
from retrievers.remote.redaction import Expanded
from retrievers.roots import TRIES, open_root
from retrievers.sharding import PartWriter
from retrievers.vectors import list_parts, part_keys, stored, write_part
from tests.disks import small_disk
from tests.test_vectors import PRINT, embedded, texts


def test_a_writer_that_is_killed_before_the_name_leaves_no_part(tmp_path):
    """Killed between the temporary name and the rename: nothing half-written is ever read."""
    code = f"""
import os, signal
from functools import partial
from pyarrow import fs
from retrievers.roots import open_root, put_by_name
from retrievers.vectors import part_keys, write_part
from tests.disks import small_disk
from tests.test_vectors import embedded
class Killed(fs.LocalFileSystem):
    def move(self, *names):
        os.kill(os.getpid(), signal.SIGKILL)
root = open_root({str(tmp_path)!r})._replace(put=partial(put_by_name, Killed()))
write_part(root, {PRINT!r}, "query", part_keys({PRINT!r}, "query", ["a"]), embedded(1))
"""
    ended = subprocess.run([sys.executable, "-c", code], check=False, cwd=Path(__file__).parents[1])
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


def test_on_a_full_disk_the_parts_before_stay_and_nothing_half_written(tmp_path):
    with small_disk(tmp_path / "disk", "256k") as disk:
        root = open_root(str(disk))
        names = part_keys(PRINT, "query", texts(10))
        first = write_part(root, PRINT, "query", names, embedded(10))
        with pytest.raises(BackendError, match="No space left"):
            write_part(root, PRINT, "query", part_keys(PRINT, "query", texts(2_000, "other")), embedded(2_000, 300))
        assert [str(file) for file in Path(first).parent.iterdir()] == [first]
        assert Parts(root, PRINT, "query").held(names).all()


@pytest.mark.parametrize("url", ["nonsense://bucket/path", "s3://bucket/path?nonsense=1"])
def test_a_place_that_is_none_is_one_message(url):
    with pytest.raises(InputError, match="cannot be opened"):
        open_root(url)


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


@pytest.mark.parametrize("url", SECRET_PLACES)
@pytest.mark.parametrize("written", ["plain", "expanded"])
def test_no_message_shows_a_key_or_a_signature_of_the_url(credentials, monkeypatch, url, written):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    place = url if written == "plain" else Expanded(url, "${PARTS}")
    with pytest.raises(HarnessError) as refused:
        stored(open_root(place))
    assert SECRET not in str(refused.value)
    assert "AKIA" not in str(refused.value)
    shown = "…" if "[" in url else f"{url.partition(':')[0]}://"
    assert str(refused.value).startswith("${PARTS}: " if written == "expanded" else shown)


def test_a_damaged_part_does_not_show_the_url_that_its_path_repeats(tmp_path):
    url = Expanded((tmp_path / "canary-folder").as_posix(), "${PARTS}")
    names = part_keys(PRINT, "query", texts(2))
    Path(write_part(open_root(url), PRINT, "query", names, embedded(2))).write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"^\$\{PARTS\}/vectors/.*is damaged") as refused:
        Parts(open_root(url), PRINT, "query")
    assert "canary" not in str(refused.value)


def test_a_scheme_whose_package_is_missing_names_it():
    with pytest.raises(InputError, match="adlfs"):
        open_root("abfs://container@account.dfs.core.windows.net/path")


@pytest.mark.parametrize("scheme", ["memory", "local"])
def test_any_other_scheme_is_opened_by_fsspec(tmp_path, scheme):
    url = f"{scheme}://{tmp_path.as_posix()}"
    root = open_root(url)
    names = part_keys(PRINT, "document", texts(9))
    (path,) = {write_part(root, PRINT, "document", names, embedded(9)) for _ in range(2)}
    assert Parts(open_root(url), PRINT, "document").get(names).embedded.vectors.tolist() == embedded(9).vectors.tolist()
    assert list_parts(root, PRINT, "document") == [path]
    files = [one.base_name for one in root.filesystem.get_file_info(_below(root.path))]
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
def s3(credentials) -> Iterator[str]:
    """The URL of a bucket of moto's server, which speaks S3 over HTTP: not ours, on the loopback."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0, verbose=False)
    server.start()
    yield bucket(*server.get_host_and_port())
    server.stop()


def test_parts_lie_on_an_object_store(s3):
    root = open_root(s3)
    names = part_keys(PRINT, "document", texts(50))
    for _ in range(2):
        write_part(root, PRINT, "document", names, embedded(50))
    held = Parts(open_root(s3), PRINT, "document")
    assert held.get(names).embedded.vectors.shape == (50, 3)
    assert stored(root) == [(PRINT, "document")]


def test_an_object_that_is_there_stays(s3):
    root = open_root(s3)
    for content in (b"first", b"second"):
        root.put(f"{root.path}/one", content)
    with root.filesystem.open_input_stream(f"{root.path}/one") as stream:
        assert stream.read() == b"first"


def test_an_object_that_is_there_stays_where_fsspec_puts_it(tmp_path):
    root = open_root(f"memory://{tmp_path.as_posix()}")
    for content in (b"first", b"second"):
        root.put(f"{root.path}/one", content)
    with root.filesystem.open_input_stream(f"{root.path}/one") as stream:
        assert stream.read() == b"first"


class Refusing(BaseHTTPRequestHandler):
    """Answers each upload with the next of the server's refusals; when there are none left, it takes it."""

    protocol_version = "HTTP/1.1"  # by the older one nothing answers `Expect: 100-continue`, and each upload waits 1 s

    def do_GET(self):
        self.send_error(403)

    def do_PUT(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append(self.headers["If-None-Match"])
        status, code = self.server.refusals.pop(0) if self.server.refusals else (200, "")
        body = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode() if code else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


@contextmanager
def refusing_store():
    """A store of objects that refuses; a client that is refused does not try again, as where nothing answers."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    server.asked, server.refusals = [], []
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def refusing(credentials):
    with refusing_store() as server:
        yield server


CONFLICT = (409, "ConditionalRequestConflict")


@pytest.mark.parametrize(
    ("refusals", "times"), [([], 1), ([(412, "PreconditionFailed")], 1), ([CONFLICT], 2), ([CONFLICT] * 3, 4)]
)
def test_who_is_second_lets_the_first_be(refusing, monkeypatch, refusals, times):
    monkeypatch.setattr("retrievers.roots.PAUSE", 0)
    refusing.refusals += refusals
    write_part(
        open_root(bucket(*refusing.server_address)), PRINT, "query", part_keys(PRINT, "query", ["a"]), embedded(1)
    )
    assert refusing.asked == ["*"] * times


@pytest.mark.parametrize("refusals", [[(403, "AccessDenied")], [(400, "NotImplemented")], [CONFLICT] * TRIES])
def test_a_store_that_refuses_is_one_message(refusing, monkeypatch, refusals):
    monkeypatch.setattr("retrievers.roots.PAUSE", 0)
    refusing.refusals += refusals
    root = open_root(bucket(*refusing.server_address))
    with pytest.raises(BackendError, match=f"cannot be written: .*{refusals[0][1]}"):
        write_part(root, PRINT, "query", part_keys(PRINT, "query", ["a"]), embedded(1))
    assert len(refusing.asked) == len(refusals)


def test_who_writes_lists_once_and_knows_what_is_his(tmp_path, monkeypatch):
    """An actor of a cluster is called many times: to list before each call would take the square of its parts."""
    listed = []
    monkeypatch.setattr("retrievers.parts.list_parts", lambda *place: listed.append(place) or [])
    writer = PartWriter(Embedder(HashingEncoder(dimensions=8), None), "document", open_root(str(tmp_path)))
    meter = Meter()
    with meter.stage("embed"):
        assert writer.write([("a", "b"), ("c",)], meter) == (3, 0, 1)
        assert writer.write([("d", "a"), ("b", "c")], meter) == (4, 3, 1)
    assert len(listed) == 1
    assert len(list(tmp_path.rglob("*.parquet"))) == 2
