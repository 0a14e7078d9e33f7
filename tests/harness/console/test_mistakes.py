"""Mistakes of a new user, each told in one plain sentence."""

import pytest

from tests.support import small
from tests.support.small import Call

MISTAKES = [
    ("run data", "harness init data writes one"),
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
