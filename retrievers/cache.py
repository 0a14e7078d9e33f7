"""What models gave, kept on disk.

The cache has vectors of texts, scores of pairs, replies to prompts, each computed once.

One SQLite file in write-ahead mode, safe for several processes. A row is found by the hash of all that changes
it (fingerprint, role, text), so nothing ever needs to be invalidated; texts themselves are not kept. Every row
has a checksum over its key and content: a damaged row counts as absent and is replaced.
"""

import sqlite3
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from filelock import FileLock

from retrievers.embedded import Embedded, PairScores
from retrievers.errors import BackendError, InputError, Problem
from retrievers.files.text_files import cache_folder
from retrievers.ragged import VectorForm
from retrievers.texts.token_estimate import Counts
from retrievers.vector_bytes import from_bytes, to_bytes

_VERSION = 1
_PATIENCE = 60  # seconds that another process may hold the file
_AT_ONCE = 4096  # keys in one SELECT: SQLite allows 32,766
_SCHEMA = (
    "CREATE TABLE models (id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE)",
    "CREATE TABLE rows (key BLOB NOT NULL UNIQUE, tokens INTEGER NOT NULL, lost INTEGER NOT NULL, "
    "checksum INTEGER NOT NULL, stored_at INTEGER NOT NULL, model INTEGER NOT NULL REFERENCES models, "
    "value BLOB NOT NULL)",
)
_MODELS = "SELECT fingerprint, count(*), sum(length(value)) FROM rows JOIN models ON model = id GROUP BY id"
_INSERT = "INSERT OR REPLACE INTO rows (key, tokens, lost, checksum, stored_at, model, value) VALUES "

RowPositions = npt.NDArray[np.intp]


class CachedModel(NamedTuple):
    """One model's rows, and their bytes of vectors or scores."""

    fingerprint: str
    rows: int
    bytes: int


def default_cache_path() -> Path:
    """Return the cache's file."""
    return cache_folder() / "cache.sqlite"


