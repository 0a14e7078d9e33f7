"""The survey templates are what their READMEs say they are: counts, pairs, labels, agreement, and every figure."""

import json
import re
import unicodedata
from collections import Counter
from itertools import combinations
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

import pytest
from scipy.stats import kendalltau

from harness.dataset.load import DatasetReference, load

DATASETS = Path(__file__).parents[3] / "datasets"
LANGUAGES = ("en", "ja")
QUERY_FILES = ("queries.json", "queries-extended.json", "labels-a.json", "labels-b.json")
KINDS = ("keywords", "sentence", "intent", "typo", "wrong-term")
ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
JAPANESE = re.compile(r"[ぁ-んァ-ヺ一-鿿]")
TYPES = {
    "単一選択": "single choice",
    "複数選択": "multiple choice",
    "自由記述": "free text",
    "段階評価": "scale",
    "数値入力": "number",
}
HEADS = {
    "en": ("# Survey overview", ["ID", "Survey name", "Survey description", "Category", "Tags"], "# Survey questions"),
    "ja": ("# アンケート概要", ["ID", "アンケート名", "アンケート説明", "カテゴリ", "タグ"], "# アンケート内容"),
}
QUESTION = {
    "en": re.compile(r"\* Q\.(\d+): (.+)\n   \* Question type: (.+)((?:\n   \* Choice \d+: .+)*)"),
    "ja": re.compile(r"\* Q\.(\d+): (.+)\n   \* 設問タイプ: (.+)((?:\n   \* 選択肢\d+: .+)*)"),
}
# Every function word that an intent query shares with its documents; there are no others to be excused.
FUNCTION_WORDS = set(
    re.findall(
        "[a-z]+",
        "a about after and are as at be by did do does for have how if in is it its of on or our so that the their "
        "they to up us we were what when where whether who whom why with would",
    )
)


class Question(NamedTuple):
    text: str
    type: str
    choices: tuple[str, ...]


class Template(NamedTuple):
    id: str
    name: str
    description: str
    category: str
    tags: str
    questions: tuple[Question, ...]

    @property
    def prose(self):
        return " ".join([self.name, self.description, *(question.text for question in self.questions)])


def folder(language):
    return DATASETS / f"survey-templates-{language}"


def parsed(language, text):
    """The template in a file; fails where the file is not exactly of the form."""
    head, names, body = HEADS[language]
    overview, questions = text.split(f"\n\n{body}\n\n")
    title, *lines = overview.split("\n")
    assert title == head
    assert lines[0] == ""
    pairs = [re.fullmatch(r"\* (.+?): (.+)", line).groups() for line in lines[1:]]
    assert [name for name, _ in pairs] == names
    found = []
    for number, block in enumerate(questions.removesuffix("\n").split("\n\n"), 1):
        match = QUESTION[language].fullmatch(block)
        assert match, block
        assert int(match[1]) == number
        choices = [line.split(": ", 1) for line in match[4].strip("\n").split("\n") if line]
        assert [int(re.search(r"\d+$", name)[0]) for name, _ in choices] == list(range(1, len(choices) + 1))
        kind = TYPES[match[3]] if language == "ja" else match[3]
        found.append(Question(match[2], kind, tuple(text for _, text in choices)))
    return Template(*(value for _, value in pairs), tuple(found))


