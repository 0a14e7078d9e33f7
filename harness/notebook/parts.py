"""Retrievers for `harness.evaluate`: each function returns the table that would stand in an experiment file."""
# ruff: noqa: N802 - they are named after what they stand for

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from retrievers.errors import InputError, Problem
from retrievers.user_objects import NamedObject

RetrieverTable = dict[str, Any]
"""A table of [[retrievers]], without its name."""
PART = "part"
"""The name of an object before its retriever has one."""
OF_LIBRARY = {
    "CrossEncoder": "cross-encoder",
    "MultiVectorEncoder": "multivector-encoder",
    "SentenceTransformer": "sentence-transformers",
    "SparseEncoder": "sparse-encoder",
}
"""Classes of sentence-transformers whose content is known -> kind."""


def OpenAI(model: str, **options: Any) -> RetrieverTable:
    """A model of OpenAI, or of another service that speaks its language; options as of `encoder.kind = "openai"`.

    >>> OpenAI("text-embedding-3-small")
    {'encoder': {'kind': 'openai', 'model': 'text-embedding-3-small'}}
    """
    return {"encoder": {"kind": "openai", "model": model, **options}}


def Encoder(model: Any, *, kind: str = "", cache: str = "", **options: Any) -> RetrieverTable:
    """A model's name, an object with `encode`, or a function of texts (or of texts and role) that returns (n, d).

    Args:
        model: which of them.
        kind: of a model that is named: "bedrock", "cohere", "gemini", …; left out, a local model.
        cache: the name of this version of a function, or of an object that says not what is in it: its vectors are
            kept on disk under that name. Left out, they are kept as long as the object lives.
        options: as of the encoder in an experiment file: `batch_size`, `query_prompt`, …

    >>> Encoder("intfloat/e5-small-v2", truncate_dim=128)
    {'encoder': {'kind': 'sentence-transformers', 'model': 'intfloat/e5-small-v2', 'truncate_dim': 128}}
    >>> Encoder(lambda texts: [[len(text), 1.0] for text in texts], cache="lengths-1")
    {'encoder': {'kind': 'python', 'call': 'object:part (<lambda>)', 'cache': 'lengths-1'}}
    """
    if isinstance(model, str):
        return {"encoder": {"kind": kind or "sentence-transformers", "model": model, **options}}
    if found := library_kind(model):
        form = {"sparse-encoder": "sparse", "multivector-encoder": "multivector"}.get(found, "dense")
        own = {"device": str(model.device), "truncate_dim": getattr(model, "truncate_dim", None)}
        taken = {key: value for key, value in own.items() if value is not None}
        return {"kind": form, "encoder": {"kind": found, "model": NamedObject.of(model, PART), **taken, **options}}
    kept = {"cache": cache} if cache else {}
    return {"encoder": {"kind": "python", "call": NamedObject.of(model, PART), **kept, **options}}


def Search(function: Callable[[str, int], Iterable[Any]], **options: Any) -> RetrieverTable:
    """A whole retriever: a function of a query and a depth that returns ids, or pairs of id and score, best first.

    The ids of a list of texts are numbers, as NumPy's argsort gives them. Options are those of `kind = "python"`:
    unknown_hits="irrelevant" if its index holds more documents.

    >>> Search(lambda query, depth: ["d1", "d2"])
    {'kind': 'python', 'call': 'object:part (<lambda>)', 'batch_size': 1}
    """

    def each(queries: list[str], depth: int) -> list[Any]:
        answers = [function(query, depth) for query in queries]
        return [
            hits  # which is refused: it has no order, or none that was meant
            if isinstance(hits, str | Mapping | AbstractSet)
            else list(hits)
            for hits in answers
        ]

    each.__qualname__ = getattr(function, "__qualname__", type(function).__qualname__)
    return {"kind": "python", "call": NamedObject.of(each, PART), "batch_size": 1, **options}


def Fusion(*of: str, **options: Any) -> RetrieverTable:
    """Other retrievers' rankings fused, each by its name; options as of `kind = "fusion"`.

    >>> Fusion("bm25", "minilm")
    {'kind': 'fusion', 'of': ['bm25', 'minilm']}
    """
    return {"kind": "fusion", "of": list(of), **options}


def Reranked(of: str, reranker: Any, *, depth: int = 10, **options: Any) -> RetrieverTable:
    """Another retriever, its first hits read again by a `CrossEncoder`.

    Args:
        of: its name.
        reranker: the model's name, or the object.
        depth: how many hits of each query are read again.
        options: as of the reranker in an experiment file.

    Raises:
        InputError: the object is none.

    >>> Reranked("bm25", "cross-encoder/ms-marco-MiniLM-L6-v2")
    {'of': 'bm25', 'rerank': {'kind': 'cross-encoder', 'model': 'cross-encoder/ms-marco-MiniLM-L6-v2', 'depth': 10}}
    """
    model = {"model": reranker}
    if not isinstance(reranker, str):
        if library_kind(reranker) != "cross-encoder":
            raise InputError(
                Problem("reranker", f"a {type(reranker).__name__} is not a CrossEncoder", "or give its name")
            )
        model = {"model": NamedObject.of(reranker, PART), "device": str(reranker.device)}
    return {"of": of, "rerank": {"kind": "cross-encoder", **model, "depth": depth, **options}}


def library_kind(model: Any) -> str:
    """The kind of a model that sentence-transformers made, asked in the library's own way; "" for any other object."""
    for cls in type(model).__mro__:
        if cls.__module__.partition(".")[0] == "sentence_transformers" and cls.__name__ in OF_LIBRARY:
            asked = "predict" if cls.__name__ == "CrossEncoder" else "encode"
            return OF_LIBRARY[cls.__name__] if getattr(type(model), asked) is getattr(cls, asked) else ""
    return ""


def named(value: Any, name: str) -> Any:
    """A table whose objects go by the name of the retriever that they are part of."""
    if isinstance(value, NamedObject):
        return NamedObject.of(value.value, name)
    if isinstance(value, Mapping):
        return {key: named(inner, name) for key, inner in value.items()}
    return value
