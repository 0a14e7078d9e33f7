"""`init` and `check` say what every column of a table was taken for; options say otherwise, as the file's keys do."""

import json

import pytest

from harness.cli import main
from harness.dataset import load as load_dataset
from harness.experiment import init, load

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


def told(capsys, *words: str, code: int = 0) -> str:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    said = capsys.readouterr()
    assert ended.value.code == code, said.err
    return said.out + said.err


def test_a_table_and_a_folder_of_documents_are_one_command(capsys):
    said = told(capsys, "init", "asked/questions.csv", "--documents", "handbook")
    assert f"asked/questions.csv: 3 rows\n{MAPPING}\n" in said
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


def test_what_is_not_used_is_said(capsys, tmp_path):
    row = {"query": "how much leave", "doc": ["a"], "tags": ["x"]}
    (tmp_path / "handbook" / "queries.jsonl").write_text(json.dumps(row))
    assert "  tags  -> not used\n" in told(capsys, "init", "handbook")


def test_the_options_stand_in_an_experiment_file_already(capsys):
    told(capsys, "init", "asked/questions.csv", "--documents", "handbook")
    assert "stands in the experiment file" in told(capsys, "check", "questions.toml", "--labels", "x.csv", code=2)
