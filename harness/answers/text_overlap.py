"""An answer against its references."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import regex

from harness.answers.text_tokens import (
    Tokenizer,
    require_sacrebleu,
    sacrebleu_metric,
    split_tokens,
)
from retrievers.texts.word_tokens import WORD_CHARACTERS

ENGLISH_ARTICLES = frozenset({"a", "an", "the"})
PUNCTUATION_PATTERN = regex.compile(rf"(?V1)[^{WORD_CHARACTERS}\s]")


class TextOverlap(NamedTuple):
    """The overlap of two texts, relative to each of them."""

    precision: float
    """The share of the answer's items that the reference has."""
    recall: float
    """The share of the reference's items that the answer has."""

    @property
    def f1(self) -> float:
        """The harmonic mean of the two; 0 where both are 0."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def bleu(
    response: str, references: Sequence[str], tokenizer: Tokenizer, *, order: int = 4
) -> float | None:
    """BLEU of one answer: brevity penalty x geometric mean of the clipped n-gram precisions, n = 1 to `order`.

    Range 0 to 1 (sacrebleu's figure divided by 100). sacrebleu 2 with effective order, since a short answer has no
    4-grams, and its exponential smoothing. All references are used at once, each as one text. Undefined (None)
    without a reference; 0 for an empty answer. Papineni et al. 2002; Post 2018.

    >>> round(bleu("the cat is on the mat", ["there is a cat on the mat"], "13a", order=2), 6)
    0.488716
    """
    if not references:
        return None
    if not response.strip():
        return 0.0
    scored = sacrebleu_metric(
        tokenizer, effective_order=True, max_ngram_order=order
    ).sentence_score(response, list(references))
    return min(float(scored.score) / 100, 1.0)


def bleu_signature(tokenizer: Tokenizer, references: int | None = None) -> str:
    """The signature of sacrebleu, with which others can reproduce a BLEU score.

    Args:
        tokenizer: the tokenizer of the scores.
        references: number per answer; None if that varies.

    >>> bleu_signature("char", 1).partition("|version:")[0]
    'nrefs:1|case:mixed|eff:yes|tok:char|smooth:exp'
    """
    metric = sacrebleu_metric(tokenizer, effective_order=True)
    metric.num_refs = "var" if references is None else references  # type: ignore[assignment]  # as in sacrebleu
    return str(metric.get_signature())


def chrf(response: str, references: Sequence[str]) -> float | None:
    """chrF: F2 of character n-grams, n = 1 to 6, without white space; the best reference counts.

    Range 0 to 1 (sacrebleu's figure divided by 100); needs no tokens, so it is the same in every language. Undefined
    (None) without a reference. Popović 2015.

    >>> chrf("価格を聞く", ["価格を聞く"]), chrf("", ["価格を聞く"])
    (1.0, 0.0)
    """
    if not references:
        return None
    if not response.strip():
        return 0.0
    require_sacrebleu()
    from sacrebleu.metrics.chrf import CHRF

    return min(
        float(CHRF().sentence_score(response, list(references)).score) / 100, 1.0
    )


def rouge_n(response: str, reference: str, n: int, tokenizer: Tokenizer) -> TextOverlap:
    """ROUGE-N against one reference: clipped n-grams in common / those of the answer, and of the reference.

    Lin 2004. Tokens are sacrebleu's, lower-cased, without punctuation: the usual package keeps only a-z and 0-9, and
    scores two identical texts in Japanese, Korean or Russian as 0.

    >>> dog = rouge_n("The brown fox jumped over the dog.", "The quick brown fox jumps over the lazy dog.", 2, "13a")
    >>> dog.recall == 2 / 8, dog.precision == 2 / 6
    (True, True)
    """
    ours, theirs = (
        _ngrams(split_tokens(text, tokenizer), n) for text in (response, reference)
    )
    return _of((ours & theirs).total(), ours.total(), theirs.total())


def rouge_l(response: str, reference: str, tokenizer: Tokenizer) -> TextOverlap:
    """ROUGE-L against one reference: the longest common subsequence / tokens of the answer, and of the reference.

    Lin 2004, on the whole text as one sequence. Tokens as for `rouge_n`.

    >>> dog = rouge_l("The brown fox jumped over the dog.", "The quick brown fox jumps over the lazy dog.", "13a")
    >>> dog.recall == 6 / 9, dog.precision == 6 / 7
    (True, True)
    """
    ours, theirs = (split_tokens(text, tokenizer) for text in (response, reference))
    return _of(_longest_common(ours, theirs), len(ours), len(theirs))


def best_overlap(overlaps: Sequence[TextOverlap]) -> TextOverlap | None:
    """The overlap with the highest F1, the first among equals; undefined (None) without a reference."""
    return max(overlaps, key=lambda one: one.f1, default=None)


def exact_match(response: str, references: Sequence[str]) -> float | None:
    """Exact match: 1 if the answer equals a reference after folding, else 0; undefined (None) without a reference.

    Folding as for SQuAD (Rajpurkar et al. 2016): lower case, without punctuation, English articles and superfluous
    white space; here also NFKC, so that full-width letters equal the others.

    >>> exact_match("The U.S.!", ["us"]), exact_match("dog", ["cat"]), exact_match("कि", ["की"])
    (1.0, 0.0, 0.0)
    """
    if not references:
        return None
    return float(
        any(_folded(response) == _folded(reference) for reference in references)
    )


def token_f1(
    response: str, references: Sequence[str], tokenizer: Tokenizer
) -> float | None:
    """Token F1: the harmonic mean of clipped token precision and recall, without English articles; best reference.

    Range 0 to 1; undefined (None) without a reference. Two texts without a token are equal: 1. Rajpurkar et al. 2016,
    with the tokens of `rouge_n`, which support languages without spaces.

    >>> token_f1("a cat on the mat", ["the cat sat on mats"], "13a") == 2 * (2 / 3) * (2 / 4) / (2 / 3 + 2 / 4)
    True
    """
    return max(
        (_token_f1(response, reference, tokenizer) for reference in references),
        default=None,
    )


def _token_f1(response: str, reference: str, tokenizer: Tokenizer) -> float:
    ours, theirs = (
        Counter(
            word
            for word in split_tokens(text, tokenizer)
            if word not in ENGLISH_ARTICLES
        )
        for text in (response, reference)
    )
    if not ours and not theirs:
        return 1.0
    return _of((ours & theirs).total(), ours.total(), theirs.total()).f1


def _folded(text: str) -> str:
    plain = PUNCTUATION_PATTERN.sub("", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(word for word in plain.split() if word not in ENGLISH_ARTICLES)


def _of(common: int, ours: int, theirs: int) -> TextOverlap:
    return TextOverlap(
        common / ours if ours else 0.0, common / theirs if theirs else 0.0
    )


def _ngrams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def _longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest common subsequence, one row of the table at a time."""
    row = [0] * (len(second) + 1)
    for item in first:
        diagonal = 0
        for i, other in enumerate(second, start=1):
            above = row[i]
            row[i] = diagonal + 1 if item == other else max(above, row[i - 1])
            diagonal = above
    return row[-1]
