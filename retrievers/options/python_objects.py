"""Python objects as tables of options."""

from collections.abc import Mapping
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
"""Classes of sentence-transformers whose content is known -> kind."""


def encoder_table(model: Any) -> dict[str, Any]:
    """Return an encoder's table.

    Args:
        model: a local model's name or folder; a table; an encoder, such as `OpenAIEncoder("…")`; a model of
            sentence-transformers; anything with `encode`, or with `encode_query` and `encode_document`; a function of
            texts, or of texts and their role, that returns (n, d).

    Raises:
        InputError: it is none of these.

    >>> encoder_table("intfloat/e5-small-v2")
    {'kind': 'sentence-transformers', 'model': 'intfloat/e5-small-v2'}
    >>> encoder_table(lambda texts: [[len(text), 1.0] for text in texts])
    {'kind': 'python', 'call': 'object:part (<lambda>)'}
    """
    if isinstance(model, str | Path):
        return {"kind": "sentence-transformers", "model": str(model)}
    if isinstance(model, Mapping):
        return dict(model)
    if isinstance(model, Configured):
        return model.to_config()
    if found := kind_of_library_model(model):
        own = {
            "device": str(model.device),
            "truncate_dim": getattr(model, "truncate_dim", None),
        }
        taken = {key: value for key, value in own.items() if value is not None}
        return {"kind": found, "model": NamedObject.wrap(model), **taken}
    if callable(model) or any(
        hasattr(model, one) for one in ("encode", "encode_document")
    ):
        return {"kind": "python", "call": NamedObject.wrap(model)}
    what = f"an object of type {type(model).__name__} is no model"
    raise InputError(
        Problem(
            "encoder", what, "a name, an object with encode, or a function of texts"
        )
    )


def reranker_table(model: Any, depth: int | None) -> dict[str, Any]:
    """Return a reranker's table.

    Args:
        model: a CrossEncoder's name, folder or object; a table; or a reranker, such as `HttpReranker(…)`.
        depth: how many hits of each query are read again; None: what the reranker says, else 10.

    Raises:
        InputError: it is none of these.

    >>> reranker_table("cross-encoder/ms-marco-MiniLM-L6-v2", 20)
    {'kind': 'cross-encoder', 'model': 'cross-encoder/ms-marco-MiniLM-L6-v2', 'depth': 20}
    """
    given = {} if depth is None else {"depth": depth}
    if isinstance(model, Configured | Mapping):
        return {
            **(model.to_config() if isinstance(model, Configured) else model),
            **given,
        }
    if kind_of_library_model(model) == "cross-encoder":
        return {
            "kind": "cross-encoder",
            "model": NamedObject.wrap(model),
            "device": str(model.device),
            **given,
        }
    if not isinstance(model, str | Path):
        raise InputError(
            Problem(
                "reranker",
                f"a {type(model).__name__} is not a CrossEncoder",
                "or give its name",
            )
        )
    return {"kind": "cross-encoder", "model": str(model), **given}


def kind_of_library_model(model: Any) -> str:
    """The kind of a model that sentence-transformers made, asked in the library's own way; "" for any other object."""
    for cls in type(model).__mro__:
        if (
            cls.__module__.partition(".")[0] == "sentence_transformers"
            and cls.__name__ in LIBRARY_MODEL_KINDS
        ):
            asked = "predict" if cls.__name__ == "CrossEncoder" else "encode"
            return (
                LIBRARY_MODEL_KINDS[cls.__name__]
                if getattr(type(model), asked) is getattr(cls, asked)
                else ""
            )
    return ""
