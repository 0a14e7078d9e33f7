"""How a local model reads texts, by its files.

Without loading the model: prompts, the limit of tokens, the tokenizer that counts them,
and for which class of sentence-transformers it was trained.
"""

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
"""Names of a role's prompt; the first that a model has is used, as by
sentence-transformers."""
UNLIMITED_TOKENS = 1 << 31
"""A limit from here on does not limit anything."""
LIMIT_KEY_BY_FILE = {
    "sentence_bert_config": "max_seq_length",
    "tokenizer_config": "model_max_length",
    "config": "max_position_embeddings",
}
"""File without .json -> its key with a limit of tokens; the smallest of them counts."""


class RoleReading(NamedTuple):
    """How one role's texts are read."""

    tokenizer: Any
    """The model's tokenizer; None if `tokenizers` reads none from its files."""
    adds_special_tokens: bool
    """Whether the tokenizer adds its marks around a text."""
    limit: int
    """Tokens of a text that are read, at most."""
    min_tokens: int
    """Tokens that are read of a shorter text, which is filled up; 0 if it is not."""


class _FirstModule(NamedTuple):
    """The module of a model that reads texts."""

    folder: Path
    type_name: str


def reading_of_role(folder: Path, role: Role) -> RoleReading:
    """Return how a model in a folder reads the texts of a role."""
    module = _first_module(folder, role)
    is_static = module.type_name.endswith("StaticEmbedding")
    settings = _read_json(module.folder / "sentence_bert_config.json")
    expansion: dict[str, Any] = {}
    if role == "query":
        expansion = settings.get("query_expansion") or {}
    role_limit = settings.get(f"{role}_length")
    if expansion.get("strategy") == "fixed":
        role_limit = expansion.get("length")
    limit = UNLIMITED_TOKENS
    if not is_static:
        limit = _read_limit(module.folder)
    tokenizer = None
    tokenizer_file = module.folder / "tokenizer.json"
    if tokenizer_file.is_file():
        modified_at = tokenizer_file.stat().st_mtime_ns
        tokenizer = load_tokenizer(tokenizer_file, modified_at)
    # As in ColBERT: queries are filled up with mask tokens, which the model may read.
    is_padded = expansion.get("attend")
    return RoleReading(
        tokenizer=tokenizer,
        adds_special_tokens=not is_static,
        limit=min(limit, role_limit or limit),
        min_tokens=expansion.get("length", 0) if is_padded else 0,
    )


def _first_module(folder: Path, role: Role) -> _FirstModule:
    """Return the module that reads a role's texts, by the routes of a router."""
    modules = _read_json(folder / "modules.json") or [{"path": ""}]
    module_folder = folder / modules[0].get("path", "")
    type_name = str(modules[0].get("type", ""))
    routes = _read_json(module_folder / "router_config.json")
    if not type_name.endswith(".Router") or not routes:
        return _FirstModule(module_folder, type_name)
    structure = routes["structure"]
    route = structure.get(role)
    if not route:
        default_role = routes["parameters"].get("default_route")
        route = structure[default_role or next(iter(structure))]
    first_name = route[0]
    return _FirstModule(module_folder / first_name, routes["types"][first_name])


def count_role_tokens(
    folder: Path | None, role: Role, texts: Sequence[str], *, whole: bool = False
) -> Tokens:
    """Return the tokens that a model in a folder reads of each text.

    They are an estimate if its tokenizer cannot be read.

    Args:
        folder: the folder with the model's files; None if they are not on this machine.
        role: the role of the texts.
        texts: the texts, with their prompts.
        whole: whether to count also what is beyond the limit.
    """
    reading = None if folder is None else reading_of_role(folder, role)
    if reading is None or reading.tokenizer is None:
        return Tokens(estimate_tokens(texts), exact=False)
    counts = count_tokens(reading.tokenizer, texts, special=reading.adds_special_tokens)
    if not whole:
        counts = np.clip(counts, reading.min_tokens, reading.limit)
    return Tokens(counts, exact=True)


def uncut_tokenizer(model: Any) -> Any:
    """Return a copy of a loaded model's tokenizer that cuts nothing.

    If the library cannot copy it, it is the tokenizer itself.
    """
    tokenizer = getattr(model.tokenizer, "backend_tokenizer", model.tokenizer)
    if not hasattr(tokenizer, "to_str"):
        return tokenizer
    return _without_cuts(type(tokenizer).from_str(tokenizer.to_str()))


