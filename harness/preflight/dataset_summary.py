"""A data set on one page."""

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from harness.dataset import Dataset
from harness.dataset.check_corpus import documents_with_text
from harness.dataset.dataset import count_grades
from harness.english import count_of, first_names
from harness.preflight.truncation import TruncationEstimate
from retrievers.ids import normalise_text
from retrievers.texts.languages import LANGUAGE_NAMES, detect_language
from retrievers.texts.token_estimate import estimate_tokens
from retrievers.types import Document, sample_documents

SHINGLE = 3
"""Words that are compared together."""
ALIKE = 0.8
"""Share of all shingles of two documents that both have, from which on they are near-duplicates."""
HASHES, BAND = 32, 4
"""Minima that stand for a document, and how many of them must agree for two to be compared."""
MIN_QUOTED_WORDS = 4
"""Words that a query must have for its text within a document to count as quoted."""

EstimateTruncation = Callable[[Sequence[Document]], Iterable[TruncationEstimate]]


class DatasetSummary(NamedTuple):
    """What is to be known of a data set before it is used; everything but the labels from a sample."""

    sampled: int
    tokens: tuple[int, int, int]
    """Median, 95th percentile and maximum of a document's tokens, estimated."""
    languages: tuple[tuple[str, int], ...]
    near_duplicates: tuple[str, ...]
    """Documents that are nearly the same as one before them."""
    quoted: tuple[str, ...]
    """Queries whose text is word for word in a document."""
    labelled: int
    """Documents that some label names."""
    grades: tuple[tuple[int, int], ...]
    """Grade and how often it is given; empty where labels are lists."""
    per_query: tuple[int, int, int]
    """Fewest, median and most relevant documents of a query."""
    reaches: tuple[TruncationEstimate, ...] = ()

    def lines(self, dataset: Dataset) -> Iterator[str]:
        """The page."""
        median, long, longest = self.tokens
        sample = (
            "all"
            if self.sampled == dataset.document_count
            else f"a seeded sample of {self.sampled:,} of"
        )
        yield f"in {sample} {count_of(dataset.document_count, 'document')}:"
        spread = f"95 % below {long:,}; longest {longest:,}"
        yield f"  about {median:,} tokens per document ({spread})"
        named = ", ".join(
            f"{name} {100 * count / max(self.sampled, 1):.0f} %"
            for name, count in self.languages[:5]
        )
        yield f"  languages: {named or 'none is clear'}"
        yield f"  near-duplicates: {_some(self.near_duplicates)}"
        yield f"  queries copied from a document: {_some(self.quoted)}"
        for reach in self.reaches:
            how = "" if reach.exact else "about "
            share = f"{how}{reach.beyond:,} of {count_of(self.sampled, 'document')} {_are(reach.beyond)} longer than"
            unread = (
                f"; {how}{reach.lost:,} of {count_of(reach.tokens, 'token')} unread"
                if reach.lost
                else ""
            )
            yield f"  {reach.retriever}: {share} the {reach.limit:,} tokens that it reads{unread}"
        fewest, middle, most = self.per_query
        if not most:
            yield "labels: no query has a relevant document yet; harness pool starts labelling"
            return
        fewer = f"{fewest:,} to " if fewest < most else ""
        yield f"labels: {fewer}{count_of(most, 'relevant document')} per query (median {middle:,})"
        if self.grades:
            yield f"  grades: {', '.join(f'{grade}: {count:,}' for grade, count in self.grades)}"
        holes = dataset.document_count - self.labelled
        have = "has" if self.labelled == 1 else "have"
        rest = (
            f"; the other {holes:,} {'counts' if holes == 1 else 'count'} as not relevant"
            if holes
            else ""
        )
        yield f"  {count_of(self.labelled, 'document')} {have} labels{rest}"

    def as_json(self) -> dict[str, Any]:
        """The same as data."""
        return {
            **self._asdict(),
            "languages": dict(self.languages),
            "grades": dict(self.grades),
            "reaches": [reach._asdict() for reach in self.reaches],
        }


def summarise_dataset(
    dataset: Dataset, reach: EstimateTruncation = lambda documents: (), *, seed: int = 0
) -> DatasetSummary:
    """Look at a data set: the corpus in one pass, the costly checks on a sample that the seed and the ids decide.

    Args:
        dataset: what is looked at.
        reach: says of the sample how far encoders would read.
        seed: of the sample.
    """
    documents = sample_documents(dataset.documents(), seed=seed)
    contents = [document.content for document in documents]
    tokens = estimate_tokens(contents) if contents else np.zeros(1, dtype=np.int64)
    asked = {
        key: query.id
        for query in dataset.queries
        if len((key := normalise_text(query.text)).split(" ")) >= MIN_QUOTED_WORDS
    }
    held = documents_with_text(asked, documents)
    relevant = sorted(
        len(set(labels.relevant))
        for labels in dataset.labels.values()
        if labels.relevant
    )
    named = {doc for labels in dataset.labels.values() for doc in labels.documents}
    alike, reaches = tuple(near_duplicates(documents)), tuple(reach(documents))
    languages = Counter(
        map(_language, contents)
    )  # last: the model of languages is loaded meanwhile
    return DatasetSummary(
        len(documents),
        (int(np.median(tokens)), int(np.percentile(tokens, 95)), int(tokens.max())),
        tuple(languages.most_common()),
        alike,
        tuple(sorted(asked[key] for key in held)),
        len(named),
        count_grades(dataset.labels.values()),
        (relevant[0], relevant[len(relevant) // 2], relevant[-1])
        if relevant
        else (0, 0, 0),
        reaches,
    )


def near_duplicates(documents: Sequence[Document]) -> Iterator[str]:
    """Yield the documents that share nearly all runs of words with an earlier one, exact duplicates left out.

    They are found by min-hashes (Broder 1997), and then compared in full.
    """
    rng = np.random.default_rng(0)
    factors, offsets = rng.integers(1, 2**64, (2, HASHES), dtype=np.uint64)
    buckets: dict[tuple[int, bytes], int] = {}
    held: list[tuple[frozenset[int], str]] = []
    for document in documents:
        key = normalise_text(document.content)
        words = key.split(" ")
        runs = {
            " ".join(words[i : i + SHINGLE])
            for i in range(max(1, len(words) - SHINGLE + 1))
        }
        hashed = np.fromiter((hash_of(run) for run in runs), dtype=np.uint64)
        minima = (hashed[:, None] * factors + offsets).min(
            axis=0
        )  # modulo 2^64, as unsigned integers overflow
        shingles = frozenset(hashed.tolist())
        for band in range(0, HASHES, BAND):
            bucket = (band, minima[band : band + BAND].tobytes())
            other = buckets.setdefault(bucket, len(held))
            if other == len(held):
                continue
            earlier, text = held[other]
            if text != key and len(shingles & earlier) >= ALIKE * len(
                shingles | earlier
            ):
                yield document.id
                break
        held.append((shingles, key))


def hash_of(text: str) -> int:
    """Return a text's hash of 32 bits, the same in every process."""
    return int.from_bytes(
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    )


def _language(text: str) -> str:
    """The language, or where that is not clear the script of most letters."""
    if code := detect_language(text):
        return LANGUAGE_NAMES.get(code, code)
    scripts = Counter(
        unicodedata.name(letter, "").partition(" ")[0]
        for letter in text[:300]
        if letter.isalpha()
    )
    return f"{scripts.most_common(1)[0][0].lower()} script" if scripts else "no letters"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _some(ids: Sequence[str]) -> str:
    return f"{len(ids):,} ({first_names(ids)})" if ids else "0"
