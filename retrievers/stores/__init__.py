"""Stores keep vectors and find the nearest, one file each: what an experiment may say of them, and which is opened."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from retrievers import store_class, store_kinds
from retrievers.errors import InputError, Problem, nearest
from retrievers.meter import Meter
from retrievers.options import Configured, Whole
from retrievers.placeholders import expand
from retrievers.ragged import Form
from retrievers.types import Store

MEMORY = ":memory:"
EDGE = "edge"
CSR = "csr"
"""Sparse vectors as a matrix in memory."""
QDRANT = "qdrant"
"""The kind of store that keeps collections in memory, in a folder or on a server."""
SERVER = ("http://", "https://", "grpc://", "grpcs://")
PREFIX = "harness-"
"""With which the names of collections begin."""
MEMORY_LIMIT = 20_000
"""Documents up to which the in-memory client serves well; it warns beyond."""
TOKENS_LIMIT = 1_000
"""The same of documents with a vector for each token."""

KNOWN = (MEMORY, EDGE, CSR)
"""Locations that are words."""
LOWEST_INDEXING, LOWEST_FULL_SCAN = 1, 10
"""kB: the lowest thresholds that a server takes and that mean something (0 turns indexing off)."""

OF_A_COLLECTION = ("shards", "replication", "indexing_threshold", "full_scan_threshold")
"""Options by which a server builds a collection."""

Quantization = Literal["scalar", "product", "binary"]
BITS = {"scalar": 8, "product": 2, "binary": 1}
"""Bits a quantised dimension takes: one byte, one byte for four dimensions (16 times less), one bit."""


class StoreOptions(Configured):
    """A store as an experiment names it: `store = "edge"` or `store = { location = "edge", m = 16 }`.

    Search is exact unless `m` or `quantization` is given, which the edge store and servers understand.
    """

    first = "location"
    location: str | None = None
    """":memory:", "edge", a folder ("./vectors"), or a server's URL (http, https, grpc, grpcs); for sparse vectors also
    "csr"; or a store of another package. By default the form of the vectors and the corpus's size decide."""
    api_key: str | None = Field(default=None, repr=False)
    """A server's; in an experiment always "${NAME}"."""
    shards: Whole | None = None
    """Shards of a server's collection; None leaves it to the server."""
    replication: Whole | None = None
    """Copies of each shard; None leaves it to the server."""
    m: Annotated[int, Field(ge=0)] = 0
    """Links per node of an HNSW graph; 0: no graph, every vector is compared."""
    ef_construct: Annotated[int, Field(ge=4)] = 100
    """Candidates considered for each link while the graph is built."""
    defer_graph: bool = False
    """Whether a server builds the graph after all points are there, and not while they come: a faster upload."""
    indexing_threshold: Annotated[int, Field(ge=LOWEST_INDEXING)] | None = None
    """kB of vectors in a segment from which on a server builds its graph and codes; None with m or quantization: the
    lowest, so that small collections have them too."""
    full_scan_threshold: Annotated[int, Field(ge=LOWEST_FULL_SCAN)] | None = None
    """kB of vectors below which a server compares all instead of searching the graph; None with m: the lowest."""
    ef: Whole = 128
    """Candidates considered while the graph is searched."""
    quantization: Quantization | None = None
    """Compare compressed vectors first: int8, 16-fold product quantisation, or one bit a dimension."""
    oversampling: Annotated[float, Field(ge=1)] = 2.0
    """Times the limit of candidates, found by compressed vectors, that are compared in full."""

    def model_post_init(self, _: object) -> None:
        """Raise InputError with every option that no store takes."""
        problems = list(self._problems())
        if problems:
            raise InputError(problems)

    def _problems(self) -> Iterator[Problem]:
        if self.location is not None and not self.kind:
            remedy = f"{nearest(self.location, KNOWN)} known: {', '.join(KNOWN)}, a folder such as ./vectors, or a URL"
            yield Problem("store", f"{self.location!r} names no store", remedy.lstrip())
        for name in (
            () if self.on_server else ("api_key", "defer_graph", *OF_A_COLLECTION)
        ):
            if getattr(self, name) not in (None, False):
                yield Problem(
                    f"store.{name}",
                    "is for a server",
                    "give the server's URL as location",
                )
        if self.defer_graph and not self.m:
            yield Problem(
                "store.defer_graph",
                "there is no graph to build",
                "set m, the links of a node",
            )
        if self.approximate and not self.on_server and self.kind in (QDRANT, CSR):
            yield Problem(
                "store",
                f"{self.location!r} knows only exact search",
                'use "edge" or a server',
            )

    def check(self, form: str) -> None:
        """Raise InputError where these options do not suit vectors of the form."""
        if self.kind and form not in getattr(
            store_class(self.kind), "forms", Store.forms
        ):
            remedy = f"{MEMORY!r}, {EDGE!r}, a folder, or a server's URL"
            raise InputError(
                Problem(
                    "store", f"{self.location!r} does not keep {form} vectors", remedy
                )
            )
        if self.approximate and form != "dense":
            key = "m" if self.m else "quantization"
            raise InputError(
                Problem(
                    f"store.{key}",
                    f"{form} vectors are searched exactly",
                    f"leave {key} out",
                )
            )

    @property
    def kind(self) -> str:
        """The store that the location names, "" where it names none, or is left open.

        >>> [StoreOptions(one).kind for one in (":memory:", "edge", "./vectors", "http://localhost:6333")]
        ['qdrant', 'edge', 'qdrant', 'qdrant']
        """
        location = self.place
        if location == MEMORY or self.on_server:
            return QDRANT
        name, scheme, _ = location.partition("://")
        if name != QDRANT and name in store_kinds():
            return name
        is_path = any(
            mark in location for mark in ("/", "\\", "${")
        ) or location.startswith((".", "~"))
        return (
            QDRANT
            if not scheme and location and (is_path or Path(location).is_dir())
            else ""
        )

    @property
    def place(self) -> str:
        """The location with what `${NAME}` stands for, "" where it is left open."""
        return str(expand(self.location or ""))

    @property
    def on_server(self) -> bool:
        """Whether the location is a server's URL."""
        return self.place.startswith(SERVER)

    @property
    def approximate(self) -> bool:
        """Whether a search may miss some of the nearest."""
        return bool(self.m or self.quantization)

    @property
    def suffix(self) -> str:
        """What tells a collection from others of the same vectors, which are built in another way.

        >>> StoreOptions("edge", m=16, quantization="scalar").suffix
        '-hnsw16x100-scalar'
        >>> StoreOptions("http://localhost:6333", shards=3).suffix
        '-shards3'
        """
        parts = [
            f"hnsw{self.m}x{self.ef_construct}" if self.m else "",
            self.quantization or "",
        ]
        own = {name: getattr(self, name) for name in OF_A_COLLECTION}
        parts += [f"{name}{value}" for name, value in own.items() if value is not None]
        return "".join(f"-{part}" for part in parts if part)

    def resolved(self, documents: int, form: Form = "dense") -> str:
        """Return the location; where none is given "csr" for sparse vectors, else memory for a small corpus or edge.

        >>> StoreOptions().resolved(20_000), StoreOptions().resolved(20_001), StoreOptions(m=16).resolved(5)
        (':memory:', 'edge', 'edge')
        >>> StoreOptions().resolved(20_000, "sparse"), StoreOptions().resolved(20_000, "multivector")
        ('csr', 'edge')
        """
        if self.location is not None:
            return self.location
        if form == "sparse":
            return CSR
        limit = TOKENS_LIMIT if form == "multivector" else MEMORY_LIMIT
        return MEMORY if documents <= limit and not self.approximate else EDGE

    def bytes_of_numbers(self, numbers: float, form: Form) -> int:
        """Return the bytes of so many numbers of sparse vectors or of vectors of tokens.

        Four a number, and four for the index of a sparse one; in memory as CSR, the number itself takes eight.

        >>> StoreOptions().bytes_of_numbers(100, "multivector"), StoreOptions("edge").bytes_of_numbers(100, "sparse")
        (400, 800)
        """
        size = (
            4 if form == "multivector" else 12 if self.resolved(0, form) == CSR else 8
        )
        return round(numbers * size)

    def bytes_read(
        self, documents: int, dimensions: int, indexed: int | None = None
    ) -> int:
        """Return the bytes of dense vectors that a search needs at hand, which decide how much memory makes it fast.

        The vectors as 32-bit floats, or the compressed ones; and the graph, in whose lowest layer a node may have 2 m
        links of as many bits as a node's number needs. Full vectors stay on disk beside compressed ones, for the
        comparison in full.

        Args:
            documents: how many vectors there are.
            dimensions: of each.
            indexed: how many of them are in the graph and compressed; None: all.
        """
        inside = documents if indexed is None else min(indexed, documents)
        bits = BITS[self.quantization] if self.quantization else 32
        links = 2 * self.m * documents.bit_length()
        return (
            inside * -(-(dimensions * bits + links) // 8)
            + (documents - inside) * 4 * dimensions
        )


class Opening(NamedTuple):
    """What a store's class is given."""

    options: StoreOptions
    """With the location where the collection is."""
    collection: str
    """What is in it, and what it was built for."""
    documents: int
    """How many there are, about."""
    folder: Path
    """Where collections of this machine live from run to run."""
    meter: Meter
    """Counts a server's retries."""
    form: Form
    """Of the vectors."""


LONGEST = 80
"""Characters of a collection's name, at most."""


def open_store(
    options: StoreOptions,
    content: str,
    *,
    documents: int,
    folder: Path,
    meter: Meter,
    form: Form = "dense",
) -> Store:
    """Return the store that the options name; nothing is opened or connected before its first use.

    Args:
        options: as the experiment has them, with `${NAME}` expanded.
        content: what is in the collection, `<encoder fingerprint>-<corpus digest>`; its name follows from it.
        documents: how many there are, about: it decides where the options leave the location open.
        folder: where edge collections live from run to run.
        meter: counts a server's retries.
        form: of the vectors.

    Raises:
        InputError: the options do not suit the vectors, or a package is missing.
    """
    located = options.model_copy(update={"location": options.resolved(documents, form)})
    located.check(form)
    name = collection_name(content + options.suffix)
    store: Store = store_class(located.kind)(
        Opening(located, name, documents, folder, meter, form)
    )
    return store


def collection_name(content: str) -> str:
    """Return the name of the collection with a content: it says whose it is, and is short enough for every engine.

    >>> collection_name("hashing-3-4-grams-0a81ff12fb0165f4-" + "9" * 64)
    'harness-hashing-3-4-grams-0a81ff12fb0165f4-99999999999999999999-a93a8c0056fa9055'
    """
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", content)[
        : LONGEST - len(PREFIX) - len(digest) - 1
    ]
    return f"{PREFIX}{readable.strip('-')}-{digest}"
