"""The options of a store.

They name its kind by the location, choose a location where none is given, and compute
the size of its vectors. `open.py` opens the store, `qdrant_config.py` and `edge.py`
hand the options to an engine.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from retrievers import store_class, store_kinds
from retrievers.errors import InputError, Problem, nearest_word
from retrievers.files.text_files import is_folder
from retrievers.options.placeholders import expand, redact_url
from retrievers.options.tables import Configured, PositiveInt
from retrievers.ragged import VectorForm
from retrievers.services.addresses import is_valid_url
from retrievers.store import Store

MEMORY_LOCATION = ":memory:"
EDGE_LOCATION = "edge"
CSR_LOCATION = "csr"
"""Sparse vectors as a matrix in memory."""
QDRANT_KIND = "qdrant"
"""The kind of store with collections in memory, in a folder or on a server."""
SERVER_SCHEMES = ("http://", "https://", "grpc://", "grpcs://")
MAX_MEMORY_DOCUMENTS = 5_000
"""Documents up to which the in-memory client is fast enough: about 3 ms a query,
about 57 ms with a filter."""
MAX_MEMORY_MULTIVECTOR_DOCUMENTS = 1_000
"""The same for documents with a vector for each token."""
MIN_INDEXING_KB = 1
"""The lowest threshold of indexing that a server accepts; 0 turns indexing off."""
MIN_FULL_SCAN_KB = 10
"""The lowest threshold of a full scan that a server accepts."""
COLLECTION_OPTIONS = (
    "shards",
    "replication",
    "indexing_threshold",
    "full_scan_threshold",
)
"""Options of a server's collection."""
Quantization = Literal["scalar", "product", "binary"]
QUANTIZATION_BITS = {"scalar": 8, "product": 2, "binary": 1}
"""Bits of a quantised dimension: one byte; one byte for four dimensions, a sixteenth of
four floats; one bit."""
FLOAT_BITS = 32
"""Bits of a float32."""