def count_tokens(
    tokenizer: Any,
    texts: Sequence[str] | Sequence[tuple[str, str]],
    *,
    special: bool = True,
) -> Counts:
    """Return the tokens of whole texts, or pairs.

    Args:
        tokenizer: one of the library `tokenizers`, or one of `transformers` that has
            none of those inside.
        texts: the texts, or pairs.
        special: whether to count the marks around a text.
    """
    if hasattr(tokenizer, "encode_batch_fast"):
        encodings = tokenizer.encode_batch_fast(list(texts), add_special_tokens=special)
    else:
        sides = [list(texts)]
        if not isinstance(texts[0], str):
            sides = list(map(list, zip(*texts, strict=True)))
        encodings = tokenizer(
            *sides, truncation=False, verbose=False, add_special_tokens=special
        )["input_ids"]
    return np.asarray([len(encoding) for encoding in encodings], dtype=np.int64)


def stored_prompts(folder: Path | None) -> dict[str, str | None]:
    """Return the prompts in a model's files."""
    return dict(read_model_settings(folder).get("prompts") or {})


def prompt_of_role(prompts: Mapping[str, str | None] | None, role: Role) -> str:
    """Return a role's prompt among those of a model; empty if it has none.

    >>> prompt_of_role({"query": "search: ", "passage": "text: "}, "document")
    'text: '
    """
    for name in ROLE_PROMPT_NAMES[role]:
        prompt = (prompts or {}).get(name)
        if prompt is not None:
            return prompt
    return ""


def is_trained_as(folder: Path, library: ModelClass) -> bool:
    """Return whether a model's files are of such a class, by what they say of it.

    If they are not, sentence-transformers adds layers with random weights, and only
    logs it.
    """
    model_type = read_model_settings(folder).get("model_type")
    is_bare = not (folder / "modules.json").is_file()
    architectures = _read_json(folder / "config.json").get("architectures") or []
    is_classifier = _has_suffix(architectures, "ForSequenceClassification")
    is_masked = _has_suffix(architectures, "ForMaskedLM")
    match library:
        case "SentenceTransformer":
            is_bare_classifier = is_bare and is_classifier
            return model_type != "CrossEncoder" and not is_bare_classifier
        case "CrossEncoder":
            # A model without a head has an architecture such as BertModel.
            has_head = any("For" in name for name in architectures)
            if model_type == library:
                return True
            if _is_static(folder) or (model_type and not is_bare):
                return False
            return not architectures or (has_head and not is_masked)
        case "SparseEncoder":
            return model_type == library or (is_masked and is_bare)
        case "MultiVectorEncoder":
            is_colbert = _has_suffix(architectures, "HF_ColBERT")
            is_retriever = _has_suffix(architectures, "ForRetrieval")
            has_type = model_type in (library, "ColBERT")
            return has_type or is_colbert or is_retriever


def has_token_vectors(folder: Path) -> bool:
    """Return whether a model gives a vector for each token: any that is not static."""
    return not _is_static(folder)


def _is_static(folder: Path) -> bool:
    module = _first_module(folder, "document")
    settings = _read_json(folder / "config.json")
    is_distilled = settings.get("model_type") == "model2vec"
    return module.type_name.endswith("StaticEmbedding") or is_distilled


def _has_suffix(names: Sequence[str], suffix: str) -> bool:
    return any(name.endswith(suffix) for name in names)


def _read_limit(folder: Path) -> int:
    """Return the smallest limit of tokens in a folder's files."""
    limits = []
    for name, key in LIMIT_KEY_BY_FILE.items():
        limit = _read_json(folder / f"{name}.json").get(key)
        if limit:
            limits.append(limit)
    return int(min(limits, default=UNLIMITED_TOKENS))


@lru_cache(maxsize=8)
def load_tokenizer(file: Path, modified_at: int) -> Any:
    """Return the tokenizer of a file, read once until the file changes.

    Documents that are cut by tokens need it for every passage.

    Args:
        file: the file.
        modified_at: when it was changed; not read, but part of the cache's key.
    """
    from tokenizers import Tokenizer

    return _without_cuts(Tokenizer.from_file(str(file)))


def _without_cuts(tokenizer: Any) -> Any:
    """Return a tokenizer that is set to cut and pad nothing."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def read_model_settings(folder: Path | None) -> Any:
    """Return the settings that sentence-transformers has saved with a model."""
    if folder is None:
        return {}
    return _read_json(folder / "config_sentence_transformers.json")


def _read_json(path: Path) -> Any:
    """Return the content of a file; an empty table if there is no file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
