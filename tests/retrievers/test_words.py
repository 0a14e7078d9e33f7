"""What BM25 counts as a word, in many scripts."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrievers.bm25 import BM25
from retrievers.errors import InputError
from retrievers.words import ASCII_WORD, tokenize


@pytest.mark.parametrize(
    ("script", "text", "terms"),
    [
        ("Devanagari", "हिन्दी भाषा।", "हिन्दी भाषा"),
        ("Bengali", "বাংলা ভাষা", "বাংলা ভাষা"),
        ("Tamil", "தமிழ் மொழி", "தமிழ் மொழி"),
        ("Telugu", "తెలుగు భాష", "తెలుగు భాష"),
        ("Malayalam", "മലയാളം", "മലയാളം"),
        ("Gurmukhi", "ਪੰਜਾਬੀ ਭਾਸ਼ਾ", "ਪੰਜਾਬੀ ਭਾਸ਼ਾ"),
        ("Sinhala", "සිංහල භාෂාව", "සිංහල භාෂාව"),
        ("Hebrew, pointed", "שָׁלוֹם, עוֹלָם", "שָׁלוֹם עוֹלָם"),
        ("Arabic, with vowel signs", "مُحَمَّد كِتَاب", "مُحَمَّد كِتَاب"),
        ("Tibetan", "བོད་སྐད།", "བོད སྐད"),
        ("Ethiopic", "አማርኛ፡ቋንቋ", "አማርኛ ቋንቋ"),
        ("Cyrillic", "Русский язык", "русский язык"),
        ("Greek", "Ελληνική γλώσσα", "ελληνική γλώσσα"),
        ("Georgian", "ქართული ენა", "ქართული ენა"),
        ("Vietnamese", "Tiếng Việt", "tiếng việt"),
        ("Turkish", "İstanbul", "istanbul"),
        ("Yoruba, no letter composed", "ẹ̀kọ́", "ẹ̀kọ́"),
        # Without spaces, cut between what a reader sees as characters.
        ("Thai", "ภาษาไทย", "ภาษ าษา ษาไ าไท ไทย"),
        ("Lao", "ພາສາລາວ", "ພາສ າສາ ສາລ າລາ ລາວ"),
        ("Khmer", "ភាសាខ្មែរ", "ភាសាខ្មែ សាខ្មែរ"),
        ("Burmese", "မြန်မာ", "မြန်မ န်မာ"),
        ("Thai, short", "รถ", "รถ"),
        ("Thai beside others", "ซื้อiPhone15", "ซื้อ iphone15"),
        ("Japanese", "東京タワー", "東京 京タ タワ ワー"),
        ("Japanese, half width", "ｶﾞｷﾞｸﾞ", "ガギ ギグ"),
        ("Ainu", "ㇷ゚カ", "ㇷ゚カ"),
        ("Korean", "한국어", "한국 국어"),
        ("Chinese", "中文 字", "中文 字"),
    ],
)
def test_words_of_every_script_keep_their_marks(script: str, text: str, terms: str) -> None:
    assert tokenize(text) == [unicodedata.normalize("NFKC", term) for term in terms.split()], script


@pytest.mark.parametrize(
    ("one", "other"),
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
def test_what_looks_the_same_is_the_same(one: str, other: str) -> None:
    assert tokenize(one) == tokenize(other)


def test_what_ends_a_word() -> None:
    assert tokenize("'tis rock'n'roll l’homme 3.14 foo_bar a\u200bb na\u00a0\u0308ve") == [
        "tis", "rock'n", "roll", "l", "homme", "3", "14", "foo_bar", "a", "b", "na", "ve",
    ]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_the_short_way_for_ascii_finds_the_same(text: str) -> None:
    """A letter outside ASCII, set apart, takes the whole rule."""
    assert [*tokenize(text), "é"] == tokenize(text + " é")
    assert tokenize(text) == ASCII_WORD.findall(text.lower())


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_no_letter_is_lost(text: str) -> None:
    found = "".join(tokenize(text))
    folded = unicodedata.normalize("NFKC", text).lower()
    assert {c for c in folded if c.isalpha() and unicodedata.category(c) != "Lm"} - set(found) <= {"\u3164", "\uffa0",
        "\u115f", "\u1160"}  # fmt: skip


@pytest.mark.parametrize("k1", [-1.0, 1e308, float("nan")])
def test_a_k1_by_which_no_score_is_finite_is_refused(k1: float) -> None:
    with pytest.raises(InputError, match=r"k1: .*should be (less|greater) than or equal to"):
        BM25(k1=k1)
