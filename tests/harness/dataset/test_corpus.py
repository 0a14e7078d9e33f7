"""Data sets as they are read.

Documents with front matter, labels as they were given, and the counts of data quality.
"""

import json
from pathlib import Path

import pytest

from harness.dataset import DatasetReference, load_dataset
from harness.dataset.dataset import Dataset
from harness.dataset.readers.front_matter import read_front_matter
from retrievers.errors import InputError
from retrievers.types import Document
from tests.support.layouts import jsonl

SURVEY = """# アンケート概要

* ID: X1
* アンケート名: Hotels
* カテゴリ: 顧客
* タグ: a, b

# アンケート内容

* Q.1: ID: は何ですか?
"""
CORPUS = [("d1", "first"), ("d2", "second")]


def beir(
    folder: Path,
    corpus=CORPUS,
    queries=(("1", "which?"),),
    qrels=(("1", "d1", 2),),
    **options,
) -> Dataset:
    jsonl(folder / "corpus.jsonl", [{"_id": id_, "text": text} for id_, text in corpus])
    jsonl(
        folder / "queries.jsonl", [{"_id": id_, "text": text} for id_, text in queries]
    )
    (folder / "qrels").mkdir()
    lines = "".join(
        f"{query}\t{document}\t{grade}\n" for query, document, grade in qrels
    )
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{lines}")
    return load_dataset(DatasetReference(folder), **options)


def markdown(folder: Path, queries: list[dict[str, object]], **files: str) -> Dataset:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "queries.json").write_text(json.dumps(queries), encoding="utf-8")
    return load_dataset(DatasetReference(folder))


def test_a_folder_of_markdown_may_skip_what_git_ignores(tmp_path: Path) -> None:
    markdown(tmp_path, [{"query": "what"}], drafts__a_md="first", b_md="second")
    (tmp_path / ".gitignore").write_text("drafts/\n")
    dataset = load_dataset(DatasetReference(tmp_path, gitignore=True))
    assert [document.id for document in dataset.documents()] == ["b"]


def test_markdown_as_in_the_article_and_papers_are_no_documents(tmp_path: Path) -> None:
    files = {
        "a_md": SURVEY,
        "b_md": "# Cars\n\nWheels.",
        "README_md": "about",
        "LICENSE_md": "",
        ".hidden__x_md": "no",
        "deep__er__note_txt": "text",
        "deep__README_md": "this one counts",
    }
    dataset = markdown(
        tmp_path,
        [{"query": "rooms", "relevant_documents": ["X1", "deep/er/note"]}],
        **files,
    )
    documents = {document.id: document for document in dataset.documents()}
    assert list(documents) == ["X1", "b", "deep/README", "deep/er/note"]
    first, second = documents["X1"], documents["b"]
    assert (first.title, first.fields) == (
        "Hotels",
        {"category": "顧客", "tags": "a, b"},
    )
    assert "ID: X1" not in first.text and "Q.1: ID: は何ですか?" in first.text
    assert first.content.startswith("Hotels # アンケート概要")
    assert (second.title, second.text) == ("Cars", "# Cars\n\nWheels.")
    assert [query.id for query in dataset.queries] == ["q0"]
    assert dataset.labels["q0"].ranked == ("X1", "deep/er/note")


def test_a_list_with_an_id_is_no_survey_template(tmp_path: Path) -> None:
    page = "# User\n\n- id: the id of the user\n- tags: a list"
    row = {"query": "what is a user", "relevant_documents": ["user.md"]}
    [document] = markdown(tmp_path, [row], user_md=page).documents()
    assert document == Document("user", "User", page)


@pytest.mark.parametrize("key", ["id", "_id", "query_id", "qid"])
@pytest.mark.parametrize("other", ["a.md", "documents.jsonl"])
def test_queries_beside_documents_of_any_form_have_their_ids_and_fields(
    tmp_path: Path, key, other
) -> None:
    text = "# A" if other == "a.md" else '{"id": "a", "text": "# A"}\n'
    (tmp_path / other).write_text(text)
    row = {key: "x1", "query": "what", "relevant_documents": ["a"]}
    rows = [row | {"fields": {"lang": "de"}, "metadata": {"year": 2}}]
    [query] = markdown(tmp_path, rows).queries
    assert (query.id, query.fields) == ("x1", {"lang": "de", "year": "2"})


