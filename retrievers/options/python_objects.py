"""Python objects as tables of options."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from retrievers.errors import InputError, Problem
from retrievers.options.tables import Configured
from retrievers.options.user_code import NamedObject

LIBRARY_MODEL_KINDS = {
    "CrossEncoder": "cross-encoder",
    "MultiVectorEncoder": "multivector-encoder",
    "SentenceTransformer": "sentence-transformers",
    "SparseEncoder": "sparse-encoder",
}
"""Class of sentence-transformers -> kind."""


def encoder_table(model: Any) -> dict[str, Any]:
    """Return an encoder's table.

    Args:
        model: a local model's name or folder; a table; an encoder, such as
            `OpenAIEncoder("…")`; a model of sentence-transformers; an object with
            `encode`, or with `encode_query` and `encode_document`; a function of texts,
            or of texts and their role, that returns (n, d).

    Raises:
        InputError: it is none of these, or a table without a kind.

    >>> encoder_table("intfloat/e5-small-v2")
    {'kind': 'sentence-transformers', 'model': 'intfloat/e5-small-v2'}
    >>> encoder_table(lambda texts: [[len(text), 1.0] for text in texts])
    {'kind': 'python', 'call': 'object:part (<lambda>)'}
    """
    if isinstance(model, str | Path):
        return {"kind": "sentence-transformers", "model": str(model)}
    if isinstance(model, Mapping):
        _check_kind("encoder", model)
        return dict(model)
    if isinstance(model, Configured):
        return model.to_config()
    kind = kind_of_library_model(model)
    if kind:
        table = {
            "kind": kind,
            "model": NamedObject.wrap(model),
            "device": str(model.device),
        }
        truncate_dim = getattr(model, "truncate_dim", None)
        if truncate_dim is not None:
            table["truncate_dim"] = truncate_dim
        return table
    has_encode = hasattr(model, "encode") or hasattr(model, "encode_document")
    if callable(model) or has_encode:
        return {"kind": "python", "call": NamedObject.wrap(model)}
    problem = f"an object of type {type(model).__name__} is no model"
    remedy = "a name, an object with encode, or a function of texts"
    raise InputError(Problem("encoder", problem, remedy))


def reranker_table(model: Any, depth: int | None) -> dict[str, Any]:
    """Return a reranker's table.

    Args:
        model: a CrossEncoder's name, folder or object; a table; or a reranker, such as
            `HttpReranker(…)`.
        depth: how many hits of each query are reranked; None for the reranker's own
            depth, or 10.

    Raises:
        InputError: it is none of these, or a table without a kind.

    >>> table = reranker_table("cross-encoder/ms-marco-MiniLM-L6-v2", 20)
    >>> table["kind"], table["depth"]
    ('cross-encoder', 20)
    """
    table = _reranker_table_without_depth(model)
    if depth is not None:
        table["depth"] = depth
    return table


def _reranker_table_without_depth(model: Any) -> dict[str, Any]:
    if isinstance(model, Configured):
        return model.to_config()
    if isinstance(model, Mapping):
        _check_kind("reranker", model)
        return dict(model)
    if kind_of_library_model(model) == "cross-encoder":
        return {
            "kind": "cross-encoder",
            "model": NamedObject.wrap(model),
            "device": str(model.device),
        }
    if not isinstance(model, str | Path):
        problem = f"a {type(model).__name__} is not a CrossEncoder"
        raise InputError(Problem("reranker", problem, "or give its name"))
    return {"kind": "cross-encoder", "model": str(model)}


def _check_kind(where: str, keys: Collection[str]) -> None:
    """Raise InputError if a table with these keys has no kind."""
    if "kind" not in keys:
        problem = "is not a table with a kind"
        raise InputError(Problem(where, problem, '{"kind": "…", "model": "…"}'))


def kind_of_library_model(model: Any) -> str:
    """Return the kind of a model of sentence-transformers; empty for other objects.

    A subclass that overrides the method by which models are called is another object,
    too.
    """
    for cls in type(model).__mro__:
        is_of_library = cls.__module__.partition(".")[0] == "sentence_transformers"
        if is_of_library and cls.__name__ in LIBRARY_MODEL_KINDS:
            method = "predict" if cls.__name__ == "CrossEncoder" else "encode"
            is_overridden = getattr(type(model), method) is not getattr(cls, method)
            return "" if is_overridden else LIBRARY_MODEL_KINDS[cls.__name__]
    return ""
