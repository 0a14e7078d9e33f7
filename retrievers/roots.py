"""A folder or object storage, and how a file comes to be there: whole or not at all."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from retrievers.errors import BackendError, HarnessError, InputError, Problem
from retrievers.remote.redaction import HIDDEN, SHORTEST, as_written, secrets_in, shown_or_hidden, without_user

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

REMEDY = "pip install pyarrow"
BY_PYARROW = ("s3", "file", "hdfs", "viewfs")
"""Schemes that pyarrow opens. Its `gs` and `abfs` know no conditional put, which the packages of fsspec do."""
CONDITIONAL = {"abfs", "abfss", "az", "gcs", "gs", "memory", "s3", "s3a"}
"""Schemes whose package of fsspec makes a file only where none is, asked for `mode="create"`."""
PLAIN = {"allow_bucket_creation", "allow_bucket_deletion", "endpoint_override", "region", "scheme"}
"""Parameters of a URL that are no secret, so that messages may repeat what they say."""
TRIES, PAUSE = 5, 0.2
"""How often a put is tried while another upload of the same name is under way, and seconds between."""


class Root(NamedTuple):
    """Where files lie: a file system and a path on it."""

    filesystem: FileSystem
    path: str
    url: str
    """As it may be shown: `${NAME}` as it was written, no user, no query."""
    put: Callable[[str, bytes], None]
    """Writes a file to a path, whole or not at all; where an object lies at the path it stays. Raises OSError."""
    told: Callable[[object], str]
    """Gives a path or a failure as it may be shown: libraries repeat the URL, keys and signatures included."""

    @contextmanager
    def faults(self, what: str) -> Iterator[None]:
        """Say what could not be done here; libraries of file systems have exceptions of their own, of no one family.

        Raises:
            BackendError: the block failed.
        """
        try:
            yield
        except HarnessError:
            raise
        except Exception as failure:
            raise BackendError(f"{self.url}: {what}: {self.told(failure)}") from None


def open_root(url: str) -> Root:
    """Open a folder, or what a URL names: `s3://`, `file://` and `hdfs://` by pyarrow, any other scheme by fsspec.

    Raises:
        InputError: the URL is blank or cannot be read, or pyarrow or the scheme's package is not installed.
    """
    if not url.strip():  # such as a variable of the shell that is not set: not the working directory
        raise InputError(Problem("the place of vectors", "is blank", "name a folder, or s3://…, gs://…"))
    place = shown_or_hidden(url) if "://" in url else as_written(url)
    try:
        from pyarrow import fs
    except ImportError:
        raise InputError(Problem(place, "needs pyarrow", REMEDY)) from None
    if "://" not in url:
        local, path = fs.LocalFileSystem(), str(Path(url).expanduser().absolute())
        return Root(local, path, place, partial(put_by_name, local), _telling(url, place, path))
    try:
        opened = _by_pyarrow(url) if urlsplit(url).scheme in BY_PYARROW else _by_fsspec(url)
    except Exception as failure:  # packages of file systems raise what they like
        what = f"cannot be opened: {_telling(url, place)(failure) or type(failure).__name__}"
        remedy = "install its package" if isinstance(failure, ImportError) else "look at the URL"
        raise InputError(Problem(place, what, remedy)) from None
    filesystem, path, write = opened
    path = path.rstrip("/")
    return Root(filesystem, path, place, write, _telling(url, place, path))


def _telling(url: str, place: str, path: str = "") -> Callable[[object], str]:
    """Return what takes the secrets of a URL out of a text: the user, the password and what the query holds."""
    secrets = [secret for secret in _secrets_of(url) if len(secret) >= SHORTEST]
    names = [url, *([path] if place != url and len(path) >= SHORTEST else [])]  # a path may repeat all of the URL

    def told(what: object) -> str:
        text = str(what)
        for name in names:
            text = text.replace(name, place)
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return without_user(text)

    return told


def _secrets_of(url: str) -> list[str]:
    try:
        parts = urlsplit(url)
        query = parse_qs(parts.query)
    except ValueError:
        return [*secrets_in(url), url.partition("?")[2]]
    hidden = [value for name, values in query.items() if name not in PLAIN for value in values]
    raw = [one.partition("=")[2] for one in parts.query.split("&") if one.partition("=")[0] not in PLAIN]
    # A name without a password beside it is no key: in `abfs://` it is the container.
    account = [parts.username or "", parts.password, unquote(parts.password)] if parts.password else []
    return [*secrets_in(url), *account, *hidden, *raw]


def put_by_name(filesystem: FileSystem, path: str, content: bytes) -> None:
    """Write a file under a temporary name, then rename it: on a file system every byte can be seen at once."""
    folder = str(PurePosixPath(path).parent)
    filesystem.create_dir(folder, recursive=True)
    aside = f"{folder}/.{uuid.uuid4().hex}.part"
    try:
        with filesystem.open_output_stream(aside) as stream:
            stream.write(content)
        filesystem.move(aside, path)
    except BaseException:
        with suppress(OSError):  # what was half written stays under a name that is never read
            filesystem.delete_file(aside)
        raise


def _by_pyarrow(url: str) -> tuple[FileSystem, str, Callable[[str, bytes], None]]:
    from pyarrow import fs

    filesystem, path = fs.FileSystem.from_uri(url)
    by_key = isinstance(filesystem, fs.S3FileSystem)
    return filesystem, path, partial(_put_object, url, filesystem) if by_key else partial(put_by_name, filesystem)


def _by_fsspec(url: str) -> tuple[FileSystem, str, Callable[[str, bytes], None]]:
    import fsspec
    from pyarrow import fs

    opened, path = fsspec.core.url_to_fs(url)
    filesystem = fs.PyFileSystem(fs.FSSpecHandler(opened))
    conditional = urlsplit(url).scheme in CONDITIONAL
    return filesystem, path, partial(_put_by_fsspec, opened) if conditional else partial(put_by_name, filesystem)


def _put_by_fsspec(opened: Any, path: str, content: bytes) -> None:
    with suppress(FileExistsError):
        opened.pipe_file(path, content, mode="create")


def _put_object(url: str, filesystem: Any, path: str, content: bytes) -> None:
    """Put an object where none is (`If-None-Match: *`), which pyarrow cannot ask for."""
    from botocore.exceptions import BotoCoreError, ClientError

    client = _s3_client(url, filesystem.region)
    bucket, _, key = path.partition("/")
    for attempt in range(TRIES):
        try:
            client.put_object(Bucket=bucket, Key=key, Body=content, IfNoneMatch="*")
        except ClientError as refusal:
            match refusal.response["Error"]["Code"]:
                case "PreconditionFailed" | "412":
                    return
                case "ConditionalRequestConflict" | "409" if attempt + 1 < TRIES:
                    time.sleep(PAUSE)
                case "NoSuchBucket" if not attempt:
                    filesystem.create_dir(bucket)  # where the URL allows it
                case _:
                    raise OSError(str(refusal)) from None
        except BotoCoreError as failure:
            raise OSError(str(failure)) from None
        else:
            return


def _s3_client(url: str, region: str) -> Any:
    """Return a client of the place that pyarrow reads from: it takes the same parameters of the URL."""
    import boto3
    from botocore.config import Config

    parts = urlsplit(url)
    asked = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    place = asked.get("endpoint_override")
    options: dict[str, Any] = {}
    if place:
        options["endpoint_url"] = f"{asked.get('scheme', 'https')}://{place}"
    if parts.username:
        options["aws_access_key_id"] = unquote(parts.username)
        options["aws_secret_access_key"] = unquote(parts.password or "")
    # Stores that are not AWS's have buckets in the path, and know no checksums in the trailer.
    config = Config(s3={"addressing_style": "path" if place else "auto"}, request_checksum_calculation="when_required")
    return boto3.client("s3", region_name=region, config=config, **options)