def test_labels_are_kept_as_they_are(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {
            "query": "1",
            "relevant_documents": ["a", "b"],
            "labelled_by": "me",
            "tags": ["x", "y"],
        },
        {"query": "2", "relevant_documents": [["a"], ["b", "c"]], "id": "groups"},
        {"query": "3", "relevant_documents": {"a": 3, "b": 0}},
    ]
    dataset = markdown(tmp_path, rows, a_md="1x", b_md="2x", c_md="3x")
    assert dataset.labels["q0"].as_json() == {"ranked": ("a", "b"), "by": "me"}
    assert dataset.labels["groups"].groups == (("a",), ("b", "c"))
    assert dataset.labels["q2"].grades == {"a": 3, "b": 0}
    assert dataset.queries[0].fields == {"tags": "x, y"}


def test_what_is_counted_and_not_refused(tmp_path: Path) -> None:
    corpus = [("a", "One  text"), ("b", "one text"), ("c", " "), ("d", "other")]
    queries = [("1", "Other"), ("2", "two"), ("3", "three")]
    dataset = beir(tmp_path, corpus, queries, [("1", "a", 1), ("2", "b", 0)])
    assert dataset.data_quality == {
        "duplicate-text": ("b (as a)",),
        "empty-document": ("c",),
        "no-relevant-document": ("2",),
        "unjudged-query": ("3",),
    }
    assert [query.id for query in dataset.queries] == ["1"]
    assert [query.id for query in dataset.judged_queries] == ["1", "2"]
    assert dataset.document_count == 4


def test_dangling_judgments_can_be_counted_instead(tmp_path: Path) -> None:
    query_ids = [str(n) for n in range(1, 40)]
    queries = [(n, f"query {n}") for n in query_ids if n != "9"]
    qrels = [*((n, "d1", 1) for n in query_ids), ("1", "none", 1)]
    dataset = beir(tmp_path / "d", queries=queries, qrels=qrels, drop_dangling=True)
    assert len(dataset.labels) == 38 and dataset.labels["1"].grades == {"d1": 1}
    assert dataset.data_quality["dangling-document"] == ("1 none",)
    assert dataset.data_quality["dangling-query"] == ("9",)


def test_a_document_that_a_query_names_twice_is_one_label(tmp_path: Path) -> None:
    """1 of 9 is more than one in ten; 1 of 17 would not be."""
    documents = [{"id": f"d{n}", "text": f"text {n}"} for n in range(8)]
    queries = [
        {"query_id": f"q{n}", "query": f"which {n}?", "relevant": [f"d{n}", f"d{n}"]}
        for n in range(8)
    ]
    queries[0]["relevant"] = ["d0", "d0", "none"]
    jsonl(tmp_path / "documents.jsonl", documents)
    jsonl(tmp_path / "queries.jsonl", queries)
    with pytest.raises(InputError, match="1 of 9 labels are lost"):
        load_dataset(DatasetReference(tmp_path), drop_dangling=True)


def labels_of_removed_documents(folder: Path, documents: int, labels: int) -> list[str]:
    """The problems of labels that name documents which were removed."""
    queries = [(f"q{n}", f"which {n}?") for n in range(labels)]
    qrels = [(f"q{n}", f"gone {n % documents}", 1) for n in range(labels)]
    with pytest.raises(InputError) as caught:
        beir(folder / "d", queries=queries, qrels=[("q0", "d1", 1), *qrels])
    problems = caught.value.problems
    assert sum(problem.occurrences for problem in problems) == labels
    return [problem.what for problem in problems]


def test_labels_of_one_removed_document_are_one_problem(tmp_path: Path) -> None:
    assert labels_of_removed_documents(tmp_path, documents=3, labels=12) == [
        f"4 queries name document 'gone {n}', which does not exist: {queries}"
        for n, queries in enumerate(("q0, q3, q6, …", "q1, q4, q7, …", "q2, q5, q8, …"))
    ]


