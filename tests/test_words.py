"""No struck word is in messages, help, docstrings, templates or pages."""

from tests import words


def test_no_struck_word_is_anywhere() -> None:
    assert [f"{one.file}:{one.line}: {one.word}" for one in words.struck()] == []
