"""How a local model reads texts, by its files.

Without loading the model: prompts, the limit of tokens, the tokenizer that counts them,
and for which class of sentence-transformers it was trained. `folder` is the folder of
the whole model. A missing file counts as one without settings; a damaged file raises
InputError.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from retrievers.embedded import Role
from retrievers.local.model_class import is_colpali, is_foreign_colbert
from retrievers.local.model_files import (
    DAMAGED_FILE_REMEDY,
    damaged_file,
    explain_damage,
    read_first_module,
    read_json_file,
    read_model_settings,
)
from retrievers.texts.token_estimate import Counts, Tokens, estimate_tokens

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
    """How a model reads the texts of a role, which are counted with their prompts."""

    tokenizer: Any
    """The model's tokenizer, of the library `tokenizers` or `transformers`; cuts and
    pads nothing. None if the folder has no tokenizer.json, or the model adds tokens
    that its files do not show (see `reading_of_role`)."""
    adds_special_tokens: bool
    """Whether the tokenizer adds its marks ([CLS], [SEP]) around a text."""
    limit: int
    """Tokens of a text that are read, at most, marks included; UNLIMITED_TOKENS or more
    if all are, or the limit is unknown."""
    min_tokens: int
    """Tokens that are read of a shorter text, which is filled up to them; 0 if it is
    not."""


def reading_of_role(folder: Path, role: Role) -> RoleReading:
    """Return how a model in a folder reads the texts of a role.

    A ColBERT model that PyLate or Stanford's library has saved gets its prompts, some
    tokens and its lengths from sentence-transformers as it is loaded; a ColPali model's
    processor puts tokens around each text. Of both the tokenizer is None and the limit
    UNLIMITED_TOKENS.

    Raises:
        InputError: a file of the model is damaged.
    """
    with explain_damage(folder):
        if is_foreign_colbert(folder) or is_colpali(folder):
            return RoleReading(
                tokenizer=None,
                adds_special_tokens=True,
                limit=UNLIMITED_TOKENS,
                min_tokens=0,
            )
        module = read_first_module(folder, role)
        tokenizer = None
        tokenizer_file = module.folder / "tokenizer.json"
        if tokenizer_file.is_file():
            tokenizer = read_tokenizer(
                tokenizer_file, option="model", remedy=DAMAGED_FILE_REMEDY
            )
        is_static = module.type_name.endswith("StaticEmbedding")
        reading = RoleReading(
            tokenizer=tokenizer,
            adds_special_tokens=not is_static,
            limit=UNLIMITED_TOKENS if is_static else _read_limit(module.folder),
            min_tokens=0,
        )
        settings = read_json_file(module.folder / "sentence_bert_config.json")
        return _with_role_lengths(reading, role, settings)


def loaded_reading(model: Any, tokenizer: Any, role: Role) -> RoleReading:
    """Return how a loaded model of sentence-transformers reads the texts of a role.

    For models whose tokenizer `reading_of_role` does not find.

    Args:
        model: the model. A static one has no limit: its `max_seq_length` is infinite.
        tokenizer: its tokenizer, which cuts nothing (`uncut_tokenizer`).
        role: the role of the texts.
    """
    reading = RoleReading(
        tokenizer=tokenizer,
        adds_special_tokens=True,
        limit=min(model.max_seq_length or UNLIMITED_TOKENS, UNLIMITED_TOKENS),
        min_tokens=0,
    )
    keys = ("query_length", "document_length", "query_expansion")
    settings = {key: getattr(model[0], key, None) for key in keys}
    return _with_role_lengths(reading, role, settings)


def _with_role_lengths(reading: RoleReading, role: Role, settings: Any) -> RoleReading:
    """Return a reading with the lengths that a MultiVectorEncoder has for a role.

    Args:
        reading: the reading without them.
        role: the role.
        settings: a table with settings of the module that reads the texts, by the keys
            of sentence-transformers: `query_length` and `document_length`, limits of a
            role, and `query_expansion`, by which queries are filled up to `length`
            with mask tokens. The model reads these if `attend` is true; the `strategy`
            "fixed" also cuts longer queries to `length`. Other classes have none.
    """
    limit = settings.get(f"{role}_length") or reading.limit
    expansion: Mapping[str, Any] = {}
    if role == "query":
        expansion = settings.get("query_expansion") or {}
    if expansion.get("strategy") == "fixed":
        limit = expansion["length"]
    min_tokens = expansion["length"] if expansion.get("attend") else 0
    return reading._replace(limit=min(limit, reading.limit), min_tokens=min_tokens)


def count_role_tokens(
    folder: Path | None, role: Role, texts: Sequence[str], *, whole: bool = False
) -> Tokens:
    """Return the tokens that a model in a folder reads of each text, in their order.

    They are counted, then raised to the length to which the model fills up shorter
    texts, and lowered to its limit. Without the tokenizer (see RoleReading) they are an
    estimate of the whole text: no limit is applied, and `whole` changes nothing.

    Args:
        folder: the folder with the model's files; None if they are not on this machine.
        role: the role of the texts.
        texts: the texts, with their prompts.
        whole: whether to count a text as it is: all tokens, and none that fill it up.

    Raises:
        InputError: a file of the model is damaged.
    """
    reading = None if folder is None else reading_of_role(folder, role)
    if reading is None or reading.tokenizer is None:
        return Tokens(estimate_tokens(texts), exact=False)
    counts = count_tokens(reading.tokenizer, texts, special=reading.adds_special_tokens)
    if not whole:
        counts = np.clip(counts, reading.min_tokens, reading.limit)
    return Tokens(counts, exact=True)


def uncut_tokenizer(model: Any) -> Any:
    """Return a copy of a loaded model's tokenizer that cuts and pads nothing.

    A tokenizer that the library `tokenizers` cannot copy is returned itself:
    `count_tokens` has it cut nothing.
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
    """Return the tokens of each whole text, or pair, in their order.

    Args:
        tokenizer: a tokenizer of the library `tokenizers` that cuts and pads nothing,
            or a tokenizer of `transformers` that is written in Python.
        texts: the texts, or pairs; at least one.
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
    """Return the prompts in a model's files: name -> what is put before a text.

    Empty if there are none, or the files are not on this machine (`folder` is None).
    """
    with explain_damage(folder):
        return dict(read_model_settings(folder).get("prompts") or {})


def prompt_of_role(prompts: Mapping[str, str | None] | None, role: Role) -> str:
    """Return a role's prompt among those of a model; empty if it has none.

    A prompt of None counts as absent.

    >>> prompt_of_role({"query": "search: ", "passage": "text: "}, "document")
    'text: '
    """
    for name in ROLE_PROMPT_NAMES[role]:
        prompt = (prompts or {}).get(name)
        if prompt is not None:
            return prompt
    return ""


def _read_limit(folder: Path) -> int:
    """Return the smallest limit of tokens in the files of a module's folder."""
    limits = []
    for name, key in LIMIT_KEY_BY_FILE.items():
        limit = read_json_file(folder / f"{name}.json").get(key)
        if limit:
            limits.append(limit)
    return int(min(limits, default=UNLIMITED_TOKENS))


def read_tokenizer(file: Path, *, option: str, remedy: str) -> Any:
    """Return the tokenizer of a file, which cuts and pads nothing.

    It is read once until the file changes, since documents that are cut by tokens need
    it for every passage: who has it may not change it.

    Args:
        file: a tokenizer.json, which exists.
        option: the option in an error message.
        remedy: what to do if it is damaged.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        return _load_tokenizer(file, file.stat().st_mtime_ns)
    except Exception as error:  # the library raises no narrower type
        raise damaged_file(file, str(error), option=option, remedy=remedy) from None


@lru_cache(maxsize=8)
def _load_tokenizer(file: Path, modified_at: int) -> Any:
    """Return the tokenizer of a file; the time of its last change is a cache key."""
    from tokenizers import Tokenizer

    return _without_cuts(Tokenizer.from_file(str(file)))


def _without_cuts(tokenizer: Any) -> Any:
    """Set a tokenizer to cut and pad nothing, and return it."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
