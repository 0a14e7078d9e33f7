"""Outputs of models, stored on disk.

The cache has vectors of texts, scores of pairs and replies to prompts, each computed
once.

It is one SQLite file in write-ahead mode, safe for several processes. The key of a row
is the hash of all that changes it (fingerprint, role, text), so nothing ever needs to
be invalidated; texts themselves are not stored. Every row has a checksum over its key
and content: a damaged row counts as absent and is replaced.
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
from retrievers.files.cache_folder import cache_folder
from retrievers.ragged import VectorForm
from retrievers.texts.token_estimate import Counts
from retrievers.vector_bytes import from_bytes, to_bytes

_SCHEMA_VERSION = 1
"""Version of the cache's tables; a cache of another one is refused."""
_LOCK_TIMEOUT_SECONDS = 60
"""Seconds that another process may lock the file."""
_ROWS_PER_STATEMENT = 4096
"""SQLite allows 32,766 parameters; a row that is inserted has seven."""
_CACHE_REMEDY = "move it away, or set HARNESS_CACHE to another folder"
_SCHEMA = (
    "CREATE TABLE models (id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE)",
    "CREATE TABLE rows (key BLOB NOT NULL UNIQUE, tokens INTEGER NOT NULL, "
    "lost INTEGER NOT NULL, checksum INTEGER NOT NULL, stored_at INTEGER NOT NULL, "
    "model INTEGER NOT NULL REFERENCES models, value BLOB NOT NULL)",
)
_SELECT_MODELS = (
    "SELECT fingerprint, count(*), sum(length(value)) "
    "FROM rows JOIN models ON model = id GROUP BY id"
)
_INSERT_ROWS = (
    "INSERT OR REPLACE INTO rows "
    "(key, tokens, lost, checksum, stored_at, model, value) VALUES "
)
_DELETE_ROWS = (
    "DELETE FROM rows WHERE :name IS NULL "
    "OR model = (SELECT id FROM models WHERE fingerprint = :name)"
)
_DELETE_ROW = "DELETE FROM rows WHERE key = ?"

RowPositions = npt.NDArray[np.intp]


class CachedModel(NamedTuple):
    """The number of one model's rows, and the bytes of their content."""

    fingerprint: str
    rows: int
    bytes: int
    """Bytes of the vectors, scores or replies, without keys."""


class _Row(NamedTuple):
    """One row without its model, in the order of the columns that `_read` selects."""

    key: bytes
    tokens: int
    truncated_tokens: int
    value: bytes
    checksum: int


class _StoredRows(NamedTuple):
    """The intact rows of some keys."""

    positions: RowPositions
    """The positions of the rows' keys among the keys that were looked up, which are
    distinct."""
    values: list[bytes]
    tokens: Counts
    truncated_tokens: Counts


class _NewRows(NamedTuple):
    """The content of rows to store."""

    keys: Sequence[bytes]
    values: Sequence[bytes]
    tokens: Counts
    truncated_tokens: Counts


def default_cache_path() -> Path:
    """Return the path of the cache's file."""
    return cache_folder() / "cache.sqlite"


