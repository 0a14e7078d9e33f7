"""`init` and `check` say what every column of a table was taken for; options say otherwise, as the file's keys do."""

import json
from pathlib import Path

import pytest

from harness.dataset import load as load_dataset
from harness.experiment import init, load
from tests.support.small import told

CSV = "question,doc,rating,asked_on\nhow much leave,a,2,2026-01-02\nhow much leave,b,0,\nby train,b.md,1,\n"
MAPPING = """\
  question -> the query's text
  doc      -> the relevant document (matched 3 of 3, 1 by file name)
  rating   -> its grade (0: 1, 1: 1, 2: 1)
  asked_on -> kept as a field of the query"""


@pytest.fixture(autouse=True)
def a_handbook(monkeypatch, tmp_path):
    monkeypatch.setattr(init.importlib.util, "find_spec", lambda name: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "handbook").mkdir()
    for name in ("a", "b"):
        (tmp_path / "handbook" / f"{name}.md").write_text(f"# {name}\n\nthe text of {name}")
    (tmp_path / "asked").mkdir()
    (tmp_path / "asked" / "questions.csv").write_text(CSV)


def test_a_table_and_a_folder_of_documents_are_one_command(capsys):
    said = told(capsys, "init", "asked/questions.csv", "--documents", "handbook")
    assert f"asked/questions.csv: 3 rows\n{MAPPING}\n" in said
    mapping = "# asked/questions.csv: question -> query, doc -> label_document, rating -> grade, asked_on -> fields\n"
    assert mapping in Path("questions.toml").read_text()
    found = load("questions.toml").dataset
    assert (found.documents, found.path.as_posix()) == ("../handbook", "asked/questions.csv")
    assert load_dataset(found).labels["q0"].grades == {"a": 2, "b": 0}
    assert MAPPING in told(capsys, "check", "questions.toml")


def test_check_takes_the_same_options_and_prints_the_same_mapping(capsys):
    words = ["check", "asked/questions.csv", "--documents", "handbook"]
    assert f"asked/questions.csv: 3 rows\n{MAPPING}\n" in told(capsys, *words)
    columns = json.loads(told(capsys, *words, "--columns", "fields=rating", "--json"))["columns"]
    assert columns["asked/questions.csv"]["rating"] == "fields"
    assert "unknown format 'tabels'" in told(capsys, *words, "--format", "tabels", code=2)


def test_every_part_is_named_by_its_option(capsys, tmp_path):
    (tmp_path / "texts.csv").write_text("id,text,pages\na,text a,3\nb,text b,4\n")
    (tmp_path / "who.csv").write_text("query_id,query\nx,how much leave\ny,by train\n")
    (tmp_path / "gold.csv").write_text("query_id,doc_id,grade\nx,a,2\nx,b,0\ny,b,1\n")
    parts = ["--documents", "texts.csv", "--queries", "who.csv", "--labels", "gold.csv", "--format", "tables"]
    said = told(capsys, "init", ".", *parts, "--output", "e.toml", "--columns", "grade=grade")
    assert "  pages -> kept as a field of the document\n" in said
    assert "  grade    -> its grade (0: 1, 1: 1, 2: 1)\n" in said
    assert load_dataset(load("e.toml").dataset).labels["x"].grades == {"a": 2, "b": 0}


def test_what_lies_in_a_folder_is_counted_by_kind(capsys, tmp_path):
    (tmp_path / "handbook" / "c.txt").write_text("the text of c")
    (tmp_path / "handbook" / "logo.png").write_text("")
    for command in ("init", "check"):
        said = told(capsys, command, "asked/questions.csv", "--documents", "handbook")
        assert "3 of 4 files are read; 1 is not (.png 1)\n" in said
        assert "\nhandbook: 2 Markdown files, 1 text -> 3 documents\n" in said


