"""Reads the Parquet parts that `retrievers.vectors` writes: by key, or whole into a cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from retrievers.cache import Cache
from retrievers.embedding import DRIFTED, distance
from retrievers.errors import InputError, Problem
from retrievers.part_file import REMEDY, open_part, refused
from retrievers.ragged import flat, form_of, joined
from retrievers.roots import Root
from retrievers.types import Embedded, Role
from retrievers.vectors import KEY_BYTES, Keys, list_parts, part_keys, part_name, stored

CACHE_KEY_BYTES = 16


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
        self.repeated = int((self._words[1:] == self._words[:-1]).all(axis=1).sum())
        """Keys that stand in a part and in another before it."""
        self._part = (np.concatenate(numbers) if numbers else np.empty(0, dtype=np.int64))[order]

    def __len__(self) -> int:
        return len(self._words)

    def held(self, wanted: Keys) -> npt.NDArray[np.bool_]:
        """Return which of the keys some part holds."""
        return self._places(wanted) >= 0

    def get(self, wanted: Keys) -> VectorRows:
        """Read the vectors of those of the distinct keys that some part holds.

        Raises:
            InputError: a part is damaged, its vectors have other dimensions than those of another part, or two parts
                hold unlike vectors of one text.
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
            raise InputError(Problem(self._root.url, "its parts hold vectors of several dimensions or forms", REMEDY))
        for asked, piece in zip(positions, pieces, strict=True):
            self._compare(wanted[asked], places[asked], piece)
        if not pieces:
            none = np.empty(0, dtype=np.int64)
            return VectorRows(np.empty(0, dtype=np.intp), Embedded(np.empty((0, 0), dtype=np.float32), none, none))
        return VectorRows(np.concatenate(positions), _put_together(pieces))

    def all(self) -> Iterator[tuple[Keys, Embedded]]:
        """Yield the keys and vectors of each part, one row group at a time; errors as `get`."""
        for number, path in enumerate(self._paths):
            with open_part(self._root, path) as part:
                for names, embedded in part.groups():
                    places = self._places(names)
                    first = np.flatnonzero((places >= 0) & (self._part[places] == number))
                    self._compare(names[first], places[first], _taken(embedded, first))
                    yield names, embedded

    def tokens_paid(self, wanted: Keys) -> int:
        """Return the tokens of those of the distinct keys that some part holds for which something was paid."""
        places = self._places(wanted)
        asked = set(wanted[places >= 0].tolist())
        paid = 0
        for number in np.unique(self._part[places[places >= 0]]).tolist():
            with open_part(self._root, self._paths[number]) as part:
                if part.written("paid") != "no":
                    counted = zip(part.keys().tolist(), part.tokens().tolist(), strict=True)
                    paid += sum(tokens for key, tokens in counted if key in asked)
        return paid

    def _compare(self, names: Keys, places: npt.NDArray[np.intp], embedded: Embedded) -> None:
        """Refuse a text that another part gives an unlike vector: two models have embedded for one fingerprint.

        Batches of other shapes round otherwise, which is no news.

        Args:
            names: (n,) keys.
            places: (n,) where each stands first among the sorted keys.
            embedded: what the part gives that it is of there.
        """
        rows = np.arange(len(names))
        while len(rows):
            places = places + 1
            again = places < len(self)
            again[again] = (self._words[places[again]] == self._words[places[again] - 1]).all(axis=1)
            rows, places = rows[again], places[again]
            numbers = self._part[places]
            for number in np.unique(numbers).tolist():
                some = rows[numbers == number]
                others = self._rows(self._paths[number], names[some]).vectors
                for i, row in enumerate(some.tolist()):
                    far = distance(flat(embedded.vectors[[row]])[0], flat(others[[i]])[0])
                    if far > DRIFTED:
                        what = f"gives a text another vector than another part does (1 - cosine = {far:.2g})"
                        raise refused(self._root, self._paths[number], f"{what}: they are of two models")

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
        with open_part(self._root, path) as part:
            names = part.keys()
            if part_name(names) != Path(path).stem:
                raise refused(self._root, path, "does not hold the keys that its name stands for")
            if self._of != (part.written("fingerprint"), part.written("role")):
                owner = part.written("fingerprint") or "no encoder"
                raise refused(self._root, path, f"is of {owner} and not of the encoder and role of its folder")
            return names

    def _rows(self, path: str, wanted: Keys) -> Embedded:
        """Read some rows of one part, in the order of the keys."""
        place = {key: i for i, key in enumerate(wanted.tolist())}
        order: list[int] = []
        pieces: list[Embedded] = []
        with open_part(self._root, path) as part:
            for names, embedded in part.groups():
                rows = [row for row, key in enumerate(names.tolist()) if key in place]
                order += [place[key] for key in names[rows].tolist()]
                pieces.append(_taken(embedded, np.asarray(rows, dtype=np.intp)))
        if len(order) < len(place):
            raise refused(self._root, path, "has changed while it was read")
        back = np.argsort(np.asarray(order, dtype=np.intp))
        return _taken(_put_together(pieces), back)


def _taken(embedded: Embedded, rows: npt.NDArray[np.intp]) -> Embedded:
    return Embedded(embedded.vectors[rows], embedded.tokens[rows], embedded.truncated_tokens[rows])


def _put_together(pieces: Sequence[Embedded]) -> Embedded:
    vectors, tokens, truncated = zip(*pieces, strict=True)
    return Embedded(joined(vectors), np.concatenate(tokens), np.concatenate(truncated))


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


class Imported(NamedTuple):
    """What was copied of one encoder and role."""

    fingerprint: str
    role: Role
    rows: int
    """Texts."""
    repeated: int
    """Vectors of texts that another part holds as well."""


def import_into(cache: Cache, root: Root) -> list[Imported]:
    """Copy all vectors under a root into a cache, part by part; a row that is there and whole stays.

    Raises:
        InputError: a part is damaged, does not match its name or others, or has the key of another model's row.
        BackendError: the place cannot be read, or the cache not be written.
    """
    imported: list[Imported] = []
    for fingerprint, role in stored(root):
        parts = Parts(root, fingerprint, role)
        for names, embedded in parts.all():
            cache.put(fingerprint, [name[:CACHE_KEY_BYTES] for name in names.tolist()], embedded, replace=False)
        imported.append(Imported(fingerprint, role, len(parts) - parts.repeated, parts.repeated))
    return imported
