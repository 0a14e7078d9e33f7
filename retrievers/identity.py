"""When models, vectors, collections count as the same."""

import hashlib
import json
import re
from collections.abc import Iterable
from functools import lru_cache

from retrievers.options.placeholders import expand

PassageInDocument = tuple[str, str]
"""A text, and the document that its encoder reads with it; "" if it reads none."""


def fingerprint(kind: str, model: str, **parts: object) -> str:
    """Return `<kind>-<model>-<16 hex digits>`, hashed from all arguments.

    It has only letters, digits, `.`, `_` and `-`, and at most 80 characters. The hash
    uses the value of `${NAME}`; the readable part has the name.

    >>> fingerprint("hashing", "3-4 grams", dimensions=256)
    'hashing-3-4-grams-0a81ff12fb0165f4'
    """
    identity = json.dumps(
        [kind, expand(model), expand(parts)], sort_keys=True, ensure_ascii=False
    )
    digest = hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{kind}-{model}").strip("-")[:60]
    return f"{readable}-{digest}"


def text_keys(fingerprint: str, role: str, texts: Iterable[str]) -> list[bytes]:
    """Return the 16-byte key of each text: a hash of fingerprint, role and text.

    >>> text_keys("f", "query", ["a"]) == text_keys("f", "document", ["a"])
    False
    """
    prefix_hash = hashlib.blake2b(f"{fingerprint}\0{role}\0".encode(), digest_size=16)
    digests = []
    for text in texts:
        text_hash = prefix_hash.copy()
        text_hash.update(text.encode("utf-8", "surrogatepass"))
        digests.append(text_hash.digest())
    return digests


def passage_keys(
    fingerprint: str, role: str, passages: Iterable[PassageInDocument]
) -> list[bytes]:
    """Return the keys of texts, which include the document that is read with a text."""
    texts_with_context = (
        f"{text}\x1f{_digest(document)}" if document else text
        for text, document in passages
    )
    return text_keys(fingerprint, role, texts_with_context)


@lru_cache(maxsize=4)
def _digest(document: str) -> str:
    """Return a document's digest, cached, since its passages follow one another."""
    return hashlib.sha256(document.encode("utf-8", "surrogatepass")).hexdigest()


def collection_content(
    fingerprint: str,
    corpus: str,
    *,
    parts: str = "",
    dimensions: int | None = None,
    fields: Iterable[str] = (),
) -> str:
    """Return the text that identifies the content of a lasting collection.

    Args:
        fingerprint: the encoder's, for documents.
        corpus: digest of the documents.
        parts: how documents are cut into passages.
        dimensions: leading numbers of each vector that are kept; None for all.
        fields: fields of the filter, which are stored with the points.

    >>> collection_content("m", "d", dimensions=64) == collection_content("m", "d")
    False
    """
    content = f"{fingerprint}-{corpus}{parts}"
    if dimensions is not None:
        content += f"-cut{dimensions}"
    field_names = sorted(set(fields))
    if field_names:
        digest = hashlib.sha256(json.dumps(field_names).encode()).hexdigest()
        content += f"-by{digest[:16]}"
    return content
