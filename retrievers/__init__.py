"""The kinds of models, stores, retrievers, each with its class."""

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
    "multivector-encoder": (
        "retrievers.encoders.sentence_transformers:LateInteractionEncoder"
    ),
    "openai": "retrievers.encoders.openai:OpenAIEncoder",
    "python": "retrievers.encoders.python_encoder:PythonEncoder",
    "sentence-transformers": (
        "retrievers.encoders.sentence_transformers:SentenceTransformerEncoder"
    ),
    "sparse-encoder": "retrievers.encoders.sentence_transformers:LearnedSparseEncoder",
    "voyage-context": "retrievers.encoders.voyage_context:VoyageContextEncoder",
}
"""Kind -> class. The keyword arguments of a class are the options of its kind."""
RERANKERS = {
    "cross-encoder": "retrievers.rerankers.local_rerankers:CrossEncoderReranker",
    "http": "retrievers.rerankers.http_reranker:HttpReranker",
    "late-interaction": "retrievers.rerankers.local_rerankers:LateInteractionReranker",
}
RETRIEVERS = {
    "bm25": "retrievers.bm25:BM25",
    "http": "retrievers.search_endpoint:Endpoint",
    "mcp": "retrievers.agents.mcp_tool:McpTool",
    "python": "retrievers.function:Function",
    "run": "retrievers.saved_run:SavedRun",
}
"""Retrievers that index and search by themselves, without parts."""
STORES = {
    "csr": "retrievers.stores.csr:CsrStore",
    "edge": "retrievers.stores.edge:EdgeStore",
    "qdrant": "retrievers.stores.qdrant:QdrantStore",
}
"""Kind of store -> class, which receives a `StoreOpening`. The location names the kind:
`edge`, or `edge://…`; ":memory:", a folder and a server's URL mean "qdrant"."""
COMPOSED_RETRIEVERS = {
    "Dense": "retrievers.dense:Dense",
    "Filtered": "retrievers.filtered:Filtered",
    "Fused": "retrievers.fused:Fused",
    "Reranked": "retrievers.reranked:Reranked",
}
"""Retrievers with parts: models, stores, other retrievers."""
KIND_TABLES = {
    "encoder": ENCODERS,
    "reranker": RERANKERS,
    "retriever": RETRIEVERS,
    "store": STORES,
}
_CLASS_PATHS = [
    *ENCODERS.values(),
    *RERANKERS.values(),
    *RETRIEVERS.values(),
    *STORES.values(),
    *COMPOSED_RETRIEVERS.values(),
]
_MODULE_BY_CLASS = {
    path.partition(":")[2]: path.partition(":")[0] for path in _CLASS_PATHS
}


def __getattr__(name: str) -> type:
    """Import a class on first use: `from retrievers import BM25`."""
    if name not in _MODULE_BY_CLASS:
        raise AttributeError(f"module 'retrievers' has no attribute {name!r}")
    module = importlib.import_module(_MODULE_BY_CLASS[name])
    cls: type = getattr(module, name)
    return cls


def _kinds(part: str) -> dict[str, str]:
    """Return all kinds of a part with their classes.

    Other packages add kinds with entry points, such as `retriever_harness.encoders`;
    they cannot replace those of this one.
    """
    installed = _installed_kinds(part, tuple(sys.path))
    return {point.name: point.value for point in installed} | KIND_TABLES[part]


encoder_kinds = partial(_kinds, "encoder")
reranker_kinds = partial(_kinds, "reranker")
retriever_kinds = partial(_kinds, "retriever")
store_kinds = partial(_kinds, "store")


def is_built_in(cls: type) -> bool:
    """Return whether a class is part of this package, and not of another one."""
    return cls.__module__.partition(".")[0] == "retrievers"


def kind_of(cls: type) -> str:
    """Return the kind of a class of models, stores or retrievers in an experiment file.

    Raises:
        InputError: it has none.

    >>> from retrievers.bm25 import BM25
    >>> kind_of(BM25)
    'bm25'
    """
    path = f"{cls.__module__}:{cls.__qualname__}"
    for part in KIND_TABLES:
        for kind, class_path in _kinds(part).items():
            if class_path == path:
                return kind
    problem = "has no kind in an experiment file"
    raise InputError(Problem(cls.__qualname__, problem, "give a table, with a kind"))


@lru_cache(maxsize=4)
def _installed_kinds(part: str, folders: tuple[str, ...]) -> EntryPoints:
    """Return the entry points of other packages.

    They are read once for these folders, those of `sys.path`: it takes 15 ms, and every
    table of an experiment needs them.
    """
    return entry_points(group=f"retriever_harness.{part}s")


def _class_of_kind(part: str, kind: str) -> type:
    """Import the class of a kind, without the large library that it may use.

    Raises:
        InputError: no package has this kind, or it cannot be loaded.
    """
    kinds = _kinds(part)
    if kind not in kinds:
        problem = f"unknown {part} {kind!r}"
        raise InputError(Problem("kind", problem, did_you_mean(kind, kinds)))
    module, _, name = kinds[kind].partition(":")
    try:
        with wrap_user_errors((module,)):
            cls: type = getattr(importlib.import_module(module), name)
    except BackendError as failure:
        problem = f"{part} {kind!r} cannot be loaded: {failure}"
        remedy = "install its package again"
        raise InputError(Problem("kind", problem, remedy)) from failure
    return cls


encoder_class = partial(_class_of_kind, "encoder")
reranker_class = partial(_class_of_kind, "reranker")
retriever_class = partial(_class_of_kind, "retriever")
store_class = partial(_class_of_kind, "store")
