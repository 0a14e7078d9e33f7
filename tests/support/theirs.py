"""What somebody else wrote: one class with described options, others with keyword
arguments, not all with care.

`install` lays this file out as a distribution of its own, with entry points, as pip
would.
"""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from pydantic import Field

from retrievers.options.tables import Configured
from retrievers.ragged import SparseVectors
from retrievers.types import (
    CollectionFacts,
    Embedded,
    Encoder,
    Fact,
    Limits,
    PairScores,
    Price,
    Reranker,
    Retriever,
    Store,
    ranked,
)

POINTS = """
[retriever_harness.stores]
plain = theirs:Plain
[retriever_harness.encoders]
vowels = theirs:Vowels
sparse = theirs:Sparse
[retriever_harness.rerankers]
shorter = theirs:Shorter
first = theirs:First
[retriever_harness.retrievers]
overlap = theirs:Overlap
"""
BAD = (
    POINTS.replace("sparse =", "hashing =")
    + "clashing = theirs:Clashing\nbroken = theirs:Nothing\n"
)


def install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, points: str = POINTS
) -> None:
    """Leave a distribution with entry points as pip would, and a cache of its own."""
    info = folder / "site" / "theirs-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (folder / "site" / "theirs.py").write_bytes(Path(__file__).read_bytes())
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n", encoding="utf-8"
    )
    (info / "entry_points.txt").write_text(points, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder / "site"))
    importlib.invalidate_caches()
    monkeypatch.delitem(sys.modules, "theirs", raising=False)
    monkeypatch.setenv("HARNESS_CACHE", str(folder / "cache"))


class Vowels(Configured, Encoder):
    """Vectors of how often each vowel occurs in a text, behind a network; every text is
    too long for it.
    """

    vowels: str = "aeiou"
    own_price: float | None = Field(
        default=None, alias="price", description="Dollars for a million tokens."
    )
    key: str = "there"

    @property
    def fingerprint(self):
        return f"vowels-{self.vowels}"

    @property
    def provenance(self):
        return {"model": "vowels"}

    @property
    def limits(self):
        return Limits(2, 0, 0, 10, 512)

    @property
    def price(self):
        return (
            None if self.own_price is None else Price(self.own_price, "their own page")
        )

    def check(self):
        if self.key != "there":
            raise ConnectionError("no route to the key")

    def embed(self, texts, role, call):
        vectors = np.array(
            [[text.count(vowel) + 1 for vowel in self.vowels] for text in texts],
            dtype=np.float32,
        )
        tokens = np.array([len(text) for text in texts])
        call.meter.count(
            calls=1,
            tokens=int(tokens.sum()),
            usd=float(tokens.sum()) * (self.own_price or 0) / 1e6,
        )
        return Embedded(vectors, tokens, np.ones(len(texts), dtype=np.int64))


class Sparse(Vowels):
    """Gives sparse vectors and does not say so."""

    def embed(self, texts, role, call):
        embedded = super().embed(texts, role, call)
        return Embedded(SparseVectors.from_dense(embedded.vectors), *embedded[1:])


class Shorter(Reranker):
    """Prefers short documents."""

    def __init__(self, *, depth: int = 3) -> None:
        self._depth = depth

    @property
    def fingerprint(self):
        return "shorter"

    @property
    def depth(self):
        return self._depth

    def score(self, pairs, call):
        call.meter.count(calls=1)
        scores = np.array([-float(len(document)) for _, document in pairs])
        return PairScores(scores, *np.ones((2, len(pairs)), dtype=np.int64))


class First(Shorter):
    """Reads one candidate of each query, which no option says."""

    def __init__(self) -> None:
        super().__init__(depth=1)


class Plain(Store):
    """Compares every vector of a query with every one that is kept."""

    forms = ("dense",)

    def __init__(self, opening):
        self._place = opening.options.location

    @property
    def facts(self):
        return CollectionFacts(other=(Fact("plain", self._place),))

    def create(self, dimensions, *, anew=False):
        self._ids = []
        self._rows = []

    def upsert(self, ids, vectors, fields=()):
        self._ids += ids
        self._rows += [vector / np.linalg.norm(vector) for vector in vectors]

    def finish(self, notes):
        pass

    def search(self, vectors, limit, *, exact=False, query_filters=()):
        units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return [ranked(self._ids, row, limit) for row in units @ np.array(self._rows).T]


class Overlap(Retriever):
    """Ranks by the words in common."""

    def __init__(
        self,
        *,
        cached: bool = False,
        price: float = 0.0,
        fault: str = "",
        size: int = 1,
    ) -> None:
        if size < 1:
            raise ValueError(f"size is {size}")
        self._price = price
        self._cached = cached
        self._fault = fault
        self._asked = 0

    @property
    def provenance(self):
        return {
            "system": "overlap 1.0",
            **({"usd_per_million_tokens": str(self._price)} if self._price else {}),
        }

    def index(self, documents, meter):
        self._words = {
            document.id: set(document.content.split()) for document in documents
        }

    def search(self, queries, depth, meter):
        if self._fault == "raises":
            raise ConnectionError("their server is down")
        meter.count(calls=len(queries))
        if self._price:
            spent = (
                {"cached": len(queries)}
                if self._cached
                else {"usd": self._price * 1000 / 1e6}
            )
            meter.count(texts=len(queries), tokens=1000, **spent)
        return [self._found(set(query.text.split()), depth) for query in queries]

    def _found(self, query, depth):
        ids = list(self._words)
        scores = [float(len(query & theirs)) for theirs in self._words.values()]
        if self._fault == "deep":
            return ranked([*ids, "ghost"], [*scores, 99.0])
        if self._fault == "twice":
            return ranked([*ids, ids[0]], [*scores, 0.5])
        return ranked(ids, scores, depth)

    def answer(self, query, depth, meter):
        if self._fault != "stages":
            return super().answer(query, depth, meter)
        self._asked += 1
        with meter.stage("expand" if self._asked > 4 else "search"):
            return self.search([query], depth, meter)[0]


class Clashing(Overlap):
    """Has an option that every experiment has too."""

    def __init__(self, *, store: str = "somewhere") -> None:
        super().__init__()