class StoreOptions(Configured):
    """A store as an experiment names it: `store = "edge"` or `store = { location =
    "edge", m = 16 }`.

    Search is exact unless `m` or `quantization` is set, which the edge store and
    servers support.
    """  # noqa: D205

    positional_option = "location"
    location: str | None = None
    """":memory:", "edge", a folder ("./vectors"), or a server's URL (http, https, grpc,
    grpcs); for sparse vectors also "csr"; or a store of another package. By default the
    form of the vectors and the corpus's size decide."""
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
    """Whether a server builds the graph after all points are there, and not while they
    come: a faster upload."""
    indexing_threshold: Annotated[int, Field(ge=MIN_INDEXING_KB)] | None = None
    """kB of vectors in a segment from which on a server builds its graph and codes;
    None with m or quantization: the lowest, so that small collections have them too."""
    full_scan_threshold: Annotated[int, Field(ge=MIN_FULL_SCAN_KB)] | None = None
    """kB of vectors below which a server compares all instead of searching the graph;
    None with m: the lowest."""
    ef: PositiveInt = 128
    """Candidates considered while the graph is searched."""
    quantization: Quantization | None = None
    """Compare compressed vectors first: int8, 16-fold product quantisation, or one bit
    a dimension."""
    oversampling: Annotated[float, Field(ge=1)] = 2.0
    """Times the limit of candidates, found by compressed vectors, that are compared in
    full."""

    def model_post_init(self, _: object) -> None:
        """Raise InputError with every option that the store does not support."""
        problems = list(self._problems())
        if problems:
            raise InputError(problems)

    def _problems(self) -> Iterator[Problem]:
        """Yield the options that the store does not support."""
        if self.location is not None and not self.kind:
            names = _named_locations()
            suggestion = nearest_word(self.location, names)
            remedy = (
                f"{suggestion} known: {', '.join(names)}, "
                "a folder such as ./vectors, or a URL"
            )
            yield Problem("store", f"{self.location!r} names no store", remedy.lstrip())
        if self.on_server and not _may_be_valid_url(self.expanded_location):
            problem = f"{redact_url(self.location or '')!r} is an invalid URL"
            yield Problem("store", problem, "write http://host:6333")
        if not self.on_server:
            for name in ("api_key", "defer_graph", *COLLECTION_OPTIONS):
                if getattr(self, name) not in (None, False):
                    remedy = "give the server's URL as location"
                    yield Problem(f"store.{name}", "is for a server", remedy)
        if self.defer_graph and not self.m:
            problem = "there is no graph to build"
            yield Problem("store.defer_graph", problem, "set m, the links of a node")
        if self.approximate and self._is_always_exact:
            problem = f"{self.location!r} knows only exact search"
            yield Problem("store", problem, 'use "edge" or a server')

    @property
    def _is_always_exact(self) -> bool:
        """Whether the store has no index: Qdrant has one on a server alone."""
        if not self.kind or self.on_server:
            return False
        return bool(self._class_fact("always_exact"))

    def _class_fact(self, name: str) -> Any:
        """Return what the store's class says; a class of another package may not."""
        return getattr(store_class(self.kind), name, getattr(Store, name))

    def check(self, form: str) -> None:
        """Raise InputError if these options do not suit vectors of the form."""
        if self.kind and form not in self._class_fact("forms"):
            problem = f"{self.location!r} does not keep {form} vectors"
            remedy = (
                f"{MEMORY_LOCATION!r}, {EDGE_LOCATION!r}, a folder, or a server's URL"
            )
            raise InputError(Problem("store", problem, remedy))
        if self.approximate and form != "dense":
            key = "m" if self.m else "quantization"
            problem = f"{form} vectors are searched exactly"
            raise InputError(Problem(f"store.{key}", problem, f"leave {key} out"))

    @property
    def kind(self) -> str:
        """The kind of store that the location names; empty if it names none.

        >>> StoreOptions(":memory:").kind, StoreOptions("edge").kind
        ('qdrant', 'edge')
        >>> StoreOptions("./vectors").kind, StoreOptions("http://localhost:6333").kind
        ('qdrant', 'qdrant')
        """
        location = self.expanded_location
        if location == MEMORY_LOCATION or self.on_server:
            return QDRANT_KIND
        name, scheme, _ = location.partition("://")
        if name != QDRANT_KIND and name in store_kinds():
            return name
        if not location or scheme:
            return ""
        return QDRANT_KIND if _is_folder(location) else ""

    @property
    def expanded_location(self) -> str:
        """The location with values for `${NAME}`; empty if it is left open."""
        return str(expand(self.location or ""))

    @property
    def on_server(self) -> bool:
        """Whether the location is a server's URL."""
        return self.expanded_location.startswith(SERVER_SCHEMES)

    @property
    def in_process(self) -> bool:
        """Whether collections end with the process; the location must be set."""
        if self.expanded_location == MEMORY_LOCATION:
            return True
        return bool(self._class_fact("in_process"))

    @property
    def approximate(self) -> bool:
        """Whether a search may miss some of the nearest."""
        return bool(self.m or self.quantization)

    @property
    def suffix(self) -> str:
        """The part of a collection's name for how it is built.

        >>> StoreOptions("edge", m=16, quantization="scalar").suffix
        '-hnsw16x100-scalar'
        >>> StoreOptions("http://localhost:6333", shards=3).suffix
        '-shards3'
        """
        suffix = ""
        if self.m:
            suffix += f"-hnsw{self.m}x{self.ef_construct}"
        if self.quantization:
            suffix += f"-{self.quantization}"
        for name in COLLECTION_OPTIONS:
            option = getattr(self, name)
            if option is not None:
                suffix += f"-{name}{option}"
        return suffix

    def resolve_location(self, documents: int, form: VectorForm = "dense") -> str:
        """Return the location; where none is set, one for the form and the size.

        By default sparse vectors are in "csr", others of a small corpus in memory,
        those of a large or approximate one in "edge".

        >>> options = StoreOptions()
        >>> options.resolve_location(5_000), options.resolve_location(5_001)
        (':memory:', 'edge')
        >>> StoreOptions(m=16).resolve_location(5)
        'edge'
        >>> options.resolve_location(5_000, "sparse")
        'csr'
        >>> options.resolve_location(5_000, "multivector")
        'edge'
        """
        if self.location is not None:
            return self.location
        if form == "sparse":
            return CSR_LOCATION
        max_documents = MAX_MEMORY_DOCUMENTS
        if form == "multivector":
            max_documents = MAX_MEMORY_MULTIVECTOR_DOCUMENTS
        if self.approximate or documents > max_documents:
            return EDGE_LOCATION
        return MEMORY_LOCATION

    def at_location(self, documents: int, form: VectorForm) -> Self:
        """Return the options with the location that `resolve_location` returns."""
        location = self.resolve_location(documents, form)
        return self.model_copy(update={"location": location})

    def bytes_of_numbers(self, numbers: float, form: VectorForm) -> int:
        """Return the bytes of the numbers of sparse vectors or of vectors of tokens.

        A number of a token's vector has 4; for those of sparse vectors, with their
        index, the store's class says it.

        >>> StoreOptions().bytes_of_numbers(100, "multivector")
        400
        >>> StoreOptions("edge").bytes_of_numbers(100, "sparse")
        800
        """
        if form == "multivector":
            return round(numbers * FLOAT_BITS / 8)
        located_options = self.at_location(0, form)
        number_bytes: int = located_options._class_fact("sparse_number_bytes")
        return round(numbers * number_bytes)

    def search_bytes(
        self, documents: int, dimensions: int, indexed: int | None = None
    ) -> int:
        """Return the bytes of dense vectors that a fast search needs in memory.

        They are the vectors as 32-bit floats, or the compressed ones; and the graph, in
        whose lowest layer a node may have 2 m links of as many bits as a node's number
        needs. Full vectors of compressed ones stay on disk, for the comparison in full.

        Args:
            documents: the number of vectors.
            dimensions: numbers of each.
            indexed: how many of them are in the graph and compressed; None for all.
        """
        indexed_count = documents if indexed is None else min(indexed, documents)
        bits_per_dimension = FLOAT_BITS
        if self.quantization:
            bits_per_dimension = QUANTIZATION_BITS[self.quantization]
        link_bits = 2 * self.m * documents.bit_length()
        # Rounded up to whole bytes.
        indexed_bytes = -(-(dimensions * bits_per_dimension + link_bits) // 8)
        float_bytes = dimensions * FLOAT_BITS // 8
        unindexed_count = documents - indexed_count
        return indexed_count * indexed_bytes + unindexed_count * float_bytes


def _may_be_valid_url(url: str) -> bool:
    """Return whether a server's URL is valid, or has a variable that is not set.

    Such a variable matters only to a command that searches.
    """
    return "${" in url or is_valid_url(url.replace("grpc", "http", 1))


def _named_locations() -> list[str]:
    """Return the locations that are words."""
    return [MEMORY_LOCATION, *(kind for kind in store_kinds() if kind != QDRANT_KIND)]


def _is_folder(location: str) -> bool:
    """Return whether a location is a folder, or looks like the path of one."""
    has_path_mark = any(mark in location for mark in ("/", "\\", "${"))
    if has_path_mark or location.startswith((".", "~")):
        return True
    return is_folder(Path(location))
