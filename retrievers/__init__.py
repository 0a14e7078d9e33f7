"""The kinds of retrievers with their classes."""

import importlib
import sys
from functools import lru_cache, partial
from importlib.metadata import EntryPoints, entry_points

from retrievers.errors import BackendError, InputError, Problem, did_you_mean
from retrievers.options.user_code import wrap_user_errors

ENCODERS = {
    "bedrock": "retrievers.encoders.bedrock:BedrockEncoder",
    "cohere": "retrievers.encoders.cohere:CohereEncoder",
    "gemini": "retrievers.encoders.gemini:GeminiEncoder",
    "hashing": "retrievers.encoders.hashing:HashingEncoder",
    "multivector-encoder": "retrievers.encoders.sentence_transformers:LateInteractionEncoder",
    "openai": "retrievers.encoders.openai:OpenAIEncoder",
    "python": "retrievers.encoders.python_encoder:PythonEncoder",
    "sentence-transformers": "retrievers.encoders.sentence_transformers:SentenceTransformerEncoder",
    "sparse-encoder": "retrievers.encoders.sentence_transformers:LearnedSparseEncoder",
    "voyage-context": "retrievers.encoders.voyage_context:VoyageContextEncoder",
}
"""kind -> class. The keyword arguments of a class are the options of its kind."""
RERANKERS = {
    "cross-encoder": "retrievers.rerankers.local_rerankers:CrossEncoderReranker",
    "http": "retrievers.rerankers.http_reranker:HttpReranker",
    "late-interaction": "retrievers.rerankers.local_rerankers:LateInteractionReranker",
}
RETRIEVERS = {
    "bm25": "retrievers.bm25:BM25",
    "http": "retrievers.search_endpoint:Endpoint",
    "python": "retrievers.function:Function",
    "run": "retrievers.saved_run:SavedRun",
}
"""Whole retrievers: what indexes and searches by itself. Dense retrieval and fusion are made by the harness."""
STORES = {
    "csr": "retrievers.stores.csr:CsrStore",
    "edge": "retrievers.stores.edge:EdgeStore",
    "qdrant": "retrievers.stores.qdrant:QdrantStore",
}
"""Kind of store -> class, which takes an `Opening`. The location names it: `edge`, or `edge://…`; "qdrant" is meant by
":memory:", a folder and a server's URL."""


COMPOSED_RETRIEVERS = {
    "Dense": "retrievers.dense:Dense",
    "Filtered": "retrievers.filtered:Filtered",
    "Fused": "retrievers.fused:Fused",
    "Reranked": "retrievers.reranked:Reranked",
}
"""Retrievers that hold parts: models, stores, other retrievers."""

KIND_TABLES = {
    "encoder": ENCODERS,
    "reranker": RERANKERS,
    "retriever": RETRIEVERS,
    "store": STORES,
}
_PARTS = {
    path.partition(":")[2]: path.partition(":")[0]
    for table in (*KIND_TABLES.values(), COMPOSED_RETRIEVERS)
    for path in table.values()
}


def __getattr__(name: str) -> type:
    """Import a part on first use: `from retrievers import BM25`."""
    if name not in _PARTS:
        raise AttributeError(f"module 'retrievers' has no attribute {name!r}")
    part: type = getattr(importlib.import_module(_PARTS[name]), name)
    return part


def _kinds(what: str) -> dict[str, str]:
    """Every kind with its class; third parties add kinds by `retriever_harness.encoders` and the like."""
    return {
        point.name: point.value for point in _installed(what, tuple(sys.path))
    } | KIND_TABLES[what]


encoder_kinds = partial(_kinds, "encoder")
reranker_kinds = partial(_kinds, "reranker")
retriever_kinds = partial(_kinds, "retriever")
store_kinds = partial(_kinds, "store")


def is_built_in(cls: type) -> bool:
    """Return whether a class of encoders, rerankers, whole retrievers or stores is ours, and not of another package."""
    return cls.__module__.partition(".")[0] == "retrievers"


def kind_of(cls: type) -> str:
    """Return what an encoder, a reranker or a whole retriever is called in an experiment file.

    Raises:
        InputError: it has no name there.

    >>> from retrievers.bm25 import BM25
    >>> kind_of(BM25)
    'bm25'
    """
    path = f"{cls.__module__}:{cls.__qualname__}"
    kinds = (
        kind for what in KIND_TABLES for kind, of in _kinds(what).items() if of == path
    )
    if (kind := next(kinds, "")) == "":
        raise InputError(
            Problem(
                cls.__qualname__,
                "has no kind in an experiment file",
                "give a table, with a kind",
            )
        )
    return kind


@lru_cache(maxsize=4)
def _installed(what: str, folders: tuple[str, ...]) -> EntryPoints:
    """The entry points of other packages, read once: it takes 15 ms, and every block of an experiment asks."""
    return entry_points(group=f"retriever_harness.{what}s")


def _class(what: str, kind: str) -> type:
    """Import the class of a kind; the heavy library behind it is loaded at its first use, not here.

    Raises:
        InputError: no package has this kind, or it cannot be loaded.
    """
    table = _kinds(what)
    if kind not in table:
        raise InputError(
            Problem("kind", f"unknown {what} {kind!r}", did_you_mean(kind, table))
        )
    module, _, name = table[kind].partition(":")
    try:
        with wrap_user_errors((module,)):
            cls: type = getattr(importlib.import_module(module), name)
    except BackendError as failure:
        remedy = "install its package again"
        raise InputError(
            Problem("kind", f"{what} {kind!r} cannot be loaded: {failure}", remedy)
        ) from failure
    return cls


encoder_class = partial(_class, "encoder")
reranker_class = partial(_class, "reranker")
retriever_class = partial(_class, "retriever")
store_class = partial(_class, "store")
