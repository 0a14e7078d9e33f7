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
from retrievers.types import Embedded, Encoder, Role
from retrievers.vectors import Root, part_keys, write_part

PART_TEXTS = 4096
"""Texts of a part where nothing is paid: what a killed process loses. What is paid is written request by request."""

Packed = tuple[str, ...]
"""Packed that are sent together."""


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


def write_requests(requests: Iterable[Packed], role: Role, embedder: Embedder, root: Root, meter: Meter) -> Writing:
    """Embed what lies in no part yet, and write it.

    Each answered request of a provider becomes a part at once; what runs here is written by some thousand texts.

    Args:
        requests: texts, each in one request only.
        role: of the texts.
        embedder: an encoder with its cache.
        root: where parts lie; what lies there is listed first.
        meter: where counts go.

    Raises:
        BackendError: a request failed for good (what the others brought is written), or a part cannot be written.
    """
    fingerprint = embedder.encoder.fingerprint_for(role)
    paid = embedder.encoder.limits is not None
    present = Parts(root, fingerprint, role)
    written = Writing(0, 0, 0)
    for group in _groups(requests):
        missing = [_without(present, fingerprint, role, request) for request in group]
        wanted = [request for request in missing if request]
        texts = [text for request in wanted for text in request]
        starts = np.cumsum([0, *map(len, wanted)]).tolist()
        ready: list[tuple[list[str], Embedded]] = []
        parts = 0
        for positions, embedded in embedder.answered(texts, partial(_ranges, starts), role, meter):
            some = [texts[i] for i in positions.tolist()]
            if paid:
                write_part(root, fingerprint, role, part_keys(fingerprint, role, some), embedded)
                parts += 1
            else:
                ready.append((some, embedded))
        if ready:
            every = [text for some, _ in ready for text in some]
            whole = Embedded(*map(np.concatenate, zip(*(embedded for _, embedded in ready), strict=True)))
            write_part(root, fingerprint, role, part_keys(fingerprint, role, every), whole)
            parts += 1
        asked, absent = sum(map(len, group)), sum(map(len, missing))
        written = Writing(written.texts + asked, written.present + asked - absent, written.parts + parts)
    return written


def _ranges(starts: Sequence[int]) -> list[range]:
    return [range(start, end) for start, end in pairwise(starts)]


def _groups(requests: Iterable[Packed]) -> Iterator[list[Packed]]:
    """Cut requests into groups of PART_TEXTS texts."""
    stream = iter(requests)
    while first := next(stream, None):
        yield [first, *islice(stream, PART_TEXTS // len(first) - 1)] if len(first) < PART_TEXTS else [first]


def _without(present: Parts, fingerprint: str, role: Role, request: Packed) -> Packed:
    """The texts of a request that lie in no part."""
    held = present.held(part_keys(fingerprint, role, request))
    return tuple(text for text, is_held in zip(request, held.tolist(), strict=True) if not is_held)
