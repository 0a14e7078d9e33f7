"""How a local model's files say it reads texts."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from retrievers.embedded import Role
from retrievers.texts.token_estimate import Counts, Tokens, estimate_tokens

ModelClass = Literal[
    "CrossEncoder", "MultiVectorEncoder", "SentenceTransformer", "SparseEncoder"
]
"""Classes of sentence-transformers."""
ROLE_PROMPT_NAMES: Mapping[Role, tuple[str, ...]] = {
    "query": ("query",),
    "document": ("document", "passage", "corpus"),
}
"""Names of a role's prompt; the first that a model has is used, as sentence-transformers does."""
UNLIMITED_TOKENS = 1 << 31
"""Tokens from which on a limit is none."""


class RoleReading(NamedTuple):
    """How one role's texts are read."""

    tokenizer: Any
    """None where the model's files have none that `tokenizers` reads."""
    adds_special_tokens: bool
    """Whether the marks of the tokenizer are put around a text."""
    limit: int
    """Tokens of a text that are read, at most."""
    min_tokens: int
    """Tokens that are read of a shorter text, which is filled up."""


def reading_of_role(folder: Path, role: Role) -> RoleReading:
    """Return how a model in a folder reads the texts of a role."""
    modules = _json(folder / "modules.json") or [{"path": ""}]
    place, kind = folder / modules[0].get("path", ""), str(modules[0].get("type", ""))
    routes = _json(place / "router_config.json")
    if kind.endswith(".Router") and routes:
        structure = routes["structure"]
        first = (
            structure.get(role)
            or structure[
                routes["parameters"].get("default_route") or next(iter(structure))
            ]
        )
        place, kind = place / first[0], routes["types"][first[0]]
    settings = _json(place / "sentence_bert_config.json")
    expansion = (settings.get("query_expansion") or {}) if role == "query" else {}
    length = (
        expansion.get("length")
        if expansion.get("strategy") == "fixed"
        else settings.get(f"{role}_length")
    )
    limit = UNLIMITED_TOKENS if kind.endswith(".StaticEmbedding") else _limit(place)
    file = place / "tokenizer.json"
    return RoleReading(
        tokenizer=_tokenizer(file, file.stat().st_mtime_ns) if file.is_file() else None,
        adds_special_tokens=not kind.endswith("StaticEmbedding"),
        limit=min(limit, length or limit),
        min_tokens=expansion.get("length", 0) if expansion.get("attend") else 0,
    )


def count_role_tokens(
    folder: Path | None, role: Role, texts: Sequence[str], *, whole: bool = False
) -> Tokens:
    """Count the tokens that a model in a folder reads of each text; an estimate where they cannot be counted.

    Args:
        folder: with the model's files; None where they are not on this machine.
        role: of the texts.
        texts: with their prompts.
        whole: count what is beyond the limit too.
    """
    side = None if folder is None else reading_of_role(folder, role)
    if side is None or side.tokenizer is None:
        return Tokens(estimate_tokens(texts), exact=False)
    counts = count_tokens(side.tokenizer, texts, special=side.adds_special_tokens)
    return Tokens(
        counts if whole else np.clip(counts, side.min_tokens, side.limit), exact=True
    )


def uncut_tokenizer(model: Any) -> Any:
    """Return a loaded model's tokenizer: a copy, which cuts nothing, where the library lets it be copied."""
    tokenizer = getattr(model.tokenizer, "backend_tokenizer", model.tokenizer)
    return (
        _whole(type(tokenizer).from_str(tokenizer.to_str()))
        if hasattr(tokenizer, "to_str")
        else tokenizer
    )


def count_tokens(
    tokenizer: Any,
    texts: Sequence[str] | Sequence[tuple[str, str]],
    *,
    special: bool = True,
) -> Counts:
    """Count the tokens of whole texts, or pairs.

    Args:
        tokenizer: of the library `tokenizers`, or one of `transformers` that has no copy in it.
        texts: or pairs.
        special: count the marks that are put around a text.
    """
    if hasattr(tokenizer, "encode_batch_fast"):
        found: Sequence[Any] = tokenizer.encode_batch_fast(
            list(texts), add_special_tokens=special
        )
    else:
        sides = (
            [list(texts)]
            if isinstance(texts[0], str)
            else map(list, zip(*texts, strict=True))
        )
        found = tokenizer(
            *sides, truncation=False, verbose=False, add_special_tokens=special
        )["input_ids"]
    return np.asarray([len(one) for one in found], dtype=np.int64)


def stored_prompts(folder: Path | None) -> dict[str, str | None]:
    """Return the prompts that a model's files name."""
    return dict(read_model_settings(folder).get("prompts") or {})


def prompt_of_role(prompts: Mapping[str, str | None] | None, role: Role) -> str:
    """Return the prompt of a role among those of a model.

    >>> prompt_of_role({"query": "search: ", "passage": "text: "}, "document")
    'text: '
    """
    return next(
        (
            prompt
            for name in ROLE_PROMPT_NAMES[role]
            if (prompt := (prompts or {}).get(name)) is not None
        ),
        "",
    )


def is_trained_as(folder: Path, library: ModelClass) -> bool:
    """Whether a model's files are those of such a model.

    Where they are not, sentence-transformers puts layers with random weights on top and says so in a log alone.
    """
    kind, bare = (
        read_model_settings(folder).get("model_type"),
        not (folder / "modules.json").is_file(),
    )
    architectures = " ".join(
        f"{name} " for name in _json(folder / "config.json").get("architectures") or []
    )
    scores, masked = (
        "ForSequenceClassification " in architectures,
        "ForMaskedLM " in architectures,
    )
    if library == "SentenceTransformer":
        return kind != "CrossEncoder" and not (bare and scores)
    if library == "CrossEncoder":  # a bare body has a name such as BertModel
        return (
            kind == library
            or not architectures
            or (not masked and "For" in architectures)
        )
    if library == "SparseEncoder":
        return kind == library or (masked and bare)
    return (
        kind in (library, "ColBERT")
        or "HF_ColBERT " in architectures
        or "ForRetrieval " in architectures
    )


def _limit(folder: Path) -> int:
    """The tokens that a folder of sentence-transformers reads: the smallest limit that its files name."""
    files = {
        "sentence_bert_config": "max_seq_length",
        "tokenizer_config": "model_max_length",
        "config": "max_position_embeddings",
    }
    limits = [
        limit
        for file, key in files.items()
        if (limit := _json(folder / f"{file}.json").get(key))
    ]
    return int(min(limits, default=UNLIMITED_TOKENS))


@lru_cache(maxsize=8)
def _tokenizer(file: Path, _changed: int) -> Any:
    """The tokenizer of a file, read once: cutting a corpus by tokens asks it for every passage."""
    from tokenizers import Tokenizer

    return _whole(Tokenizer.from_file(str(file)))


def _whole(tokenizer: Any) -> Any:
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def read_model_settings(folder: Path | None) -> Any:
    """What sentence-transformers says of a model."""
    return _json(folder / "config_sentence_transformers.json") if folder else {}


def _json(path: Path) -> Any:
    """What a file holds, an empty table where there is no file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
