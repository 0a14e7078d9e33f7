"""The options of a store."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from retrievers import store_class, store_kinds
from retrievers.errors import InputError, Problem, nearest_word
from retrievers.options.placeholders import expand
from retrievers.options.tables import Configured, PositiveInt
from retrievers.ragged import VectorForm
from retrievers.store import Store

MEMORY_LOCATION = ":memory:"
EDGE_LOCATION = "edge"
CSR_LOCATION = "csr"
"""Sparse vectors as a matrix in memory."""
QDRANT_KIND = "qdrant"
"""The kind of store that keeps collections in memory, in a folder or on a server."""
SERVER_SCHEMES = ("http://", "https://", "grpc://", "grpcs://")


MAX_MEMORY_DOCUMENTS = 20_000
"""Documents up to which the in-memory client serves well; it warns beyond."""
MAX_MEMORY_MULTIVECTOR_DOCUMENTS = 1_000
"""The same of documents with a vector for each token."""

NAMED_LOCATIONS = (MEMORY_LOCATION, EDGE_LOCATION, CSR_LOCATION)
"""Locations that are words."""
MIN_INDEXING_KB, MIN_FULL_SCAN_KB = 1, 10
"""kB: the lowest thresholds that a server takes and that mean something (0 turns indexing off)."""

COLLECTION_OPTIONS = (
    "shards",
    "replication",
    "indexing_threshold",
    "full_scan_threshold",
)
"""Options by which a server builds a collection."""

Quantization = Literal["scalar", "product", "binary"]
QUANTIZATION_BITS = {"scalar": 8, "product": 2, "binary": 1}
"""Bits a quantised dimension takes: one byte, one byte for four dimensions (16 times less), one bit."""


class StoreOptions(Configured):
    """A store as an experiment names it: `store = "edge"` or `store = { location = "edge", m = 16 }`.

    Search is exact unless `m` or `quantization` is given, which the edge store and servers understand.
    """

    positional_option = "location"
    location: str | None = None
    """":memory:", "edge", a folder ("./vectors"), or a server's URL (http, https, grpc, grpcs); for sparse vectors also
    "csr"; or a store of another package. By default the form of the vectors and the corpus's size decide."""
    api_key: str | None = Field(default=None, repr=False)
    """A server's; in an experiment always "${NAME}"."""
    shards: PositiveInt | None = None
    """Shards of a server's collection; None leaves it to the server."""
    replication: PositiveInt | None = None
    """Copies of each shard; None leaves it to the server."""
    m: Annotated[int, Field(ge=0)] = 0
    """Links per node of an HNSW graph; 0: no graph, every vector is compared."""
    ef_construct: Annotated[int, Field(ge=4)] = 100
    """Candidates considered for each link while the graph is built."""
    defer_graph: bool = False
    """Whether a server builds the graph after all points are there, and not while they come: a faster upload."""
    indexing_threshold: Annotated[int, Field(ge=MIN_INDEXING_KB)] | None = None
    """kB of vectors in a segment from which on a server builds its graph and codes; None with m or quantization: the
    lowest, so that small collections have them too."""
    full_scan_threshold: Annotated[int, Field(ge=MIN_FULL_SCAN_KB)] | None = None
    """kB of vectors below which a server compares all instead of searching the graph; None with m: the lowest."""
    ef: PositiveInt = 128
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
            remedy = f"{nearest_word(self.location, NAMED_LOCATIONS)} known: {', '.join(NAMED_LOCATIONS)}, a folder such as ./vectors, or a URL"  # noqa: E501
            yield Problem("store", f"{self.location!r} names no store", remedy.lstrip())
        for name in (
            () if self.on_server else ("api_key", "defer_graph", *COLLECTION_OPTIONS)
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
        if (
            self.approximate
            and not self.on_server
            and self.kind in (QDRANT_KIND, CSR_LOCATION)
        ):
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
            remedy = (
                f"{MEMORY_LOCATION!r}, {EDGE_LOCATION!r}, a folder, or a server's URL"
            )
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
        location = self.expanded_location
        if location == MEMORY_LOCATION or self.on_server:
            return QDRANT_KIND
        name, scheme, _ = location.partition("://")
        if name != QDRANT_KIND and name in store_kinds():
            return name
        is_path = any(
            mark in location for mark in ("/", "\\", "${")
        ) or location.startswith((".", "~"))
        return (
            QDRANT_KIND
            if not scheme and location and (is_path or Path(location).is_dir())
            else ""
        )

    @property
    def expanded_location(self) -> str:
        """The location with what `${NAME}` stands for, "" where it is left open."""
        return str(expand(self.location or ""))

    @property
    def on_server(self) -> bool:
        """Whether the location is a server's URL."""
        return self.expanded_location.startswith(SERVER_SCHEMES)

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
        own = {name: getattr(self, name) for name in COLLECTION_OPTIONS}
        parts += [f"{name}{value}" for name, value in own.items() if value is not None]
        return "".join(f"-{part}" for part in parts if part)

    def resolve_location(self, documents: int, form: VectorForm = "dense") -> str:
        """Return the location; where none is given "csr" for sparse vectors, else memory for a small corpus or edge.

        >>> StoreOptions().resolve_location(20_000), StoreOptions().resolve_location(20_001), StoreOptions(m=16).resolve_location(5)
        (':memory:', 'edge', 'edge')
        >>> StoreOptions().resolve_location(20_000, "sparse"), StoreOptions().resolve_location(20_000, "multivector")
        ('csr', 'edge')
        """
        if self.location is not None:
            return self.location
        if form == "sparse":
            return CSR_LOCATION
        limit = (
            MAX_MEMORY_MULTIVECTOR_DOCUMENTS
            if form == "multivector"
            else MAX_MEMORY_DOCUMENTS
        )
        return (
            MEMORY_LOCATION
            if documents <= limit and not self.approximate
            else EDGE_LOCATION
        )

    def bytes_of_numbers(self, numbers: float, form: VectorForm) -> int:
        """Return the bytes of so many numbers of sparse vectors or of vectors of tokens.

        Four a number, and four for the index of a sparse one; in memory as CSR, the number itself takes eight.

        >>> StoreOptions().bytes_of_numbers(100, "multivector"), StoreOptions("edge").bytes_of_numbers(100, "sparse")
        (400, 800)
        """
        size = (
            4
            if form == "multivector"
            else 12
            if self.resolve_location(0, form) == CSR_LOCATION
            else 8
        )
        return round(numbers * size)

    def search_bytes(
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
        bits = QUANTIZATION_BITS[self.quantization] if self.quantization else 32
        links = 2 * self.m * documents.bit_length()
        return (
            inside * -(-(dimensions * bits + links) // 8)
            + (documents - inside) * 4 * dimensions
        )
