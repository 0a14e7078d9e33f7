"""A place of vectors that is mistyped, empty or blank: one message, and nothing is embedded in its stead."""

import pytest

from tests.small import Call, experiment

pytestmark = pytest.mark.usefixtures("own_cache", "in_tmp")

HASHING = '[[retrievers]]\nname = "hashing"\nencoder = { kind = "hashing", dimensions = 64 }\n'
BLANK = "is blank"
EMPTY = "holds no vectors"


@pytest.mark.parametrize(("place", "told"), [("typo", EMPTY), ("file:///no/such/place", EMPTY), ("", BLANK)])
@pytest.mark.parametrize("command", [["run"], ["check"]])
def test_an_experiment_that_reads_from_where_nothing_lies_is_refused(tmp_path, call: Call, command, place, told):
    path = experiment(tmp_path, retrievers=HASHING, more=f'[vectors]\nfrom = "{place}"\n')
    answer = call(*command, path)
    assert (answer.code, told in answer.err) == (2, True)
    assert not (tmp_path / "results" / "small").exists()


@pytest.mark.parametrize(("place", "told"), [("typo", EMPTY), ("", BLANK)])
def test_nothing_to_import_is_no_success(call: Call, place, told):
    answer = call("cache", "import", place)
    assert (answer.code, told in answer.err) == (2, True)


def test_the_vectors_of_another_encoder_are_no_mistyped_place(tmp_path, call: Call):
    """The experiment may have encoders whose vectors lie nowhere yet."""
    other = experiment(tmp_path, retrievers=HASHING.replace("64", "32"))
    assert call("embed", other, "--to", "parts").code == 0
    path = experiment(tmp_path, retrievers=HASHING, more='[vectors]\nfrom = "parts"\n')
    assert call("check", path).code == 0


def test_an_unset_variable_is_neither_the_whole_nor_the_working_directory(tmp_path, call: Call):
    path = experiment(tmp_path, retrievers=HASHING)
    for words, told in ((["--shard", "", "--to", "parts"], "'' is not a share"), (["--to", ""], BLANK)):
        answer = call("embed", path, *words)
        assert (answer.code, told in answer.err) == (2, True)
    assert not (tmp_path / "parts").exists()
    assert not (tmp_path / "vectors").exists()