@pytest.mark.parametrize(
    ("labels", "way"),
    [(["a", "b"], ""), (["a.pdf", "b.MD"], "file name"), (["A page", "b  PAGE"], "title"),
     (["the text of A", "# b page\n\nthe text of b"], "text")],
)  # fmt: skip
def test_labels_name_documents_by_what_people_write_and_it_is_said_by_what(capsys, tmp_path, labels, way):
    for name in ("a", "b"):
        (tmp_path / "handbook" / f"{name}.md").write_text(f"# {name} page\n\nthe text of {name}")
    for name, title in (("c", "same"), ("d", "same")):
        (tmp_path / "handbook" / f"{name}.md").write_text(f"# {title}\n\nmore")
    rows = [{"query": "leave", "doc": labels[:1], "rating": 2}, {"query": "trains", "doc": labels[1:], "rating": 0}]
    (tmp_path / "asked.json").write_text(json.dumps([*rows, {"query": "trains", "doc": ["a"], "rating": 1}]))
    words = ["check", "asked.json", "--documents", "handbook"]
    said = told(capsys, *words, "--columns", "contexts=doc") if way == "text" else told(capsys, *words)
    assert f"(matched 3 of 3{f', 2 by {way}' if way else ''})\n" in said
    assert "  rating -> its grade (0: 1, 1: 1, 2: 1)\n" in said
    (tmp_path / "asked.json").write_text(json.dumps([{"query": "leave", "doc": ["same"]}]))
    assert "names document 'same', which does not exist" in told(capsys, *words, code=2)  # two have this title


def test_passages_that_nothing_holds_are_counted(capsys, tmp_path):
    rows = [
        {"query": "leave", "reference_contexts": ["text of a", "nowhere"]},
        {"query": "b", "reference_contexts": []},
        *({"query": f"b {n}", "reference_contexts": ["text of a"]} for n in range(8)),
    ]
    (tmp_path / "asked.json").write_text(json.dumps(rows))
    said = told(capsys, "check", "asked.json", "--documents", "handbook")
    assert "  reference_contexts -> passages of the relevant documents (matched 9 of 10, 9 by text)\n" in said
    assert "reference contexts that match no document (1): q0: nowhere\n" in said


def test_few_labels_of_what_is_not_there_are_left_out_and_named(capsys, tmp_path):
    rows = [f"question {n},{'ab'[n % 2]},1\n" for n in range(20)]
    (tmp_path / "log.csv").write_text("question,doc,rating\nto the moon,c,1\n" + "".join(rows))
    said = told(capsys, "init", "log.csv", "--documents", "handbook")
    assert "  doc      -> the relevant document (matched 20 of 21; not found: 'c')\n" in said
    assert '1 label of what is not there: left out by dangling = "drop"' in said
    said = told(capsys, "check", "log.toml")
    assert "(matched 20 of 21; not found: 'c')" in said
    assert "labels of documents that do not exist: dropped (1): log.csv:2 c\n" in said  # its query has no id
    assert "names document 'c', which does not exist" in told(
        capsys, "check", "log.csv", "--documents", "handbook", code=2
    )
    (tmp_path / "few.csv").write_text("question,doc,rating\nto the moon,c,1\n" + "".join(rows[:5]))
    assert "names document 'c', which does not exist" in told(
        capsys, "init", "few.csv", "--documents", "handbook", code=2
    )


@pytest.mark.parametrize("said", ["grade=stars", "stars=grade"])
def test_a_column_and_its_kind_are_named_in_either_order(capsys, tmp_path, said):
    (tmp_path / "log.csv").write_text("question,doc,stars\nleave,a,2\nleave,b,0\n")
    assert "stars    -> its grade" in told(capsys, "init", "log.csv", "--documents", "handbook", "--columns", said)


def test_no_name_of_a_column_leads_out_of_the_comment_that_names_it(capsys, tmp_path):
    (tmp_path / "log.csv").write_text('question,doc,"a\nname = ""x"""\nleave,a,5\n')
    told(capsys, "init", "log.csv", "--documents", "handbook")
    assert (
        '# log.csv: question -> query, doc -> label_document, a name = "x" -> fields\n' in Path("log.toml").read_text()
    )
    assert load("log.toml").experiment.name == "log"


def test_what_is_not_used_is_said(capsys, tmp_path):
    row = {"query": "how much leave", "doc": ["a"], "tags": ["x"]}
    (tmp_path / "handbook" / "queries.jsonl").write_text(json.dumps(row))
    assert "  tags  -> not used\n" in told(capsys, "init", "handbook")
