"""Each word of the table of what is retired is refused at its place, with what to use."""

import pytest

from harness.retired import RETIRED, Retired
from tests.support.small import BM25, Call

HEAD = 'name = "x"\ndataset = "data"\nprimary = "RR"\nmeasures = ["RR"]\n'


def experiment_with(place: str, word: str) -> str:
    """An experiment that has the word where the table of what is retired places it."""
    table, _, key = place.partition(": ")
    entry = f'{key} = "{word}"' if key else f"{word} = 1"
    if table == "retrievers":
        return f'{HEAD}[[retrievers]]\nname = "it"\n{entry}\n'
    return f"{HEAD}[{table}]\n{entry}\n{BM25}" if table else f"{entry}\n{HEAD}{BM25}"


@pytest.mark.parametrize("row", RETIRED, ids=lambda row: f"{row.place} {row.word}")
def test_it_is_refused_with_what_to_use(row: Retired, call: Call, tmp_path, in_tmp):
    (tmp_path / "e.toml").write_text(experiment_with(row.place, row.word))
    command = [*row.place.split()[1:], row.word] if row.place.startswith("harness") else ["check", "e.toml"]
    said = call(*command, code=2)
    assert said.out == "" and f"{row.word!r} is retired ({row.instead})" in said.err
