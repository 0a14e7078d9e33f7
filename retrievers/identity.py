"""What "the same" means of models, vectors, collections."""

import hashlib
import json
import re
from collections.abc import Iterable
from functools import lru_cache

from retrievers.options.placeholders import expand

PassageInDocument = tuple[str, str]
"""A text, and the document that it is read with: "" where it is read alone."""


def fingerprint(kind: str, model: str, **parts: object) -> str:
    """Return `<kind>-<model>-<16 hex digits>`: the digits hash the kind, the model and every part.

    Only letters, digits, `.`, `_` and `-`, at most 80 characters. What `${NAME}` stands for is hashed, and the name is
    as it is written.

    >>> fingerprint("hashing", "3-4 grams", dimensions=256)
    'hashing-3-4-grams-0a81ff12fb0165f4'
    """
    whole = json.dumps(
        [kind, expand(model), expand(parts)], sort_keys=True, ensure_ascii=False
    )
    digest = hashlib.blake2b(whole.encode(), digest_size=8).hexdigest()
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{kind}-{model}").strip("-")[:60]
    return f"{readable}-{digest}"


def text_keys(fingerprint: str, role: str, texts: Iterable[str]) -> list[bytes]:
    """Return the 16-byte key of each text: a hash of the fingerprint, the role and the text.

    >>> text_keys("f", "query", ["a"]) == text_keys("f", "document", ["a"])
    False
    """
    start = hashlib.blake2b(f"{fingerprint}\0{role}\0".encode(), digest_size=16)
    digests = []
    for text in texts:
        one = start.copy()
        one.update(text.encode("utf-8", "surrogatepass"))
        digests.append(one.digest())
    return digests


def passage_keys(
    fingerprint: str, role: str, passages: Iterable[PassageInDocument]
) -> list[bytes]:
    """Return the keys of texts, those that are read with a document by the digest of that, too."""
    named = (
        f"{text}\x1f{_digest(document)}" if document else text
        for text, document in passages
    )
    return text_keys(fingerprint, role, named)


@lru_cache(maxsize=4)
def _digest(document: str) -> str:
    """Of the document of a passage: those of one document follow each other."""
    return hashlib.sha256(document.encode("utf-8", "surrogatepass")).hexdigest()


def collection_content(
    fingerprint: str,
    corpus: str,
    *,
    parts: str = "",
    dimensions: int | None = None,
    fields: Iterable[str] = (),
) -> str:
    """Return what a lasting collection holds, as its name says it.

    Args:
        fingerprint: of the encoder, for documents.
        corpus: digest of the documents.
        parts: how they are cut into passages.
        dimensions: leading numbers of each vector that are kept.
        fields: by which searches are narrowed: points hold them.

    >>> collection_content("m", "d", dimensions=64) == collection_content("m", "d")
    False
    """
    size = "" if dimensions is None else f"-cut{dimensions}"
    names = sorted(set(fields))
    by = (
        f"-by{hashlib.sha256(json.dumps(names).encode()).hexdigest()[:16]}"
        if names
        else ""
    )
    return f"{fingerprint}-{corpus}{parts}{size}{by}"