class Cache:
    """An open cache. Use it in the thread that opened it; close it, or use it as a context manager."""

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        """Open the file, made where absent; with `fresh`, rows that others have stored count as absent.

        Raises:
            InputError: the file cannot be made or read, or is not a cache of this version.
        """
        self.path = path
        self._opened = time.time_ns()
        self._fresh = fresh
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Any thread may close it: the one that collects a retriever that no run gave a cache.
            self._db = sqlite3.connect(
                path,
                timeout=_PATIENCE,
                isolation_level="IMMEDIATE",
                check_same_thread=False,
            )
        except (OSError, sqlite3.Error) as failure:
            raise InputError(
                Problem(str(path), f"cannot be opened: {failure}", "set HARNESS_CACHE")
            ) from None
        try:
            with (
                self._naming_the_file(),
                FileLock(path.with_suffix(".lock"), timeout=_PATIENCE),
            ):
                self._prepare()  # one process at a time: SQLite does not wait for another that begins a log
        except BaseException:
            self._db.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def cached_keys(self, row_keys: Sequence[bytes]) -> set[bytes]:
        """Return the keys in the cache, without their values."""
        return {key for (key,) in self._select("key", row_keys)}

    def get(
        self, row_keys: Sequence[bytes], form: VectorForm = "dense"
    ) -> tuple[RowPositions, Embedded]:
        """Return the positions of the distinct keys that are cached, and their rows; (0, 0) vectors if none is."""
        positions, values, tokens, truncated = self._read(row_keys)
        try:
            vectors = from_bytes(form, values)
        except ValueError as unlike:
            what = f"{self.path} holds {unlike} for one model: its server has changed; run again with --fresh"
            raise BackendError(what) from None
        return positions, Embedded(vectors, tokens, truncated)

    def put(self, fingerprint: str, keys: Sequence[bytes], embedded: Embedded) -> None:
        """Keep vectors in one transaction; rows with the same keys are replaced."""
        content = to_bytes(embedded.vectors), embedded.tokens, embedded.truncated_tokens
        self._store(fingerprint, keys, content)

    def get_scores(self, row_keys: Sequence[bytes]) -> tuple[RowPositions, PairScores]:
        """Return which of the distinct keys have scores, as positions, and the scores."""
        positions, values, tokens, truncated = self._read(row_keys)
        return positions, PairScores(
            np.frombuffer(b"".join(values), dtype="<f8"), tokens, truncated
        )

    def put_scores(
        self, fingerprint: str, keys: Sequence[bytes], scored: PairScores
    ) -> None:
        """Keep scores in one transaction; rows with the same keys are replaced."""
        values = [score.tobytes() for score in np.asarray(scored.scores, dtype="<f8")]
        self._store(fingerprint, keys, (values, scored.tokens, scored.truncated_tokens))

    def get_texts(self, row_keys: Sequence[bytes]) -> Iterator[tuple[int, str, int]]:
        """Yield which of the distinct keys have replies, as positions, the reply, and the tokens that were billed."""
        positions, values, tokens, _ = self._read(row_keys)
        return zip(
            positions.tolist(),
            (value.decode() for value in values),
            tokens.tolist(),
            strict=True,
        )

    def put_text(
        self, fingerprint: str, key: bytes, text: str, tokens: int = 0
    ) -> None:
        """Keep a reply, and the tokens that it was billed for."""
        self._store(
            fingerprint,
            [key],
            ([text.encode("utf-8", "replace")], np.array([tokens]), np.array([0])),
        )

    def info(self) -> tuple[CachedModel, ...]:
        """Return what each model has here, by fingerprint."""
        with self._naming_the_file():
            return tuple(sorted(CachedModel(*row) for row in self._db.execute(_MODELS)))

    def clear(self, fingerprint: str | None = None) -> int:
        """Remove one model's rows, or all; return how many there were, and give the space back."""
        with self._naming_the_file():
            with self._db:
                ours = "model = (SELECT id FROM models WHERE fingerprint = :name)"
                delete = f"DELETE FROM rows WHERE :name IS NULL OR {ours}"  # noqa: S608 - nothing of a user's
                removed = self._db.execute(delete, {"name": fingerprint}).rowcount
            self._db.execute("VACUUM")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return removed

    def _read(
        self, wanted: Sequence[bytes]
    ) -> tuple[RowPositions, list[bytes], Counts, Counts]:
        """Read whole rows."""
        place = {key: i for i, key in enumerate(wanted)}
        whole = [
            row
            for row in self._select("key, tokens, lost, value, checksum", wanted)
            if row[4] == _checksum(*row)
        ]
        counts = np.asarray([row[1:3] for row in whole], dtype=np.int64).reshape(-1, 2)
        positions = np.asarray([place[row[0]] for row in whole], dtype=np.intp)
        return positions, [row[3] for row in whole], counts[:, 0], counts[:, 1]

    def _select(self, columns: str, wanted: Sequence[bytes]) -> Iterator[Any]:
        # Its own rows bear the time at which it was opened: a clock that is set back does not tell what is new.
        own, opened = (
            (" AND stored_at = ?", (self._opened,)) if self._fresh else ("", ())
        )
        with self._naming_the_file():
            for start in range(0, len(wanted), _AT_ONCE):
                some = wanted[start : start + _AT_ONCE]
                where = f"key IN ({','.join('?' * len(some))}){own}"
                select = f"SELECT {columns} FROM rows WHERE {where}"  # noqa: S608 - nothing of a user's
                yield from self._db.execute(select, (*some, *opened))

    def _store(
        self,
        fingerprint: str,
        keys: Sequence[bytes],
        content: tuple[list[bytes], Counts, Counts],
    ) -> None:
        now = self._opened if self._fresh else time.time_ns()
        values, tokens, truncated = content[0], content[1].tolist(), content[2].tolist()
        with self._naming_the_file(), self._db:
            self._db.execute(
                "INSERT OR IGNORE INTO models (fingerprint) VALUES (?)", (fingerprint,)
            )
            (model,) = self._db.execute(
                "SELECT id FROM models WHERE fingerprint = ?", (fingerprint,)
            ).fetchone()
            rows = [
                (key, read, lost, _checksum(key, read, lost, value), now, model, value)
                for key, read, lost, value in zip(
                    keys, tokens, truncated, values, strict=True
                )
            ]
            for some in (
                rows[start : start + _AT_ONCE]
                for start in range(0, len(rows), _AT_ONCE)
            ):
                # One statement for all: between two, other threads of a busy process take turns.
                marks = ",".join(["(?, ?, ?, ?, ?, ?, ?)"] * len(some))
                self._db.execute(_INSERT + marks, [*chain.from_iterable(some)])

    def _prepare(self) -> None:
        self._db.execute("PRAGMA page_size = 16384")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute(
            "PRAGMA synchronous = NORMAL"
        )  # a killed process loses nothing; a power cut, the last rows
        self._db.execute(
            f"PRAGMA mmap_size = {1 << 26}"
        )  # all of it would count as memory
        self._db.execute("PRAGMA cache_size = -65536")
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if not version:
            for statement in (*_SCHEMA, f"PRAGMA user_version = {_VERSION}"):
                self._db.execute(statement)
        elif version != _VERSION:
            what = f"is a cache of version {version}, this program reads {_VERSION}"
            raise InputError(Problem(str(self.path), what, _REMEDY))

    @contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        """Say which file it is when SQLite fails."""
        try:
            yield
        except (
            sqlite3.OperationalError,
            OSError,
        ) as failure:  # locked, full, read-only
            room = "free disk space, or " if "full" in str(failure) else ""
            raise BackendError(
                f"{self.path}: {failure} ({room}set HARNESS_CACHE to another folder)"
            ) from failure
        except sqlite3.DatabaseError as failure:
            raise InputError(
                Problem(str(self.path), f"is damaged: {failure}", _REMEDY)
            ) from failure


_REMEDY = "move it away, or set HARNESS_CACHE to another folder"


def _checksum(
    key: bytes, tokens: int, truncated: int, value: bytes, _stored: object = None
) -> int:
    return zlib.crc32(value, zlib.crc32(b"%b%d,%d" % (key, tokens, truncated)))
