"""Mistakes of a new user, each told in one plain sentence."""

from pathlib import Path

import pytest

from tests.support import small
from tests.support.small import Call

MISTAKES = [
    ("run data", "harness init data writes one"),
    ("run smal.toml", "smal.toml: cannot be read: No such file or directory (did you"),
    ("init small.tml", "small.tml: no such file (did you mean 'small.toml'?)"),
    ("init data --columns label=fil", "no row has a column 'fil'"),
    ("check https://example.org/data", "download it and give its path"),
    ("init small.toml", "is an experiment, no data set (harness check small.toml)"),
    ("run small.toml --fast", "No such option: --fast (see harness run --help)"),
    ("check data --pages", "there is no PDF in data"),
    ("check data --where action=click", "no row has a column 'action'"),
    ("init data --where click", "'click' has no value"),
]


EXPERIMENT_MISTAKES = [
    ('primary = "RR"', 'primry = "RR"', "primry: unknown key 'primry' (did you mean"),
    (
        'of = ["bm25", "f"]',
        'of = ["bm25", { encoder = { kind = "hashing" }, variants = { a = {} } }]',
        "of[1].variants: makes further retrievers",
    ),
]


@pytest.fixture
def folder(in_tmp, tmp_path):
    small.experiment(tmp_path, retrievers=small.BM25)
    (tmp_path / "data" / "queries.json").unlink()
    (tmp_path / "data" / "queries.csv").write_text("query,gold_id\nwhat,boat\n")
    return tmp_path


@pytest.mark.parametrize(("words", "sentence"), MISTAKES)
def test_a_mistake_is_one_sentence(words, sentence, folder, call: Call):
    assert sentence in call(*words.split(), code=2).err


def test_labels_that_name_nothing_are_shown_with_what_ids_look_like(folder, call: Call):
    (folder / "data" / "queries.csv").write_text("query,gold_id\na,x8\nb,x9\n")
    message = call("check", "data", code=2).err
    assert '\'gold_id\' names no document: "x8", "x9"; ids look like' in message


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_saved_run_of_other_queries_is_known_before_the_run(
    folder, call: Call, command
):
    (folder / "data" / "queries.csv").write_text("query,gold_id\na,boat\nb,fish\n")
    (folder / "r.trec").write_text("x9 Q0 boat 1 1 t\n")
    path = small.experiment(
        folder, retrievers='[[retrievers]]\nname = "r"\nkind = "run"\npath = "r.trec"\n'
    )
    message = call(command, path, code=2).err
    assert "answers none of the queries, but such as 'x9'" in message


def test_one_misspelt_measure_is_one_problem(folder, call: Call):
    path = folder / "small.toml"
    path.write_text(
        f'name = "small"\ndataset = "data"\nprimary = "NGCD@3"\n{small.BM25}'
    )
    assert "problems" not in call("check", path, code=2).err


@pytest.mark.parametrize(("right", "wrong", "sentence"), EXPERIMENT_MISTAKES)
def test_a_mistake_in_an_experiment_is_one_sentence(
    right, wrong, sentence, folder, call: Call
):
    path = folder / "small.toml"
    fusion = '[[retrievers]]\nname = "g"\nkind = "fusion"\nof = ["bm25", "f"]\n'
    tables = f'name = "small"\ndataset = "data"\nprimary = "RR"\n{small.BM25}{fusion}'
    assert right in tables
    path.write_text(tables.replace(right, wrong))
    assert sentence in call("check", path, code=2).err


def test_labels_that_are_all_blank_are_named(folder, call: Call):
    (folder / "data" / "queries.csv").write_text("query,gold_id\na,\nb,\n")
    message = call("check", "data", code=2).err
    assert "'gold_id' is empty in every row" in message


def test_a_first_row_that_is_no_header_is_told(folder, call: Call):
    (folder / "data" / "queries.csv").write_text("what swims,boat\nwheels,car\n")
    assert "(--no-header)" in call("check", "data", code=2).err


@pytest.fixture
def workbook(folder):
    """A workbook with a sheet of queries, and one of notes."""
    book = pytest.importorskip("openpyxl").Workbook()
    book.active.title = "Golden"
    for row in (("query", "gold_id"), ("what swims", "fish"), ("wheels", "car")):
        book.active.append(row)
    book.create_sheet("Notes").append(("to do",))
    book.save("rated.xlsx")
    return "rated.xlsx"


def test_a_sheet_goes_with_a_folder_of_documents(workbook, call: Call):
    Path("data/queries.csv").unlink()
    out = call("init", f"{workbook}#Golden", "--documents", "data").out
    assert "2 labelled queries" in out


def test_a_workbook_without_a_sheet_of_queries_is_told_how_to_name_one(
    workbook, call: Call
):
    message = call("init", workbook, "--documents", "data", code=2).err
    assert "rated.xlsx: holds 'Golden', 'Notes'" in message
    assert "(--queries Golden)" in message
    Path("data/queries.csv").unlink()
    out = call("init", workbook, "--documents", "data", "--queries", "Golden").out
    assert "2 labelled queries" in out


def test_a_results_folder_is_not_run_but_shown(folder, call: Call):
    # given a results folder
    (folder / "r").mkdir()
    (folder / "r" / "qrels.trec").touch()
    (folder / "r" / "manifest.json").touch()
    # when it is run
    message = call("run", "r", code=2).err
    # then the command that shows it is named, and none that refuses it
    assert "harness report r shows what it says" in message
    assert "harness init" not in message


def test_the_question_for_labels_ends_with_the_command(folder, call: Call):
    # given a column that names documents, and has no name of labels
    table = "query,source,answer\nwhat swims,fish,One.\nwheels,car,Two.\n"
    (folder / "data" / "queries.csv").write_text(table)
    # when
    message = call("init", "data", "--queries", "queries.csv", code=2).err
    # then
    assert message.rstrip().endswith("(--columns label_document=source))")
    assert len(message.split()) < 48
