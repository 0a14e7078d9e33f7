"""The words of BM25 in many scripts, and its stemming by language."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import records
from retrievers.bm25 import BM25, queries_without_shared_word
from retrievers.meter import Meter
from retrievers.texts.word_tokens import ASCII_WORD, tokenize
from retrievers.types import Document, Query
from tests.support import layouts, small
from tests.support.small import Call

HASHING = """[[retrievers]]
name = "hashing"
kind = "dense"
encoder = { kind = "hashing" }
"""


@pytest.mark.parametrize(
    ("script", "text", "terms"),
    [
        ("Devanagari", "हिन्दी भाषा।", "हिन्दी भाषा"),
        ("Hebrew, pointed", "שָׁלוֹם, עוֹלָם", "שלום עולם"),
        ("Arabic, pointed", "مُحَمَّد ســـلام", "محمد سلام"),
        ("Arabic, forms of alef", "أحمد إلى آدم", "احمد الي ادم"),
        ("Persian", "کتابی", "كتابي"),
        ("Khmer", "ភាសាខ្មែរ", "ភាសា សាខ ខមែ មែរ"),
        ("Emoji", "🎉👍🏽 © 🇩🇪 ❤️", "🎉 👍 🇩🇪 ❤"),
        ("Ethiopic", "አማርኛ፡ቋንቋ", "አማርኛ ቋንቋ"),
        ("Vietnamese", "Tiếng Việt", "tiếng việt"),
        ("Turkish", "İstanbul", "istanbul"),
        ("Yoruba, no letter composed", "ẹ̀kọ́", "ẹ̀kọ́"),
        # Without spaces, cut between what a reader sees as characters.
        ("Thai", "ภาษาไทย", "ภา าษ ษา าไ ไท ทย"),
        ("Thai, signs of tone", "ที่นี่", "ทีนี"),
        ("Thai, short", "รถ", "รถ"),
        ("Thai beside others", "ซื้อiPhone15", "ซือ iphone15"),
        ("Japanese", "東京タワー", "東京 京タ タワ ワー"),
        ("Japanese, dots end a word (UAX #29)", "カ・タカ゠ナ", "カ タカ ナ"),
        ("Japanese, half width", "ｶﾞｷﾞｸﾞ", "ガギ ギグ"),
        ("Ainu", "ㇷ゚カ", "ㇷ゚カ"),
        ("Korean", "한국어", "한국 국어"),
        ("Chinese", "中文 字", "中文 字"),
    ],
)
def test_words_of_every_script(script: str, text: str, terms: str) -> None:
    assert tokenize(text) == [
        unicodedata.normalize("NFKC", term) for term in terms.split()
    ], script


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("soft\u00adware", "software"),
        ("می\u200cروم", "میروم"),
        ("ශ්\u200dරී", "ශ්රී"),
        ("葛\U000e0100飾区", "葛飾区"),
        ("ភាសា\u200bខ្មែរ", "ភាសាខ្មែរ"),
        ("e\u0301te\u0301", "été"),
        ("ＡＢＣ", "abc"),
    ],
)
def test_equal_looking_texts_have_equal_words(text: str, other: str) -> None:
    assert tokenize(text) == tokenize(other) != []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("'tis rock'n'roll", ["tis", "rock'n", "roll"]),
        ("l’homme", ["l", "homme"]),
        ("3.14 foo_bar", ["3", "14", "foo_bar"]),
        ("a\u200bb na\u00a0\u0308ve", ["a", "b", "na", "ve"]),
    ],
)
def test_marks_within_a_text_part_words(text: str, words: list[str]) -> None:
    assert tokenize(text) == words


@settings(max_examples=200)
@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_the_fast_path_for_ascii_has_the_same_words(text: str) -> None:
    """A letter outside ASCII, set apart, takes the whole rule."""
    assert [*tokenize(text), "é"] == tokenize(text + " é")
    assert tokenize(text) == ASCII_WORD.findall(text.lower())


@settings(max_examples=300)
@given(st.text())
def test_no_letter_is_lost(text: str) -> None:
    folded = unicodedata.normalize("NFKC", text).lower()
    blank = {"\u3164", "\uffa0", "\u115f", "\u1160"}
    letters = {c for c in folded if c.isalpha() and unicodedata.category(c) != "Lm"}
    letters = {c for c in letters if not unicodedata.name(c, "").startswith("ARABIC")}
    assert letters - set("".join(tokenize(text))) <= blank


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("كتاب محمد", "مُحَمَّد"),
        ("كتاب محمد", "محـــمد"),
        ("إلى آدم", "ادم"),
        ("שָׁלוֹם עֲלֵיכֶם", "שלום"),
        ("ខ្ញុំនិយាយភាសាខ្មែរ", "ភាសា"),
        ("ฉันพูดภาษาไทย", "ภาษา"),
        ("see you 🎉", "🎉"),
        ("ISPARTA GÜLÜ", "ısparta"),
        ("ısparta gülü", "ISPARTA"),
    ],
)
def test_words_are_found_however_they_are_written(text: str, query: str) -> None:
    (ranking,) = indexed([text]).search([Query("q", query)], 1, Meter())
    assert ranking.doc_ids == ("0",)


@pytest.mark.parametrize(
    ("documents", "query"),
    [
        ("Die Prüfung ist im Mai", "Klausur"),
        ("The exam is in May", "試験"),
        ("试验在五月", "exam"),
    ],
)
@pytest.mark.parametrize("retriever", [small.BM25, HASHING], ids=["bm25", "no bm25"])
def test_queries_without_a_word_of_the_corpus_are_named(
    documents: str, query: str, retriever: str, tmp_path: Path, call: Call
) -> None:
    data = tmp_path / "data"
    layouts.jsonl(data / "documents.jsonl", [{"_id": "d1", "text": documents}])
    asked = [{"query": text, "gold_id": "d1"} for text in (query, documents)]
    layouts.jsonl(data / "queries.jsonl", asked)
    sentence = "1 of 2 queries shares no word with the corpus"
    path = small.experiment(tmp_path, retrievers=retriever)
    for target in (path, data):
        assert f"warning: {sentence}: q0" in call("check", target).out
    folder = tmp_path / "out"
    call("run", path, "--results", folder)
    told = call("report", next(folder.glob("*/")))
    assert sentence in told.out + told.err


ENGLISH = [
    f"The {word} of this house is not for sale before May." for word in small.TEXTS
]
GERMAN = [
    f"Der {word} in diesem Haus ist vor Mai nicht zu verkaufen." for word in small.TEXTS
]
JAPANESE = ["一年に二十五日の有給休暇があります。", "休暇は前もって申し込みます。"]
UKRAINIAN = [
    "Договір не дійсний, і термін в один місяць вже минув.",
    "Що це для нас, і як його змінити?",
]


def indexed(texts: Sequence[str], **options) -> BM25:
    retriever = BM25(**options)
    retriever.index(
        [Document(str(number), "", text) for number, text in enumerate(texts)], Meter()
    )
    return retriever


@pytest.mark.parametrize(
    ("texts", "stemming", "words"),
    [
        (ENGLISH, "english", "stemmed as English"),
        (GERMAN, "german", "stemmed as German"),
        (ENGLISH * 9 + GERMAN, "english", "stemmed as English"),
        (ENGLISH * 8 + GERMAN * 2, "none", "not stemmed"),
        (ENGLISH + JAPANESE, "none", "not stemmed"),
        (JAPANESE, "none", "not stemmed"),
        (UKRAINIAN, "none", "not stemmed"),  # a language that Snowball has not
        (["vacation", "refund policy", "404"], "none", "not stemmed"),
    ],  # too short to tell
)
def test_stemming_follows_the_documents_by_default(
    texts: list[str], stemming: str, words: str
) -> None:
    provenance = indexed(texts).provenance
    assert (
        provenance["fingerprint"]
        == f"bm25 k1=0.9 b=0.4 words=uax29-4 stemming={stemming}"
    )
    assert provenance["words"] == words


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ("0",)),
        ({"stemming": "english"}, ("0",)),
        ({"stemming": ""}, ()),
        ({"chunk": {"size": 20}}, ("0",)),
    ],
    ids=["default", "english", "none", "passages"],
)
def test_stems_match_and_unstemmed_words_do_not(
    options: Any, expected: tuple[str, ...]
) -> None:
    texts = [
        "Nobody may smoke in these houses.",
        "The train leaves at noon from the main station.",
    ]
    retriever = indexed(texts, **options)
    [ranking] = retriever.search([Query("q", "smoking house")], 10, Meter())
    assert ranking.doc_ids == expected


def test_the_order_of_the_documents_does_not_matter() -> None:
    """Of 2,200 documents 200 are looked at; those of one language stand together."""
    texts = [
        f"{number} {text}" for number, text in enumerate(ENGLISH * 200 + GERMAN * 20)
    ]
    forward = indexed(texts)
    back = indexed(texts[::-1])
    assert (
        forward.fingerprint == back.fingerprint
        and forward.provenance["words"] == "stemmed as English"
    )


def test_terminal_page_and_manifest_show_the_stemming(
    tmp_path: Path, call: Call
) -> None:
    output = call(
        "run",
        small.experiment(tmp_path, report=True),
        "--results",
        tmp_path / "out",
        "--explain",
        code=0,
    )
    assert "bm25: words stemmed as English" in output.out
    folder = tmp_path / "out" / "small"
    facts = records.read_manifest(folder).retrievers["bm25"].provenance
    assert facts.model.word_stemming == "stemmed as English"
    assert facts.model.fingerprint.endswith("stemming=english")
    assert "<bdi><small>words</small> stemmed as English</bdi>" in (
        folder / "report.html"
    ).read_text(encoding="utf-8")


def test_the_fingerprint_has_all_digits_of_k1() -> None:
    assert BM25(k1=1.2).fingerprint != BM25(k1=1.2000001).fingerprint
    assert BM25(k1=1, b=0.75).fingerprint.startswith("bm25 k1=1 b=0.75 ")


def test_each_corpus_that_an_object_indexes_has_its_own_language() -> None:
    retriever = BM25()
    languages: list[str | None] = []
    for texts in (ENGLISH, GERMAN):
        documents = [Document(str(i), "", text) for i, text in enumerate(texts)]
        retriever.index(documents, Meter())
        languages.append(retriever.facts.model.word_stemming)
    assert languages == ["stemmed as English", "stemmed as German"]


def test_documents_without_a_word_do_not_hide_the_language_of_the_others() -> None:
    texts = ["The lease of this house ends in May.", "...", "---"]
    documents = [Document(str(i), "", text) for i, text in enumerate(texts)]
    queries = [Query("shared", "leases"), Query("not", "wheels")]
    assert queries_without_shared_word(queries, lambda: documents) == ["not"]
