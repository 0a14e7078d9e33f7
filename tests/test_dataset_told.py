"""What is said of data that cannot be taken as they are: the row, and the remedy that helps."""

from pathlib import Path

import pytest

from harness.dataset import DatasetReference, converting, corpus, load, markdown_folder, reference_of
from harness.experiment.init import write_experiment
from harness.running.check import check
from retrievers.errors import InputError
from tests import labels_small


def folder(place: Path, asked: str = "query,doc\nleave,a\n") -> Path:
    place.mkdir()
    (place / "a.md").write_text("# Leave\n\n25 days a year")
    (place / "queries.csv").write_text(asked)
    return place


def told(reference: DatasetReference) -> str:
    with pytest.raises(InputError) as caught:
        load(reference)
    [problem] = caught.value.problems
    return str(problem)


def test_a_row_without_an_id_is_named_by_its_line(tmp_path):
    path = folder(tmp_path / "d", "query,doc\nleave,a\ntravel,b\n")
    assert "queries.csv:3: names document 'b', which does not exist" in told(reference_of(path))
    (path / "queries.csv").write_text("id,query,doc\nx,leave,a\ny,travel,b\n")
    assert "queries.csv:3: query 'y' names document 'b', which does not exist" in told(reference_of(path))


@pytest.mark.parametrize("first", ["how much leave do I have,a", "1,leave"])
def test_a_table_without_a_header_is_one_message_that_shows_its_first_row(tmp_path, first):
    path = folder(tmp_path / "d", f"{first}\n" + "and how much is left of it,a\n" * 3)
    said = told(reference_of(path))
    assert "the first row is no header: " in said
    assert "write one above it: query,document" in said


@pytest.mark.parametrize(
    ("name", "remedy"), [("questions.xlsx", "save each sheet as CSV"), ("queries.arrow", "write it as Parquet")]
)
def test_tables_in_forms_that_are_not_read_name_a_form_that_is(tmp_path, name, remedy):
    path = folder(tmp_path / "d")
    (path / "queries.csv").unlink()
    (path / name).write_bytes(b"PK")
    for given in (path, path / name):
        with pytest.raises(InputError, match=remedy):
            write_experiment(given)
        assert remedy in told(reference_of(given))


def test_a_table_alone_asks_for_its_documents(tmp_path):
    path = folder(tmp_path / "d") / "queries.csv"
    assert "is a table that names no documents" in told(reference_of(path))
    assert "--documents" in told(reference_of(path))


def test_the_extra_that_is_missing_is_named_where_nothing_can_be_read(tmp_path, monkeypatch):
    for room in (converting, corpus, markdown_folder):
        monkeypatch.setattr(room, "installed", lambda: False)
    path = folder(tmp_path / "d", "query\nleave\n")
    (path / "a.md").rename(path / "a.pdf")
    assert 'or the extra "documents"' in told(reference_of(path))


def test_power_counts_the_queries_that_are_judged(tmp_path):
    path = folder(tmp_path / "d", "id,query\n" + "".join(f"q{n},question {n}\n" for n in range(6)))
    labels_small.write(path / "judgments.jsonl", [labels_small.judgment(f"q{n}", "a", grade=1) for n in range(3)])
    assert check(path).capacity.units == 3
    (path / "judgments.jsonl").unlink()
    assert check(path).capacity.units == 6