class Cache:
    """An open cache.

    Use it in the thread that opened it; close it, or use it as a context manager.
    """

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        """Open the file, or create it.

        Args:
            path: the file.
            fresh: whether rows that were stored before count as absent.

        Raises:
            InputError: the file cannot be opened, or is not a cache of this version.
            BackendError: it cannot be written, or is locked for a minute.
        """
        self.path = path
        self._opened_at = _microseconds()
        self._fresh = fresh
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Any thread may close it: the garbage collector's, for a retriever outside
            # a run.
            self._db = sqlite3.connect(
                path,
                timeout=_LOCK_TIMEOUT_SECONDS,
                isolation_level="IMMEDIATE",
                check_same_thread=False,
            )
        except (OSError, sqlite3.Error) as failure:
            problem = f"cannot be opened: {failure}"
            raise InputError(Problem(str(path), problem, "set HARNESS_CACHE")) from None
        # One process at a time: SQLite does not wait for another that creates a log.
        lock = FileLock(path.with_suffix(".lock"), timeout=_LOCK_TIMEOUT_SECONDS)
        try:
            with self._convert_errors(), lock:
                self._prepare()
        except BaseException:
            self._db.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def cached_keys(self, row_keys: Sequence[bytes]) -> set[bytes]:
        """Return the keys in the cache; rows are not read, nor checked for damage."""
        return {key for (key,) in self._select("key", row_keys)}

    def get(
        self, row_keys: Sequence[bytes], form: VectorForm = "dense"
    ) -> tuple[RowPositions, Embedded]:
        """Return which keys are cached, by position, and their vectors in that order.

        The order is SQLite's. The vectors are (0, 0) if none is cached.

        Args:
            row_keys: distinct keys: of equal ones only the last has its vector.
            form: the form of the vectors.

        Raises:
            BackendError: they have several widths.
        """
        rows = self._read(row_keys)
        try:
            vectors = from_bytes(form, rows.values)
        except ValueError as difference:
            raise BackendError(
                f"{self.path} holds {difference} for one model: its server has "
                "changed; run again with --fresh (in Python fresh=True)"
            ) from None
        return rows.positions, Embedded(vectors, rows.tokens, rows.truncated_tokens)

    def put(self, fingerprint: str, keys: Sequence[bytes], embedded: Embedded) -> None:
        """Store vectors in one transaction; rows with the same keys are replaced."""
        rows = _NewRows(
            keys=keys,
            values=to_bytes(embedded.vectors),
            tokens=embedded.tokens,
            truncated_tokens=embedded.truncated_tokens,
        )
        self._store(fingerprint, rows)

    def get_scores(self, row_keys: Sequence[bytes]) -> tuple[RowPositions, PairScores]:
        """Return the positions of the distinct keys with scores, and the scores."""
        rows = self._read(row_keys)
        scores = np.frombuffer(b"".join(rows.values), dtype="<f8")
        return rows.positions, PairScores(scores, rows.tokens, rows.truncated_tokens)

    def put_scores(
        self, fingerprint: str, keys: Sequence[bytes], scored: PairScores
    ) -> None:
        """Store scores in one transaction; rows with the same keys are replaced."""
        scores = np.asarray(scored.scores, dtype="<f8")
        rows = _NewRows(
            keys=keys,
            values=[score.tobytes() for score in scores],
            tokens=scored.tokens,
            truncated_tokens=scored.truncated_tokens,
        )
        self._store(fingerprint, rows)

    def get_texts(self, row_keys: Sequence[bytes]) -> Iterator[tuple[int, str, int]]:
        """Yield the position of each distinct key with a reply, the reply, its tokens.

        The tokens are those that were billed.
        """
        rows = self._read(row_keys)
        texts = (value.decode() for value in rows.values)
        return zip(rows.positions.tolist(), texts, rows.tokens.tolist(), strict=True)

    def put_text(
        self, fingerprint: str, key: bytes, text: str, tokens: int = 0
    ) -> None:
        """Store a reply, and the tokens that were billed for it."""
        row = _NewRows(
            keys=[key],
            values=[text.encode("utf-8", "replace")],
            tokens=np.array([tokens]),
            truncated_tokens=np.array([0]),
        )
        self._store(fingerprint, row)

    def remove(self, row_keys: Sequence[bytes]) -> None:
        """Remove the rows of some keys, in one transaction."""
        with self._convert_errors(), self._db:
            self._db.executemany(_DELETE_ROW, [(key,) for key in row_keys])

    def info(self) -> tuple[CachedModel, ...]:
        """Return what each model has in the cache, by fingerprint."""
        with self._convert_errors():
            rows = self._db.execute(_SELECT_MODELS)
            return tuple(sorted(CachedModel(*row) for row in rows))

    def clear(self, fingerprint: str | None = None) -> int:
        """Remove one model's rows, or all; free their space and return their number."""
        with self._convert_errors():
            with self._db:
                removed = self._db.execute(_DELETE_ROWS, {"name": fingerprint}).rowcount
            self._db.execute("VACUUM")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return removed

    def _read(self, keys: Sequence[bytes]) -> _StoredRows:
        """Read the rows of some keys, without those that are damaged."""
        position_of_key = {key: i for i, key in enumerate(keys)}
        rows = []
        for columns in self._select("key, tokens, lost, value, checksum", keys):
            row = _Row(*columns)
            if row.checksum == _checksum(
                row.key, row.tokens, row.truncated_tokens, row.value
            ):
                rows.append(row)
        return _StoredRows(
            positions=np.asarray([position_of_key[row.key] for row in rows], np.intp),
            values=[row.value for row in rows],
            tokens=np.asarray([row.tokens for row in rows], np.int64),
            truncated_tokens=np.asarray(
                [row.truncated_tokens for row in rows], np.int64
            ),
        )

    def _select(self, columns: str, keys: Sequence[bytes]) -> Iterator[Any]:
        """Yield some columns of the rows with these keys.

        A fresh cache marks its own rows with the time at which it was opened, because
        the clock may be set back.
        """
        fresh_condition = " AND stored_at = ?" if self._fresh else ""
        fresh_parameters = (self._opened_at,) if self._fresh else ()
        with self._convert_errors():
            for start in range(0, len(keys), _ROWS_PER_STATEMENT):
                batch = keys[start : start + _ROWS_PER_STATEMENT]
                placeholders = ",".join("?" * len(batch))
                # The statement has only this module's own text.
                select = (
                    f"SELECT {columns} FROM rows "  # noqa: S608
                    f"WHERE key IN ({placeholders}){fresh_condition}"
                )
                yield from self._db.execute(select, (*batch, *fresh_parameters))

    def _store(self, fingerprint: str, new_rows: _NewRows) -> None:
        """Store rows in one transaction."""
        stored_at = self._opened_at if self._fresh else _microseconds()
        with self._convert_errors(), self._db:
            model_id = self._model_id(fingerprint)
            rows = [
                (
                    key,
                    tokens,
                    truncated,
                    _checksum(key, tokens, truncated, value),
                    stored_at,
                    model_id,
                    value,
                )
                for key, value, tokens, truncated in zip(
                    new_rows.keys,
                    new_rows.values,
                    new_rows.tokens.tolist(),
                    new_rows.truncated_tokens.tolist(),
                    strict=True,
                )
            ]
            for start in range(0, len(rows), _ROWS_PER_STATEMENT):
                # One statement for many rows: between two, other threads of a busy
                # process take turns.
                batch = rows[start : start + _ROWS_PER_STATEMENT]
                placeholders = ",".join(["(?, ?, ?, ?, ?, ?, ?)"] * len(batch))
                parameters = [*chain.from_iterable(batch)]
                self._db.execute(_INSERT_ROWS + placeholders, parameters)

    def _model_id(self, fingerprint: str) -> int:
        """Return the id of a model's row, which is inserted if it is absent."""
        self._db.execute(
            "INSERT OR IGNORE INTO models (fingerprint) VALUES (?)", (fingerprint,)
        )
        row = self._db.execute(
            "SELECT id FROM models WHERE fingerprint = ?", (fingerprint,)
        ).fetchone()
        model_id: int = row[0]
        return model_id

    def _prepare(self) -> None:
        """Set SQLite's options, and create the tables of a new file."""
        # Of a new file alone, and before its first table.
        self._db.execute("PRAGMA page_size = 16384")
        self._db.execute("PRAGMA journal_mode = WAL")
        # A killed process loses nothing; a power cut loses the last rows.
        self._db.execute("PRAGMA synchronous = NORMAL")
        # A limit, because all mapped bytes count as memory of the process.
        self._db.execute(f"PRAGMA mmap_size = {1 << 26}")
        self._db.execute("PRAGMA cache_size = -65536")
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if not version:
            for statement in (*_SCHEMA, f"PRAGMA user_version = {_SCHEMA_VERSION}"):
                self._db.execute(statement)
        elif version != _SCHEMA_VERSION:
            problem = (
                f"is a cache of version {version}, this program reads {_SCHEMA_VERSION}"
            )
            raise InputError(Problem(str(self.path), problem, _CACHE_REMEDY))

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        """Turn SQLite's errors into messages that name the file."""
        try:
            yield
        except (sqlite3.OperationalError, OSError) as failure:
            # The file is locked or read-only, or the disk is full.
            space_remedy = "free disk space, or " if "full" in str(failure) else ""
            remedy = f"{space_remedy}set HARNESS_CACHE to another folder"
            raise BackendError(f"{self.path}: {failure} ({remedy})") from failure
        except sqlite3.DatabaseError as failure:
            problem = f"is damaged: {failure}"
            raise InputError(
                Problem(str(self.path), problem, _CACHE_REMEDY)
            ) from failure


def _microseconds() -> int:
    """Return the time since 1970; nanoseconds pass SQLite's integers in 2262."""
    return time.time_ns() // 1_000


def _checksum(key: bytes, tokens: int, truncated_tokens: int, value: bytes) -> int:
    """Return the checksum of a row."""
    counted_key = b"%b%d,%d" % (key, tokens, truncated_tokens)
    return zlib.crc32(value, zlib.crc32(counted_key))
