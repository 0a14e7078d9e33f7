"""How a model of sentence-transformers reads queries and documents, as its files say, without loading it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from retrievers.costs import Tokens, estimate
from retrievers.types import Role

Library = Literal["CrossEncoder", "MultiVectorEncoder", "SentenceTransformer", "SparseEncoder"]
"""Classes of sentence-transformers."""
PROMPTS: Mapping[Role, tuple[str, ...]] = {"query": ("query",), "document": ("document", "passage", "corpus")}
"""Names of a role's prompt; the first that a model has is used, as sentence-transformers does."""
UNLIMITED = 1 << 31
"""Tokens from which on a limit is none."""


class RoleReading(NamedTuple):
    """How one role's texts are read."""

    folder: Path
    """Where the tokenizer is."""
    special: bool
    """Whether the marks of the tokenizer are put around a text."""
    limit: int
    """Tokens of a text that are read, at most."""
    least: int
    """Tokens that are read of a shorter text, which is filled up."""


def side_of(folder: Path, role: Role) -> RoleReading:
    """Return how a model in a folder reads the texts of a role."""
    modules = _json(folder / "modules.json") or [{"path": ""}]
    place, kind = folder / modules[0].get("path", ""), str(modules[0].get("type", ""))
    routes = _json(place / "router_config.json")
    if kind.endswith(".Router") and routes:
        structure = routes["structure"]
        first = structure.get(role) or structure[routes["parameters"].get("default_route") or next(iter(structure))]
        place, kind = place / first[0], routes["types"][first[0]]
    settings = _json(place / "sentence_bert_config.json")
    expansion = (settings.get("query_expansion") or {}) if role == "query" else {}
    length = expansion.get("length") if expansion.get("strategy") == "fixed" else settings.get(f"{role}_length")
    limit = 1 << 62 if kind.endswith(".StaticEmbedding") else _limit(place)
    return RoleReading(
        folder=place,
        special=not kind.endswith("StaticEmbedding"),
        limit=min(limit, length or limit),
        least=expansion.get("length", 0) if expansion.get("attend") else 0,
    )


def side_tokens(folder: Path | None, role: Role, texts: Sequence[str], *, whole: bool = False) -> Tokens:
    """Count the tokens that a model in a folder reads of each text; an estimate where they cannot be counted.

    Args:
        folder: with the model's files; None where they are not on this machine.
        role: of the texts.
        texts: with their prompts.
        whole: count what lies beyond the limit too.
    """
    side = None if folder is None else side_of(folder, role)
    if side is None or not (file := side.folder / "tokenizer.json").is_file():
        return Tokens(estimate(texts), exact=False)
    tokenizer = _tokenizer(file, file.stat().st_mtime_ns)
    encodings = tokenizer.encode_batch_fast(list(texts), add_special_tokens=side.special)
    counts = np.asarray([len(encoding) for encoding in encodings], dtype=np.int64)
    return Tokens(counts if whole else np.clip(counts, side.least, side.limit), exact=True)


def stored_prompts(folder: Path | None) -> dict[str, str | None]:
    """Return the prompts that a model's files name."""
    return dict(_json(folder / "config_sentence_transformers.json").get("prompts") or {}) if folder else {}


def prompt_of(prompts: Mapping[str, str | None] | None, role: Role) -> str:
    """Return the prompt of a role among those of a model.

    >>> prompt_of({"query": "search: ", "passage": "text: "}, "document")
    'text: '
    """
    return next((prompt for name in PROMPTS[role] if (prompt := (prompts or {}).get(name)) is not None), "")


def is_trained_as(folder: Path, library: Library) -> bool:
    """Whether a model's files are those of such a model.

    Where they are not, sentence-transformers puts layers with random weights on top and says so in a log alone.
    """
    if library in ("CrossEncoder", "SentenceTransformer"):  # which say so themselves
        return True
    kind = _json(folder / "config_sentence_transformers.json").get("model_type")
    architectures = _json(folder / "config.json").get("architectures") or []
    if library == "SparseEncoder":
        masked = any(name.endswith("ForMaskedLM") for name in architectures)
        return kind == library or (masked and not (folder / "modules.json").is_file())
    late = any(name == "HF_ColBERT" or name.endswith("ForRetrieval") for name in architectures)
    return kind in (library, "ColBERT") or late


def _limit(folder: Path) -> int:
    """The tokens that a folder of sentence-transformers reads: the smallest limit that its files name."""
    named = (
        ("sentence_bert_config.json", "max_seq_length"),
        ("tokenizer_config.json", "model_max_length"),
        ("config.json", "max_position_embeddings"),
    )
    limits = [limit for file, key in named if (limit := _json(folder / file).get(key))]
    return int(min(limits, default=1 << 62))


@lru_cache(maxsize=8)
def _tokenizer(file: Path, _changed: int) -> Any:
    """The tokenizer of a file, read once: cutting a corpus by tokens asks it for every passage."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _json(path: Path) -> Any:
    """What a file holds, an empty table where there is no file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
