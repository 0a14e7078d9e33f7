"""Search logs and tables as spreadsheets write them: read as they come, and a fault of the header told once."""

import json
from pathlib import Path

import pytest

from harness.cli import main
from harness.console.shared_options import columns_of
from harness.dataset import DatasetReference, load, reference_of
from harness.experiment import init
from harness.experiment import load as load_experiment
from harness.experiment.init import write_experiment
from harness.running.check import check
from retrievers.errors import InputError


@pytest.fixture(autouse=True)
def without_the_model(monkeypatch, tmp_path):
    monkeypatch.setattr(init.importlib.util, "find_spec", lambda name: None)
    monkeypatch.chdir(tmp_path)


def folder(path: Path, log: str, name: str = "queries.csv") -> Path:
    path.mkdir()
    (path / "a.md").write_text("# Leave\n\n25 days a year")
    (path / name).write_text(log, encoding="utf-8")
    return path


def asked(path: Path, **columns: str) -> list[str]:
    return [query.text for query in load(DatasetReference(path, columns=columns)).queries]


@pytest.mark.parametrize("name", ["search_term", "Search Term", "Query", "QUESTION", "keyword", "Keywords", "q"])
def test_the_column_of_queries_is_known_by_its_usual_names(tmp_path, name):
    path = folder(tmp_path / "d", f"timestamp,user_id,{name}\n2026-09-01,u1,how much leave\n")
    assert asked(path) == ["how much leave"]


def test_the_names_of_other_columns_count_in_any_case_too(tmp_path):
    path = folder(tmp_path / "d", "ID,Query,Relevant\nx,how much leave,a\n")
    assert [query.id for query in load(reference_of(path)).queries] == ["x"]


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("Nr;query;Anzahl", "1;zwei, drei;4"),
        ("n\tquery", "1\tzwei, drei"),
        ('"a;b;c",query', '1,"zwei, drei"'),
        ("query", '"zwei, drei"'),
        ("\ufeff;query", ";zwei, drei"),
    ],
)
def test_what_stands_between_the_cells_is_seen_from_the_header(tmp_path, header, row):
    assert asked(folder(tmp_path / "d", f"\n{header}\n{row}\n")) == ["zwei, drei"]


def test_a_column_that_is_missing_is_told_once_a_file(tmp_path):
    path = folder(tmp_path / "d", "when,suchbegriff\n" + "2026,urlaub\n" * 30)
    with pytest.raises(InputError) as told:
        load(reference_of(path))
    [problem] = told.value.problems
    assert "queries.csv:2: 'text' is missing, as at 29 more places (there are: when, suchbegriff; say which: " in str(
        problem
    )
    assert str(problem).endswith("""columns = { query = "…" } (--columns 'query=…'))""")
    assert problem.stands_for == 30


def test_problems_that_differ_are_told_apart(tmp_path):
    path = folder(tmp_path / "d", "", "queries.jsonl")
    rows = [{"query": 1}, {"query": 2}, {"query": 1}, {"other": "x"}]
    (path / "queries.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(InputError) as told:
        load(reference_of(path))
    assert [one.where.rpartition(":")[2] for one in told.value.problems] == ["1", "2", "4"]


def test_init_is_told_what_a_column_is_called(tmp_path, capsys):
    folder(tmp_path / "d", "when,suchbegriff\n2026,urlaub\n")
    with pytest.raises(SystemExit) as ended:
        main(["init", "d", "--columns", "query=suchbegriff"])
    assert ended.value.code == 0, capsys.readouterr().err
    assert load_experiment("d.toml").experiment.dataset.columns == {"query": "suchbegriff"}
    assert asked(tmp_path / "d", query="suchbegriff") == ["urlaub"]


@pytest.mark.parametrize("written", [["query"], ["query="], ["query=a", "query=b"]])
def test_columns_that_name_nothing_are_refused(written):
    with pytest.raises(InputError, match=r"--columns: .*KIND=NAME, such as query=search_term"):
        columns_of(written)


def test_the_file_of_questions_is_not_among_the_unread(tmp_path):
    path = folder(tmp_path / "d", "query\nhow much leave\n")
    (path / "logo.png").write_text("")
    assert load(reference_of(path)).ledger["unread-file"] == ("logo.png",)


def test_without_questions_the_files_that_are_not_read_are_told_with_a_command_that_can_be_copied(tmp_path):
    path = folder(tmp_path / "Hilfe Artikel", "when,query\n", "search-log.csv")
    with pytest.raises(InputError) as told:
        write_experiment(path)
    said = str(told.value)
    assert "1 of 2 files are read; 1 is not (.csv 1)" in said
    assert "a search log or another table of them is named queries.csv" in said
    assert said.endswith(f"then: harness init '{path}'")


def test_what_to_do_next_can_be_copied(tmp_path):
    folder(tmp_path / "d", "query\nhow much leave\n")
    lines = list(write_experiment(Path("d"), Path("my docs.toml")).lines())
    assert "  harness run 'my docs.toml'" in lines
    assert any(line.startswith("  harness pool 'results/my docs' ") for line in lines)


def test_repeated_and_blank_rows_are_counted_and_the_same_questions_asked(tmp_path):
    path = folder(tmp_path / "d", "user,query\n1,leave\n2,leave\n3,\n4,  \n5,\n6,Leave\n7,leave\n")
    found = load(reference_of(path))
    assert [query.text for query in found.queries] == ["leave", "Leave"]
    assert found.ledger["repeated-row"] == ("q0", "q0")
    assert len(found.ledger["blank-query"]) == 3
    lines = list(check(path).lines())
    assert "rows that repeat the question of an earlier one: asked once (2): q0, q0" in lines
    assert any(line.startswith("queries without text: not asked (3): q1, ") for line in lines)
    said = list(write_experiment(path).lines())
    assert "rows of questions that are not asked: 2 that repeat an earlier one, 3 blank" in said
