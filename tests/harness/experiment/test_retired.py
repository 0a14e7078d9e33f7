"""Each word of the table of what is retired is refused at its place, with what to use."""

import pytest

from harness.cli import main
from harness.retired import RETIRED, Retired

EXPERIMENT = """
name = "x"
dataset = "data"
primary = "RR"
measures = ["RR"]
"""
WORDS = '[[retrievers]]\nname = "words"\nkind = "bm25"\n'


def experiment_with(place: str, word: str) -> str:
    """An experiment that has the word where the table of what is retired places it."""
    table, _, key = place.partition(": ")
    entry = f'{key} = "{word}"' if key else f"{word} = 1"
    if not table:
        return f"{entry}\n{EXPERIMENT}{WORDS}"
    if table == "retrievers":
        return f'{EXPERIMENT}[[retrievers]]\nname = "it"\n{entry}\n'
    return f"{EXPERIMENT}[{table}]\n{entry}\n{WORDS}"


@pytest.mark.parametrize("row", RETIRED, ids=lambda row: f"{row.place} {row.word}")
def test_it_is_refused_with_what_to_use(row: Retired, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if row.place.startswith("harness"):
        words = [*row.place.split()[1:], row.word]
    else:
        (tmp_path / "e.toml").write_text(experiment_with(row.place, row.word))
        words = ["check", "e.toml"]
    with pytest.raises(SystemExit) as stopped:
        main(words)
    said = capsys.readouterr()
    assert stopped.value.code == 2
    assert said.out == ""
    assert f"{row.word!r} is retired ({row.instead})" in said.err
