"""No struck word is in messages, help, docstrings, templates or pages."""

from tests import words


def test_no_struck_word_is_anywhere() -> None:
    assert [
        f"{occurrence.file}:{occurrence.line}: {occurrence.word}"
        for occurrence in words.struck()
    ] == []
