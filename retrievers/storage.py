"""Storage: a folder or object storage, and how a file is put there: whole or not at all."""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from retrievers import retrying
from retrievers.errors import BackendError, HarnessError, InputError, Problem, needing
from retrievers.placeholders import HIDDEN, SHORTEST, without_user
from retrievers.placeholders import shown as shown_address
from retrievers.retrying import RetryLoop, Transient

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

BY_PYARROW = ("s3", "file", "hdfs", "viewfs")
"""Schemes that pyarrow opens; any other is opened by fsspec."""
PLAIN = {"allow_bucket_creation", "allow_bucket_deletion", "endpoint_override", "region", "scheme"}
"""Parameters of a URL that are not secret, so that messages may repeat what they say."""
PASSING = re.compile(
    r"NETWORK_CONNECTION|SLOW_DOWN|SERVICE_UNAVAILABLE|INTERNAL_FAILURE|THROTTLING|REQUEST_TIMEOUT"
    r"|Couldn't connect|Could not connect|HTTP status (?:429|50[0234])|Connection (?:refused|reset)|timed? ?out",
    re.IGNORECASE,
)
"""What object storage says that may answer in a moment."""
COPIED = 1 << 22
"""Bytes that are copied at once."""
Answer = TypeVar("Answer")


class Storage(NamedTuple):
    """Where files lie: a file system and a path on it."""

    filesystem: FileSystem
    path: str
    url: str
    """As it may be shown: `${NAME}` as it was written, no user, no query."""
    without_secrets: Callable[[object], str]
    """Gives a path or a failure as it may be shown: libraries repeat the URL, keys and signatures included."""

    def retry(self, request: Callable[[], Answer]) -> Answer:
        """Ask the file system; a storage that is away for a moment is waited for. What it raised last is raised."""
        return RetryLoop(self._passing, retrying.PATIENCE).ask(request)

    def _passing(self, failure: BaseException) -> Transient | None:
        return Transient(f"{self.url}: {self.without_secrets(failure)}") if is_away(failure) else None

    def ask(self, what: str, request: Callable[[], Answer]) -> Answer:
        """Ask the file system as `retry` does, and say what could not be done.

        Raises:
            BackendError: it failed; libraries of file systems have exceptions of their own, of no one family.
        """
        try:
            return self.retry(request)
        except HarnessError:
            raise
        except Exception as failure:
            raise BackendError(f"{self.url}: {what}: {self.without_secrets(failure)}") from None

    def where(self, path: str) -> str:
        """Return a path here as it may be shown."""
        return self.without_secrets(self.url + path.removeprefix(self.path))

    def put(self, path: str, content: BinaryIO) -> None:
        """Copy a file there under a temporary name, then rename it: every byte can be seen at once, or none.

        Raises:
            BackendError: it cannot be written.
        """
        folder = str(PurePosixPath(path).parent)
        temporary = f"{folder}/.{uuid.uuid4().hex}.part"

        def write() -> None:
            self.filesystem.create_dir(folder, recursive=True)
            content.seek(0)
            with self.filesystem.open_output_stream(temporary) as stream:
                shutil.copyfileobj(content, stream, COPIED)
            self.filesystem.move(temporary, path)

        try:
            self.ask("a file cannot be written", write)
        except BaseException:
            with suppress(OSError):  # what was half written stays under a name that is never read
                self.filesystem.delete_file(temporary)
            raise


def open_storage(url: str) -> Storage:
    """Open a folder, or what a URL names: `s3://`, `file://` and `hdfs://` by pyarrow, any other scheme by fsspec.

    Raises:
        InputError: the URL is blank or cannot be read, or pyarrow or the scheme's package is not installed.
    """
    if not url.strip():  # such as a variable of the shell that is not set: not the working directory
        raise InputError(Problem("the place of vectors", "is blank", "name a folder, or s3://…, gs://…"))
    shown = shown_address(url) if "://" in url else url
    with needing(shown, "pyarrow", "formats"):
        from pyarrow import fs
    if "://" not in url:
        path = str(Path(url).expanduser().absolute())
        return Storage(fs.LocalFileSystem(), path, shown, _secret_remover(url, shown, path))
    try:
        filesystem, path = _opened(url)
    except Exception as failure:  # packages of file systems raise what they like
        what = f"cannot be opened: {_secret_remover(url, shown)(failure) or type(failure).__name__}"
        remedy = "install its package" if isinstance(failure, ImportError) else "look at the URL"
        raise InputError(Problem(shown, what, remedy)) from None
    path = path.rstrip("/")
    return Storage(filesystem, path, shown, _secret_remover(url, shown, path))


def _opened(url: str) -> tuple[FileSystem, str]:
    from pyarrow import fs

    if urlsplit(url).scheme in BY_PYARROW:
        filesystem, path = fs.FileSystem.from_uri(url)
        return filesystem, path
    import fsspec

    opened, path = fsspec.core.url_to_fs(url)
    return fs.PyFileSystem(fs.FSSpecHandler(opened)), path


def is_away(failure: BaseException) -> bool:
    """Whether a storage may answer in a moment; what a file system of this machine says is final."""
    if isinstance(failure, ConnectionError | TimeoutError):
        return True
    return isinstance(failure, OSError) and failure.errno is None and PASSING.search(str(failure)) is not None


def _secret_remover(url: str, shown: str, path: str = "") -> Callable[[object], str]:
    """Return what takes the secrets of a URL out of a text: the user, the password and what the query holds."""
    secrets = [secret for secret in _secrets_of(url) if len(secret) >= SHORTEST]
    # The path of a folder is what the user wrote, or follows from a variable; that of some schemes is the whole URL.
    whole = "://" in path or "://" not in url
    names = [url, *([path] if shown != url and whole and len(path) >= SHORTEST else [])]

    def without_secrets(what: object) -> str:
        text = str(what)
        for name in names:
            text = text.replace(name, shown)
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return without_user(text)

    return without_secrets


def _secrets_of(url: str) -> list[str]:
    try:
        parts = urlsplit(url)
        query = parse_qs(parts.query)
    except ValueError:
        return [url.partition("?")[2]]
    hidden = [value for name, values in query.items() if name not in PLAIN for value in values]
    raw = [one.partition("=")[2] for one in parts.query.split("&") if one.partition("=")[0] not in PLAIN]
    # A name without a password beside it is not a key: in `abfs://` it is the container.
    account = [parts.username or "", parts.password, unquote(parts.password)] if parts.password else []
    return [*account, *hidden, *raw]
