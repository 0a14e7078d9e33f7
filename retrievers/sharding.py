"""Embedding in shares: the requests of a run, each distinct text in one of them, written as Parquet parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from retrievers.embedding import Embedder, distinct_texts
from retrievers.meter import Meter
from retrievers.parts import Parts
from retrievers.ragged import joined
from retrievers.roots import Root
from retrievers.types import Embedded, Encoder, Role
from retrievers.vector_search import window_of
from retrievers.vectors import Keys, part_keys, write_part

PART_TEXTS = 4096
"""Texts of a part where nothing is paid: what a killed process loses. What is paid is written request by request."""

Packed = tuple[str, ...]
"""Texts that are sent together."""


class Writing(NamedTuple):
    """What became of some requests."""

    texts: int
    """Distinct texts."""
    present: int
    """Of them, those whose vectors lay in a part already."""
    parts: int
    """Parts that were written."""


def planned_requests(
    encoder: Encoder, windows: Iterable[Sequence[str]], role: Role, planned: set[bytes]
) -> Iterator[Packed]:
    """Yield the requests that a run would send with an empty cache, in its order.

    Args:
        encoder: packs texts into requests.
        windows: the texts as a run meets them; requests are planned within each.
        role: of the texts.
        planned: the keys of the texts that stand in a request already; those of the requests yielded are added.
    """
    for window in windows:
        texts = distinct_texts(window)
        names = part_keys(encoder.fingerprint_for(role), role, texts).tolist()
        for request in encoder.batches(texts, role):
            new = [i for i in request if names[i] not in planned]
            planned.update(names[i] for i in new)
            if new:
                yield tuple(texts[i] for i in new)


class PartWriter:
    """Embeds requests for one encoder and role, and writes their vectors; what lies in parts is listed once, first."""

    def __init__(self, embedder: Embedder, role: Role, root: Root) -> None:
        """List what is there; errors as `Parts`."""
        self._embedder, self._role, self._root = embedder, role, root
        self._fingerprint = embedder.encoder.fingerprint_for(role)
        self._present = Parts(root, self._fingerprint, role)
        self._paid = embedder.encoder.limits is not None
        self._own: set[bytes] = set()
        self._new: list[Keys] = []

    def write(self, requests: Iterable[Packed], meter: Meter) -> Writing:
        """Embed what lies in no part yet, and write it.

        Each answered request of a provider becomes a part at once; what runs here is written by some thousand texts.

        Args:
            requests: texts; a text of two requests that are written in one call is embedded twice.
            meter: where counts go.

        Raises:
            BackendError: a request failed for good (what the others brought is written), or a part cannot be written.
        """
        written = Writing(0, 0, 0)
        while self._new:  # what this call writes is not asked for in it again: its keys stay an array, a fourth as big
            self._own.update(self._new.pop().tolist())
        for group in _groups(requests, min(PART_TEXTS, window_of(self._embedder.encoder.form))):
            wanted = [request for whole in group if (request := self._without(whole))]
            ready: list[tuple[list[str], Embedded]] = []
            parts = 0
            if self._paid and meter.budget.limited:
                self._charge(group, meter)
            for some, embedded, sent in self._answered(wanted, meter):
                if self._paid:
                    self._put(some, embedded, paid=sent)
                    parts += 1
                else:
                    ready.append((some, embedded))
            if ready:
                vectors, tokens, lost = zip(*(embedded for _, embedded in ready), strict=True)
                whole = Embedded(joined(vectors), np.concatenate(tokens), np.concatenate(lost))
                self._put([text for some, _ in ready for text in some], whole)
                parts += 1
            asked, absent = sum(map(len, group)), sum(map(len, wanted))
            written = Writing(written.texts + asked, written.present + asked - absent, written.parts + parts)
        return written

    def _charge(self, group: list[Packed], meter: Meter) -> None:
        """Take off the budget what an earlier start of this share has paid for texts: else each start had all of it."""
        names = part_keys(self._fingerprint, self._role, [text for request in group for text in request])
        if (price := self._embedder.encoder.price) is not None:
            meter.budget.give_back(-price.usd(self._present.tokens_paid(names)))

    def _answered(self, requests: list[Packed], meter: Meter) -> Iterator[tuple[list[str], Embedded, bool]]:
        texts = [text for request in requests for text in request]
        starts = np.cumsum([0, *map(len, requests)]).tolist()
        plan = partial(_ranges, starts)
        for positions, embedded, sent in self._embedder.answered(texts, plan, self._role, meter):
            yield [texts[i] for i in positions.tolist()], embedded, sent

    def _put(self, texts: Sequence[str], embedded: Embedded, *, paid: bool = False) -> None:
        names = part_keys(self._fingerprint, self._role, texts)
        write_part(self._root, self._fingerprint, self._role, names, embedded, paid=paid)
        self._new.append(names)

    def _without(self, request: Packed) -> Packed:
        """The texts of a request that lie in no part."""
        names = part_keys(self._fingerprint, self._role, request)
        held = zip(request, self._present.held(names).tolist(), names.tolist(), strict=True)
        return tuple(text for text, is_held, name in held if not is_held and name not in self._own)


def _ranges(starts: Sequence[int]) -> list[range]:
    return [range(start, end) for start, end in pairwise(starts)]


def _groups(requests: Iterable[Packed], size: int) -> Iterator[list[Packed]]:
    """Cut requests into groups of about `size` texts."""
    stream = iter(requests)
    while first := next(stream, None):
        yield [first, *islice(stream, size // len(first) - 1)] if len(first) < size else [first]