def queries(language, name):
    return json.loads((folder(language) / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def templates():
    """Per language, the templates by the names of their files."""
    return {
        language: {
            file.stem: parsed(language, file.read_text(encoding="utf-8"))
            for file in sorted(folder(language).glob("*.md"))
            if file.stem != "README"
        }
        for language in LANGUAGES
    }


def plain(text):
    """Letters and digits alone, so that neither width nor case nor punctuation hides a repetition."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).lower())


def shingles(text, size):
    text = plain(text)
    return {text[i : i + size] for i in range(len(text) - size + 1)}


def likeness(one, other):
    return len(one & other) / len(one | other)


def test_files_are_data_alone():
    for language in LANGUAGES:
        names = {path.name for path in folder(language).iterdir()}
        others = {name for name in names if not ULID.fullmatch(name.removesuffix(".md"))}
        assert others == {*QUERY_FILES, "README.md", "LICENSE"}
    assert not list(DATASETS.rglob("*.py"))


def test_templates_have_the_stated_form(templates):
    for language in LANGUAGES:
        assert len(templates[language]) == 182
        for name, template in templates[language].items():
            assert template.id == name
            assert ULID.fullmatch(name)
            assert 3 <= len(template.questions) <= 8
            for question in template.questions:
                assert question.type in TYPES.values()
                assert bool(question.choices) != (question.type in ("free text", "number"))
                assert len(question.choices) <= 11
                assert len(set(question.choices)) == len(question.choices)


def test_translations_are_paired(templates):
    en, ja = templates["en"], templates["ja"]
    assert en.keys() == ja.keys()
    for id_, template in en.items():
        shape = [(question.type, len(question.choices)) for question in template.questions]
        assert shape == [(question.type, len(question.choices)) for question in ja[id_].questions]
        assert template.tags.count(",") in range(1, 8)
        assert not JAPANESE.search(template.prose)
        assert all(JAPANESE.search(question.text) for question in ja[id_].questions)
    for name in QUERY_FILES:
        english, japanese = queries("en", name), queries("ja", name)
        for one, other in zip(english, japanese, strict=True):
            words = dict.fromkeys(("query", "reference", "claims"))
            assert {**one, **words} == {**other, **words}
            assert not JAPANESE.search(one["query"])
            assert JAPANESE.search(other["query"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_template_repeats_another(templates, language):
    every = templates[language].values()
    assert len({plain(template.name) for template in every}) == len(every)
    # Stronger than the promised third of a file: no question line occurs twice anywhere.
    lines = Counter(plain(question.text) for template in every for question in template.questions)
    assert lines.most_common(1)[0][1] == 1
    size = {"en": 5, "ja": 3}[language]
    texts = [
        shingles(" ".join([t.prose, *(choice for question in t.questions for choice in question.choices)]), size)
        for t in every
    ]
    assert max(likeness(one, other) for one, other in combinations(texts, 2)) < 1 / 3


@pytest.mark.parametrize("language", LANGUAGES)
def test_queries_have_the_stated_form(templates, language):
    article, extended = queries(language, "queries.json"), queries(language, "queries-extended.json")
    assert [row["id"] for row in article] == [f"q{n:02}" for n in range(1, 14)]
    assert [row["id"] for row in extended] == [f"e{n:03}" for n in range(1, 126)]
    assert all(row["tags"] == ["article"] for row in article)
    assert Counter(tag for row in extended for tag in row["tags"]) == dict.fromkeys(KINDS, 25)
    assert all(len(row["tags"]) == 1 for row in extended)
    for rows, least in ((article, 4), (extended, 3)):
        for row in rows:
            labels = row["relevant_documents"]
            assert least <= len(labels) <= 10
            assert len(set(labels)) == len(labels)
            assert templates[language].keys() >= set(labels)


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_query_repeats_a_title_or_another_query(templates, language):
    texts = [plain(row["query"]) for name in QUERY_FILES[:2] for row in queries(language, name)]
    assert len(set(texts)) == len(texts)
    assert not set(texts) & {plain(template.name) for template in templates[language].values()}
    pairs = combinations([shingles(text, 3) for text in texts], 2)
    assert max(likeness(one, other) for one, other in pairs) < 0.6


def stem(word):
    return re.sub(r"(ing|ed|es|s|ly|er|ers)$", "", word)


def content_words(text):
    return {stem(word) for word in re.findall(r"[a-z]+", text.lower()) if word not in FUNCTION_WORDS}


def test_intent_queries_share_no_content_word_with_their_documents(templates):
    for language in LANGUAGES:
        for row in queries(language, "queries-extended.json"):
            if row["tags"] != ["intent"]:
                continue
            for document in row["relevant_documents"]:
                prose = templates[language][document].prose
                if language == "en":
                    shared = content_words(row["query"]) & content_words(prose)
                else:
                    words = re.findall(r"[一-鿿々]{2,}|[ァ-ヺー]{2,}", row["query"])
                    shared = {word for word in words if word in prose}
                assert not shared, (row["id"], document)


def spread(numbers):
    """A distribution as the READMEs write it: value × count."""
    return ", ".join(f"{value} × {count}" for value, count in sorted(Counter(numbers).items()))


def figures(templates, language):
    """Each figure under the READMEs' names: (English, Japanese) -> value."""
    every = list(templates[language].values())
    questions = [question for template in every for question in template.questions]
    types = Counter(question.type for question in questions)
    article, extended, a, b = (
        [row["relevant_documents"] for row in queries(language, name)]
        for name in ("queries.json", "queries-extended.json", "labels-a.json", "labels-b.json")
    )
    named = Counter(document for labels in [*article, *extended] for document in labels)
    size = [
        len(template_text(language, t).split()) if language == "en" else len(template_text(language, t)) for t in every
    ]
    common = [[document for document in one if document in other] for one, other in zip(a, b, strict=True)]
    taus = [
        kendalltau(range(len(both)), [other.index(document) for document in both]).statistic
        for both, other in zip(common, b, strict=True)
        if len(both) >= 2
    ]
    overlap = [likeness(set(one), set(other)) for one, other in zip(a, b, strict=True)]
    return {
        ("Templates", "テンプレート"): len(every),
        ("Categories", "カテゴリ"): len({template.category for template in every}),
        ("Questions", "設問"): len(questions),
        **{(f"… {en}", f"… {ja}"): types[en] for ja, en in TYPES.items()},
        ("Questions a template", "1テンプレートの設問数"): spread(len(template.questions) for template in every),
        ("Choices a question", "1設問の選択肢数"): spread(len(question.choices) for question in questions),
        ("Words a file", "1ファイルの文字数"): f"{min(size)} to {max(size)}, median {median(size):g}",
        ("Labels a query, `queries.json`", "1クエリの正解数(`queries.json`)"): spread(map(len, article)),
        ("Labels a query, `queries-extended.json`", "1クエリの正解数(`queries-extended.json`)"): spread(
            map(len, extended)
        ),
        ("Labels a query, `labels-a.json`", "1クエリの正解数(`labels-a.json`)"): spread(map(len, a)),
        ("Labels a query, `labels-b.json`", "1クエリの正解数(`labels-b.json`)"): spread(map(len, b)),
        ("Templates in no label", "どの正解にもないテンプレート"): len(every) - len(named),
        ("Templates in one label only", "正解に1度だけ現れるテンプレート"): sum(n == 1 for n in named.values()),
        ("Queries with two or more common documents", "共通文書が2件以上のクエリ"): f"{len(taus)} of 50",
        ("… with exactly two", "… ちょうど2件"): sum(len(both) == 2 for both in common),
        ("Mean Kendall's tau on the common documents", "共通文書でのKendallの順位相関τの平均"): f"{mean(taus):.3f}",
        ("… tau of 1", "… τが1のクエリ"): sum(tau > 1 - 1e-9 for tau in taus),
        ("Mean Jaccard overlap of the sets", "集合のJaccard係数の平均"): f"{mean(overlap):.3f}",
        ("The same set", "集合が同じクエリ"): f"{sum(share == 1 for share in overlap)} of 50",
        ("The same best document", "1位が同じクエリ"): f"{sum(o[0] == t[0] for o, t in zip(a, b, strict=True))} of 50",
    }


def template_text(language, template):
    return (folder(language) / f"{template.id}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("language", LANGUAGES)
def test_readme_tells_the_figures_of_the_files(templates, language):
    readme = (folder(language) / "README.md").read_text(encoding="utf-8")
    rows = [
        tuple(cell.strip() for cell in line.strip("|").split("|")) for line in readme.split("\n") if line[:1] == "|"
    ]
    said = [(row[0], row[1]) for row in rows if len(row) == 2 and row[0] and not set(row[0]) <= {"-"}]
    want = [(names[LANGUAGES.index(language)], str(value)) for names, value in figures(templates, language).items()]
    assert said == want
    assert "CC BY 4.0" in readme
    assert "Creative Commons Attribution 4.0 International" in (folder(language) / "LICENSE").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize(("language", "asked"), [("en", "en"), ("ja", "ja"), ("en", "ja"), ("ja", "en")])
def test_harness_reads_them_also_across_languages(language, asked):
    names = tuple(f"../survey-templates-{asked}/{name}" for name in QUERY_FILES[:2])
    dataset = load(DatasetReference(folder(language), queries=names))
    assert dataset.count == 182
    assert len(dataset.queries) == 13 + 125
    assert not any(dataset.ledger.values())
    assert dataset.queries[0].fields["tags"] == "article"
    assert [query.text for query in dataset.queries[:13]] == [row["query"] for row in queries(asked, "queries.json")]
