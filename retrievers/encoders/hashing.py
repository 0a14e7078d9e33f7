"""Hashed character n-grams."""

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from retrievers.embedded import MAX_DIMENSIONS, Embedded, Role
from retrievers.facts import ModelFacts
from retrievers.identity import fingerprint
from retrievers.meter import Call
from retrievers.model import Encoder
from retrievers.options.tables import Configured
from retrievers.texts.token_estimate import Tokens

_NGRAM_LENGTHS = (2, 3, 4)


class HashingEncoder(Configured, Encoder):
    """Hashes words' character n-grams into signed buckets and scales the result to
    length 1.

    A text is folded (NFKC, case) and split into runs of word characters with a space at
    either end. Every 2-, 3- and 4-gram falls into one of `dimensions` buckets with
    weight 1 + ln(count) and a sign of its own (feature hashing: Weinberger et al.
    2009). Runs of kana and kanji need no word boundaries, so Japanese works as English
    does. A text without a word character becomes the zero vector.
    """  # noqa: D205

    request_size: ClassVar[int] = 256
    dimensions: Annotated[int, Field(ge=2, le=MAX_DIMENSIONS)] = 512
    """Numbers in a vector, at least 2."""

    @property
    def fingerprint(self) -> str:
        """All that changes a vector: the lengths of the n-grams, and the dimensions."""
        return fingerprint(
            "hashing", "ngrams", lengths=_NGRAM_LENGTHS, dimensions=self.dimensions
        )

    @property
    def runs_here(self) -> bool:
        """Whether requests stay on this machine."""
        return True

    @property
    def facts(self) -> ModelFacts:
        """What the manifest records."""
        return ModelFacts(
            model="hashed 2-, 3- and 4-grams",
            source="computed",
            dimensions=self.dimensions,
        )

    def count(self, texts: Sequence[str], role: Role) -> Tokens:
        """Return the number of n-grams."""
        counts = list(map(_count_ngrams, texts))
        return Tokens(np.asarray(counts, dtype=np.int64), exact=True)

    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Hash every text; `tokens` are its n-grams, and none is ever truncated."""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        tokens = np.zeros(len(texts), dtype=np.int64)
        for row, text in enumerate(texts):
            counts = Counter(_ngrams(text))
            tokens[row] = counts.total()
            for ngram, count in counts.items():
                ngram_hash = _hash(ngram)
                bucket = (ngram_hash >> 1) % self.dimensions
                weight = 1 + math.log(count)
                is_positive = ngram_hash & 1
                vectors[row, bucket] += weight if is_positive else -weight
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(lengths, lengths, 1)
        call.meter.count(calls=1, tokens=int(tokens.sum()))
        return Embedded(vectors, tokens, np.zeros(len(texts), dtype=np.int64))


def _words(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return re.findall(r"\w+", folded)


def _count_ngrams(text: str) -> int:
    """Return the number of n-grams of a text.

    A word of n letters has, with its spaces, n + 1 pairs, n triples, n - 1 quadruples.

    >>> [_count_ngrams(text) for text in ("", "a", "ab", "Two words")]
    [0, 3, 6, 24]
    """
    return len(_NGRAM_LENGTHS) * sum(map(len, _words(text)))


def _ngrams(text: str) -> Iterable[str]:
    """Yield the n-grams of each word, with a space at either end."""
    for word in _words(text):
        padded = f" {word} "
        for n in _NGRAM_LENGTHS:
            for i in range(len(padded) - n + 1):
                yield padded[i : i + n]


@lru_cache(maxsize=1 << 18)
def _hash(ngram: str) -> int:
    encoded_ngram = ngram.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(encoded_ngram, digest_size=8).digest()
    return int.from_bytes(digest, "little")