def test_labels_of_removed_documents_that_are_not_listed_are_counted(
    tmp_path: Path,
) -> None:
    *listed, last = labels_of_removed_documents(tmp_path, documents=22, labels=44)
    assert len(listed) == 20
    assert last == "and 4 more like these"


def test_the_digest_covers_documents_queries_and_labels(tmp_path: Path) -> None:
    changes: dict[str, dict[str, object]] = {
        "same": {},
        "copy": {},
        "query": {"queries": [("1", "what?")]},
        "label": {"qrels": [("1", "d1", 1)]},
        "corpus": {"corpus": [("d1", "x")]},
    }
    assert (
        len(
            {beir(tmp_path / name, **change).digest for name, change in changes.items()}
        )
        == 4
    )


@pytest.mark.parametrize(
    ("head", "fields"),
    [
        ("tags: [a, 'b c', \"d\"]", {"tags": "a, b c, d"}),
        (
            "note: it's\n\n# remark\nempty:\nauthor: 'O''Neil'",
            {"note": "it's", "author": "O'Neil"},
        ),
        ("summary: >-\n  two\n  lines", {"summary": "two lines"}),
        ("by: null\nvia: ~\nword: 'null'", {"word": "null"}),
        ("seo:\n  robots: none\n  rank: 1", {"seo": "robots: none rank: 1"}),
        ("Last updated: 2026-09-01 10:00:00", {"Last updated": "2026-09-01 10:00:00"}),
    ],
)
def test_simple_entries_are_read_as_text(head, fields):
    assert read_front_matter(f"---\n{head}\n---\ntext") == ("", fields, "text")


@pytest.mark.parametrize(
    "text",
    [
        "---\n\nA rule, then text.\n\n---\nmore",
        "---\ntitle: never closed\n\ntext",
        "---\n- a\n---\ntext",
        "---\ntitle: a\ntitle: b\n---\ntext",
        "text\n---\ntitle: a\n---\n",
        "---\na: " + "[" * 1_000 + "\n---\ntext",
        "---\na: !!python/name:os.system\nb: [c\n---\ntext",
        "",
    ],
)
def test_what_is_no_front_matter_stays_in_the_text(text):
    assert read_front_matter(text) == ("", {}, text)


TEMPLATES = {
    "en": ("d9ace5384bb9e382", "5e85689ba02fa590", "b75708568daef746"),
    "ja": ("69e779f698a6a517", "c08ca2edaaf7296f", "115a211edcd1bd63"),
}
"""Digests of documents and queries, and of the lists of both labellers.

For these bytes, a program in the history of this file checked the READMEs: the form of
all templates, that the languages are translations of each other, that no template and
no query repeats another, and every figure. After a change, check that again.
"""


@pytest.mark.parametrize(("language", "other"), [["en", "ja"], ["ja", "en"]])
def test_the_survey_templates_are_those_of_their_readme(project, language, other):
    files = ("queries.json", "queries-extended.json", "labels-a.json", "labels-b.json")
    folder = project / "datasets"
    language_folder = folder / f"survey-templates-{language}"
    query_files = (files[:2], files[2:3], files[3:])
    assert (
        tuple(
            load_dataset(DatasetReference(language_folder, queries=names)).digest[:16]
            for names in query_files
        )
        == TEMPLATES[language]
    )
    assert {
        path.name for path in language_folder.iterdir() if len(path.stem) != 26
    } == {
        *files,
        "README.md",
        "LICENSE",
    }
    assert "CC BY 4.0" in (language_folder / "README.md").read_text(encoding="utf-8")
    across = load_dataset(
        DatasetReference(
            language_folder,
            queries=tuple(f"../survey-templates-{other}/{name}" for name in files[:2]),
        )
    )
    assert (
        across.document_count,
        len(across.queries),
        across.queries[0].fields["tags"],
    ) == (
        182,
        13 + 125,
        "article",
    )
    assert not any(across.data_quality.values())
