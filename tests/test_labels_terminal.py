"""Judging in a terminal: every answer on disk at once, undone by a correction, gone on with later."""

import pytest

from harness.dataset.judgments import read_judgments
from harness.labels.order import in_order
from harness.labels.terminal import Terminal, judge_in_terminal
from retrievers.errors import InputError
from tests.labels_small import judgment, pool, write


def session(made, path, keys, judge="ann"):
    shown, waiting = [], iter(keys)

    def read(prompt):
        try:
            return next(waiting)
        except StopIteration:
            raise EOFError from None

    return judge_in_terminal(made, path, judge, Terminal(shown.append, read)), shown


def test_a_pool_is_judged(tmp_path):
    made = pool(2, 2)
    found, shown = session(made, tmp_path / "j", ["0", "x", "1 clear enough", "n see title", "s", "p", "3", "2"])
    order = in_order(made)
    said = read_judgments([tmp_path / "j"])
    assert found == (5, 5)
    assert [one.grade for one in said] == [0, 1, None, 3, 2]
    assert [one.note for one in said] == ["", "clear enough", "see title", "", ""]
    assert [(one.query_id, one.document_id, one.round) for one in said] == [
        (one.shown(made)[0].query_id, one.shown(made)[1].id, one.round) for one in order
    ]
    assert any("question 1" in text for text in shown)
    assert made.policy in shown[0]


def test_an_answer_is_undone_by_a_correction(tmp_path):
    made = pool(2, 2)
    session(made, tmp_path / "j", ["0", "u", "3", "1"])
    assert [one.grade for one in read_judgments([tmp_path / "j"])] == [3, 1]
    assert len((tmp_path / "j").read_text(encoding="utf-8").splitlines()) == 3


def test_what_was_answered_is_not_asked_again(tmp_path):
    made = pool(2, 2)
    assert session(made, tmp_path / "j", ["0", "1", "q"])[0] == (2, 5)
    assert session(made, tmp_path / "j", ["2"] * 9)[0] == (5, 5)
    assert [one.grade for one in read_judgments([tmp_path / "j"])] == [0, 1, 2, 2, 2]
    assert session(made, tmp_path / "j", ["2"] * 9, judge="ben")[0] == (5, 5)


def test_an_undo_with_nothing_to_undo_asks_again(tmp_path):
    assert session(pool(1, 1), tmp_path / "j", ["u", "1", "2"])[0] == (2, 2)


def test_judgments_of_another_pool_are_refused(tmp_path):
    write(tmp_path / "j", [judgment()])
    with pytest.raises(InputError, match="holds judgments of pool p"):
        session(pool(), tmp_path / "j", ["1"])
