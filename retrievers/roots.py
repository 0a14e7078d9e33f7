"""A folder or object storage, and how a file comes to be there: whole or not at all."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from retrievers.errors import InputError, Problem

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

REMEDY = "pip install pyarrow"
BY_PYARROW = ("s3", "file", "hdfs", "viewfs")
"""Schemes that pyarrow opens. Its `gs` and `abfs` know no conditional put, which the packages of fsspec do."""
CONDITIONAL = {"abfs", "abfss", "az", "gcs", "gs", "memory", "s3", "s3a"}
"""Schemes whose package of fsspec makes a file only where none is, asked for `mode="create"`."""
TRIES, PAUSE = 5, 0.2
"""How often a put is tried while another upload of the same name is under way, and seconds between."""


class Root(NamedTuple):
    """Where files lie: a file system and a path on it."""

    filesystem: FileSystem
    path: str
    url: str
    """As the user wrote it, for messages."""
    put: Callable[[str, bytes], None]
    """Writes a file to a path, whole or not at all; where an object lies at the path it stays. Raises OSError."""


def open_root(url: str) -> Root:
    """Open a folder, or what a URL names: `s3://`, `file://` and `hdfs://` by pyarrow, any other scheme by fsspec.

    Raises:
        InputError: pyarrow or the scheme's package is not installed, or the URL cannot be read.
    """
    try:
        from pyarrow import fs
    except ImportError:
        raise InputError(Problem(url, "needs pyarrow", REMEDY)) from None
    if "://" not in url:
        local = fs.LocalFileSystem()
        return Root(local, str(Path(url).expanduser().absolute()), url, partial(put_by_name, local))
    if urlsplit(url).scheme not in BY_PYARROW:
        return _by_fsspec(url)
    try:
        filesystem, path = fs.FileSystem.from_uri(url)
    except (ValueError, OSError) as failure:
        raise InputError(Problem(url, f"cannot be opened: {failure}", "look at the URL")) from None
    write = partial(_put_object, url, filesystem) if isinstance(filesystem, fs.S3FileSystem) else None
    return Root(filesystem, path.rstrip("/"), url, write or partial(put_by_name, filesystem))


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


def _by_fsspec(url: str) -> Root:
    from pyarrow import fs

    try:
        import fsspec

        opened, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as failure:
        raise InputError(Problem(url, "cannot be opened", str(failure))) from None
    filesystem = fs.PyFileSystem(fs.FSSpecHandler(opened))
    conditional = urlsplit(url).scheme in CONDITIONAL
    write = partial(_put_by_fsspec, opened) if conditional else partial(put_by_name, filesystem)
    return Root(filesystem, path.rstrip("/"), url, write)


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
