"""Who is computing what right now, so that runs side by side with one cache wait for each other's answers.

A claim is a row of the cache's file, taken in one transaction, with an expiry. Its owner holds a lock on a file beside
the cache for as long as it lives, so that the claims of a process that died are free at once.
"""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from filelock import FileLock, Timeout

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS claims (key BLOB PRIMARY KEY, owner TEXT NOT NULL, expires REAL NOT NULL) WITHOUT ROWID"
)
_AT_ONCE = 4096  # keys in one statement: SQLite allows 32,766


class Claims:
    """The claims of one process in one cache file; used in the thread of the cache."""

    def __init__(self, database: sqlite3.Connection, folder: Path) -> None:
        """Take the open file, and the folder for the owner's lock; nothing is written before the first claim."""
        self._database = database
        self._folder = folder
        self._began = time.time_ns()
        self._owner = f"{self._began:016x}{uuid.uuid4().hex[:16]}"
        self._lock: FileLock | None = None

    def settled(self) -> int:
        """Return when the first of the runs that are computing now began, this one among them, in ns since 1970.

        What was stored before then, none of them has stored.
        """
        owners = [owner for (owner,) in self._database.execute("SELECT DISTINCT owner FROM claims")]
        living = [owner for owner in owners if owner != self._owner and self._lives(owner)]
        return min([self._began, *(int(owner[:16], 16) for owner in living)])

    def take(
        self, keys: Sequence[bytes], stored: Callable[[Sequence[bytes]], set[bytes]], seconds: float
    ) -> set[bytes]:
        """Claim those of the keys that nobody else is computing, and that are not there by now.

        Args:
            keys: distinct.
            stored: tells which are there by now, inside the same transaction.
            seconds: after which the claims expire.
        """
        self._live()
        self._database.execute("BEGIN IMMEDIATE")
        try:
            taken = set(keys) - stored(keys) - self._others(keys)
            rows = [(key, self._owner, time.time() + seconds) for key in taken]
            self._database.executemany("INSERT OR REPLACE INTO claims VALUES (?, ?, ?)", rows)
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise
        return taken

    def drop(self, keys: Iterable[bytes]) -> None:
        """Give up claims; called inside the transaction that stores what was claimed."""
        if self._lock is not None:
            self._database.executemany("DELETE FROM claims WHERE key = ?", ((key,) for key in keys))

    def drop_all(self) -> None:
        """Give up all that this process claims."""
        if self._lock is not None:
            self._database.execute("DELETE FROM claims WHERE owner = ?", (self._owner,))

    def close(self) -> None:
        """Give up all claims, and the lock."""
        if self._lock is not None:
            self.drop_all()
            self._lock.release()
            self._lock_of(self._owner).unlink(missing_ok=True)
            self._lock = None

    def _live(self) -> None:
        """Show other processes that this one lives."""
        if self._lock is None:
            self._lock = FileLock(self._lock_of(self._owner))
            self._lock.acquire()

    def _others(self, keys: Sequence[bytes]) -> set[bytes]:
        """The keys that living processes claim; the claims of dead ones are removed."""
        claimed: set[bytes] = set()
        lives: dict[str, bool] = {}
        now = time.time()
        for some in _slices(keys):
            marks = ",".join("?" * len(some))
            select = f"SELECT key, owner, expires FROM claims WHERE key IN ({marks})"  # noqa: S608 - question marks
            rows = self._database.execute(select, some)
            for key, owner, expires in rows.fetchall():
                if owner not in lives:
                    lives[owner] = owner == self._owner or self._lives(owner)
                if owner != self._owner and lives[owner] and expires > now:
                    claimed.add(key)
        dead = [(owner,) for owner, alive in lives.items() if not alive]
        self._database.executemany("DELETE FROM claims WHERE owner = ?", dead)
        return claimed

    def _lives(self, owner: str) -> bool:
        path = self._lock_of(owner)
        if not path.exists():
            return False
        lock = FileLock(path)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return True
        lock.release()
        path.unlink(missing_ok=True)
        return False

    def _lock_of(self, owner: str) -> Path:
        return self._folder / f"claims-{owner}.lock"


def _slices(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(keys), _AT_ONCE):
        yield keys[start : start + _AT_ONCE]
