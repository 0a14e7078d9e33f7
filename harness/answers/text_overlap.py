"""An answer against its references.

These measures compare texts alone and need no judge. Without a reference they are
undefined (None); of several references BLEU uses all at once, the others the best.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

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
_Counted = TypeVar("_Counted")


class TextOverlap(NamedTuple):
    """The overlap of two texts, relative to each of them."""

    precision: float
    """The share of the answer's items that the reference has."""
    recall: float
    """The share of the reference's items that the answer has."""

    @property
    def f1(self) -> float:
        """The harmonic mean of the two; 0 if both are 0."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def bleu(
    response: str, references: Sequence[str], tokenizer: Tokenizer, *, order: int = 4
) -> float | None:
    """BLEU of one answer, with n-grams of n = 1 to `order`.

    Brevity penalty x geometric mean of the clipped n-gram precisions. Range 0 to 1
    (sacrebleu's figure divided by 100). sacrebleu 2 with effective order, since a short
    answer has no 4-grams, and its exponential smoothing. All references are used at
    once, each as one text. Undefined (None) without a reference; 0 for an empty answer.
    Papineni et al. 2002; Post 2018.

    >>> references = ["there is a cat on the mat"]
    >>> round(bleu("the cat is on the mat", references, "13a", order=2), 6)
    0.488716
    """
    if not references:
        return None
    if not response.strip():
        return 0.0
    metric = sacrebleu_metric(tokenizer, effective_order=True, max_ngram_order=order)
    percentage = metric.sentence_score(response, list(references)).score
    return min(float(percentage) / 100, 1.0)


def bleu_signature(tokenizer: Tokenizer, references: int | None = None) -> str:
    """The signature of sacrebleu, with which others can reproduce a BLEU score.

    Args:
        tokenizer: the tokenizer of the scores.
        references: number per answer; None if that varies.

    >>> bleu_signature("char", 1).partition("|version:")[0]
    'nrefs:1|case:mixed|eff:yes|tok:char|smooth:exp'
    """
    metric = sacrebleu_metric(tokenizer, effective_order=True)
    number = "var" if references is None else references
    metric.num_refs = number  # type: ignore[assignment]  # as in sacrebleu
    return str(metric.get_signature())


def chrf(response: str, references: Sequence[str]) -> float | None:
    """chrF: F2 of character n-grams, n = 1 to 6, without white space.

    The best reference counts. Range 0 to 1 (sacrebleu's figure divided by 100); needs
    no tokens, so it is the same in every language. Undefined (None) without a
    reference. Popović 2015.

    >>> chrf("価格を聞く", ["価格を聞く"]), chrf("", ["価格を聞く"])
    (1.0, 0.0)
    """
    if not references:
        return None
    if not response.strip():
        return 0.0
    require_sacrebleu()
    from sacrebleu.metrics.chrf import CHRF

    percentage = CHRF().sentence_score(response, list(references)).score
    return min(float(percentage) / 100, 1.0)


def rouge_n(response: str, reference: str, n: int, tokenizer: Tokenizer) -> TextOverlap:
    """ROUGE-N against one reference, by clipped n-grams.

    Those in common / those of the answer, and those of the reference. Lin 2004. Tokens
    are sacrebleu's, lower-cased, without punctuation: the usual package keeps only a-z
    and 0-9, and scores two identical texts in Japanese, Korean or Russian as 0.

    >>> response = "The brown fox jumped over the dog."
    >>> reference = "The quick brown fox jumps over the lazy dog."
    >>> overlap = rouge_n(response, reference, 2, "13a")
    >>> overlap.recall == 2 / 8, overlap.precision == 2 / 6
    (True, True)
    """
    response_ngrams = _ngrams(split_tokens(response, tokenizer), n)
    reference_ngrams = _ngrams(split_tokens(reference, tokenizer), n)
    return _overlap_of_counts(response_ngrams, reference_ngrams)


def rouge_l(response: str, reference: str, tokenizer: Tokenizer) -> TextOverlap:
    """ROUGE-L against one reference, by the longest common subsequence.

    Its length / tokens of the answer, and tokens of the reference. Lin 2004, on the
    whole text as one sequence. Tokens as for `rouge_n`.

    >>> response = "The brown fox jumped over the dog."
    >>> reference = "The quick brown fox jumps over the lazy dog."
    >>> overlap = rouge_l(response, reference, "13a")
    >>> overlap.recall == 6 / 9, overlap.precision == 6 / 7
    (True, True)
    """
    response_tokens = split_tokens(response, tokenizer)
    reference_tokens = split_tokens(reference, tokenizer)
    common = _longest_common_subsequence(response_tokens, reference_tokens)
    return _overlap(common, len(response_tokens), len(reference_tokens))


def best_overlap(overlaps: Sequence[TextOverlap]) -> TextOverlap | None:
    """The overlap with the highest F1, the first among equals.

    Undefined (None) without a reference.
    """
    return max(overlaps, key=lambda overlap: overlap.f1, default=None)


def exact_match(response: str, references: Sequence[str]) -> float | None:
    """Exact match: 1 if the answer equals a reference after folding, else 0.

    Undefined (None) without a reference. Folding as for SQuAD (Rajpurkar et al. 2016):
    lower case, without punctuation, English articles and superfluous white space; here
    also NFKC, so that full-width letters equal the others. Two texts of which this
    leaves nothing are equal: 1.

    >>> exact_match("The U.S.!", ["us"]), exact_match("dog", ["cat"])
    (1.0, 0.0)
    >>> exact_match("कि", ["की"])
    0.0
    """
    if not references:
        return None
    folded_references = [_fold(reference) for reference in references]
    return float(_fold(response) in folded_references)


def token_f1(
    response: str, references: Sequence[str], tokenizer: Tokenizer
) -> float | None:
    """Token F1: the harmonic mean of clipped token precision and recall.

    Without English articles; the best reference counts. Range 0 to 1; undefined (None)
    without a reference. Two texts without a token are equal: 1. Rajpurkar et al. 2016,
    with the tokens of `rouge_n`, which support languages without spaces.

    >>> f1 = token_f1("a cat on the mat", ["the cat sat on mats"], "13a")
    >>> f1 == 2 * (2 / 3) * (2 / 4) / (2 / 3 + 2 / 4)
    True
    """
    return max(
        (_token_f1(response, reference, tokenizer) for reference in references),
        default=None,
    )


def _token_f1(response: str, reference: str, tokenizer: Tokenizer) -> float:
    response_tokens = _count_without_articles(response, tokenizer)
    reference_tokens = _count_without_articles(reference, tokenizer)
    if not response_tokens and not reference_tokens:
        return 1.0
    return _overlap_of_counts(response_tokens, reference_tokens).f1


def _count_without_articles(text: str, tokenizer: Tokenizer) -> Counter[str]:
    tokens = split_tokens(text, tokenizer)
    return Counter(token for token in tokens if token not in ENGLISH_ARTICLES)


def _fold(text: str) -> str:
    normalized = unicodedata.normalize("NFKC", text).casefold()
    words = PUNCTUATION_PATTERN.sub("", normalized).split()
    return " ".join(word for word in words if word not in ENGLISH_ARTICLES)


def _ngrams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def _overlap_of_counts(
    response: Counter[_Counted], reference: Counter[_Counted]
) -> TextOverlap:
    common = (response & reference).total()
    return _overlap(common, response.total(), reference.total())


def _overlap(common: int, response_total: int, reference_total: int) -> TextOverlap:
    return TextOverlap(
        precision=common / response_total if response_total else 0.0,
        recall=common / reference_total if reference_total else 0.0,
    )


def _longest_common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest common subsequence, one row of the table at a time."""
    row = [0] * (len(second) + 1)
    for first_token in first:
        diagonal = 0
        for i, second_token in enumerate(second, start=1):
            above = row[i]
            if first_token == second_token:
                row[i] = diagonal + 1
            else:
                row[i] = max(above, row[i - 1])
            diagonal = above
    return row[-1]
