"""Reads the Parquet parts that `retrievers.vectors` writes: by key, or whole into a cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from retrievers.arrow import vectors_of
from retrievers.cache import Cache
from retrievers.errors import BackendError, InputError, Problem
from retrievers.ragged import form_of, joined
from retrievers.roots import Root
from retrievers.types import Counts, Embedded, Role
from retrievers.vectors import KEY_BYTES, Keys, list_parts, part_keys, part_name, stored

if TYPE_CHECKING:
    from pyarrow import Table

CACHE_KEY_BYTES = 16
_REMEDY = "remove the part, and embed its texts again"


class VectorRows(NamedTuple):
    """The rows of one part, or of several, in the order of the request."""

    positions: npt.NDArray[np.intp]
    """Places in the list of keys that was asked for."""
    embedded: Embedded


class Parts:
    """The vectors of one encoder and role that lie under a root; only their keys are kept in memory.

    Memory: 48 bytes a vector. Vectors are read part by part as they are asked for.
    """

    def __init__(self, root: Root, fingerprint: str, role: Role) -> None:
        """List the parts and read their keys.

        Raises:
            InputError: a part does not match its name, or has not the columns of a part.
            BackendError: the place cannot be read.
        """
        self._root = root
        self._of = (fingerprint, role)
        self._paths = list_parts(root, fingerprint, role)
        columns = [self._keys_of(path) for path in self._paths]
        numbers = [np.full(len(column), number) for number, column in enumerate(columns)]
        every = np.concatenate(columns) if columns else np.empty(0, dtype=f"V{KEY_BYTES}")
        # Unsigned big-endian words sort as the bytes do; NumPy cannot sort bytes that hold zeros.
        words = every.view(">u8").reshape(-1, KEY_BYTES // 8)
        order = np.lexsort(words.T[::-1])
        self._words = words[order].astype(np.uint64)
        self._part = (np.concatenate(numbers) if numbers else np.empty(0, dtype=np.int64))[order]

    def __len__(self) -> int:
        return len(self._words)

    def held(self, wanted: Keys) -> npt.NDArray[np.bool_]:
        """Return which of the keys some part holds."""
        return self._places(wanted) >= 0

    def get(self, wanted: Keys) -> VectorRows:
        """Read the vectors of those of the distinct keys that some part holds.

        Raises:
            InputError: a part is damaged, or its vectors have other dimensions than those of another part.
        """
        places = self._places(wanted)
        numbers = np.where(places >= 0, self._part[places] if len(self) else -1, -1)
        positions: list[npt.NDArray[np.intp]] = []
        pieces: list[Embedded] = []
        for number in np.unique(numbers[numbers >= 0]).tolist():
            asked = np.flatnonzero(numbers == number)
            positions.append(asked)
            pieces.append(self._rows(self._paths[number], wanted[asked]))
        if len({(form_of(piece.vectors), piece.vectors.shape[1]) for piece in pieces}) > 1:
            raise InputError(Problem(self._root.url, "its parts hold vectors of several dimensions or forms", _REMEDY))
        if not pieces:
            none = np.empty(0, dtype=np.int64)
            return VectorRows(np.empty(0, dtype=np.intp), Embedded(np.empty((0, 0), dtype=np.float32), none, none))
        vectors, tokens, lost = zip(*pieces, strict=True)
        whole = Embedded(joined(vectors), np.concatenate(tokens), np.concatenate(lost))
        return VectorRows(np.concatenate(positions), whole)

    def all(self) -> Iterator[tuple[Keys, Embedded]]:
        """Yield the keys and vectors of each part; errors as `get`."""
        for path in self._paths:
            names = self._keys_of(path)
            yield names, self._rows(path, names)

    def _places(self, wanted: Keys) -> npt.NDArray[np.intp]:
        """Return where each key stands among the sorted keys, -1 where it does not."""
        places = np.full(len(wanted), -1, dtype=np.intp)
        if not len(self):
            return places
        words = wanted.view(">u8").reshape(-1, KEY_BYTES // 8).astype(np.uint64)
        start = np.searchsorted(self._words[:, 0], words[:, 0])
        near = np.minimum(start, len(self) - 1)
        equal = (self._words[near] == words).all(axis=1)
        places[equal] = near[equal]
        # Keys that share their first 8 bytes with another are rare: each is looked for by itself.
        for row in np.flatnonzero(~equal & (self._words[near, 0] == words[:, 0])).tolist():
            end = np.searchsorted(self._words[:, 0], words[row, 0], side="right")
            rows = range(int(start[row]), int(end))
            places[row] = next((i for i in rows if (self._words[i] == words[row]).all()), -1)
        return places

    def _keys_of(self, path: str) -> Keys:
        import pyarrow as pa

        table = self._read(path, ["key"])
        column = table.column("key")
        if column.type != pa.binary(KEY_BYTES):
            raise self._refused(path, f"its keys are no {KEY_BYTES} bytes each")
        if column.null_count:
            raise self._refused(path, "some of its keys are missing")
        part = np.frombuffer(b"".join(column.to_pylist()), dtype=f"V{KEY_BYTES}")
        if part_name(part) != Path(path).stem:
            raise self._refused(path, "does not hold the keys that its name stands for")
        if self._of != (_metadata(table, "fingerprint"), _metadata(table, "role")):
            owner = _metadata(table, "fingerprint") or "no encoder"
            raise self._refused(path, f"is of {owner} and not of the encoder and role of its folder")
        return part

    def _rows(self, path: str, wanted: Keys) -> Embedded:
        """Read some rows of one part, in the order of the keys."""
        table = self._read(path, ["key", "vector", "tokens", "lost"])
        place = {key: row for row, key in enumerate(table.column("key").to_pylist())}
        rows = [place[key] for key in wanted.tolist()]
        dimensions = _metadata(table, "dimensions")
        try:
            vectors = vectors_of(table.column("vector"), int(dimensions) if dimensions.isdecimal() else 0)[rows]
        except ValueError as fault:
            raise self._refused(path, str(fault)) from None
        counts: list[Counts] = [table.column(name).to_numpy()[rows].astype(np.int64) for name in ("tokens", "lost")]
        return Embedded(vectors, *counts)

    def _read(self, path: str, columns: list[str]) -> Table:
        from pyarrow import ArrowException, parquet

        try:
            return parquet.read_table(
                path, columns=columns, filesystem=self._root.filesystem, page_checksum_verification=True
            )
        except FileNotFoundError as failure:
            raise BackendError(self._root.told(f"{path} was there and is gone: {failure}")) from None
        except (OSError, ArrowException) as failure:
            raise self._refused(path, f"is damaged: {failure}") from None

    def _refused(self, path: str, what: str) -> InputError:
        return InputError(Problem(self._root.told(path), self._root.told(what), _REMEDY))


def _metadata(table: Table, name: str) -> str:
    """What a part says of itself, "" where it does not."""
    value: bytes = (table.schema.metadata or {}).get(name.encode(), b"")
    return value.decode(errors="replace")


class PartSource:
    """All parts under a root, as a source of vectors for an embedder; the keys of an encoder are read once."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._parts: dict[tuple[str, Role], Parts] = {}

    def held(self, fingerprint: str, role: Role, texts: Sequence[str]) -> set[str]:
        """Return those of the distinct texts whose vectors lie in a part; errors as `Parts`."""
        present = self._opened(fingerprint, role).held(part_keys(fingerprint, role, texts)).tolist()
        return {text for text, is_held in zip(texts, present, strict=True) if is_held}

    def get(self, fingerprint: str, role: Role, texts: Sequence[str]) -> VectorRows:
        """Return which of the distinct texts lie in a part, as positions, and their vectors; errors as `Parts`."""
        return self._opened(fingerprint, role).get(part_keys(fingerprint, role, texts))

    def _opened(self, fingerprint: str, role: Role) -> Parts:
        if (fingerprint, role) not in self._parts:
            self._parts[fingerprint, role] = Parts(self._root, fingerprint, role)
        return self._parts[fingerprint, role]


def import_into(cache: Cache, root: Root) -> list[tuple[str, Role, int]]:
    """Copy all vectors under a root into a cache, part by part.

    Returns:
        Fingerprint, role and number of vectors of each.

    Raises:
        InputError: a part is damaged, or does not match its name.
        BackendError: the place cannot be read, or the cache not be written.
    """
    imported: list[tuple[str, Role, int]] = []
    for fingerprint, role in stored(root):
        rows = 0
        for names, embedded in Parts(root, fingerprint, role).all():
            cache.put(fingerprint, [name[:CACHE_KEY_BYTES] for name in names.tolist()], embedded)
            rows += len(names)
        imported.append((fingerprint, role, rows))
    return imported
