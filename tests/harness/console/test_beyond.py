"""Numbers, names and nesting beyond all measure: one message, exit code 2, and no traceback."""

import pytest

from tests.support import small

BM25 = '[[retrievers]]\nname = "a"\nkind = "bm25"\n'
HASHING = '[[retrievers]]\nname = "a"\nencoder = {{ kind = "hashing" {} }}\n{}\n'
OPENAI = (
    '[[retrievers]]\nname = "a"\n'
    'encoder = {{ kind = "openai", model = "m", base_url = "http://127.0.0.1:9", {} }}\n'
)  # fmt: skip
FUSION = f"""{BM25}
[[retrievers]]
name = "b"
encoder = {{ kind = "hashing" }}
[[retrievers]]
name = "c"
kind = "fusion"
"""


def refused(capsys, *words) -> str:
    message = small.told(capsys, *words, code=2)
    assert len(message) < 1000
    return message


@pytest.mark.parametrize(
    ("retrievers", "more"),
    [
        (OPENAI.format("timeout = inf"), ""),
        (OPENAI.format("patience = nan"), ""),
        (OPENAI.format("dimensions = 2147483648"), ""),
        (OPENAI.format("dimensions = 100000"), ""),
        (HASHING.format(", dimensions = 2147483648", ""), ""),
        (HASHING.format(", dimensions = 100000", ""), ""),
        (HASHING.format("", 'store = { location = "edge", m = 99999999999999999999 }'), ""),
        (HASHING.format("", "chunk = { size = 99999999999999999999 }"), ""),
        (FUSION + 'of = ["a", "b"]\nconstant = inf\n', ""),
        (BM25, f"seed = {'9' * 5000}"),
        (BM25, "seed = 99999999999999999999"),
        (BM25, "x = " + "[" * 3000 + "]" * 3000),
        (BM25, "x = " + "{a=" * 3000 + "1" + "}" * 3000),
        (BM25, "[latency]\nsample = 99999999999999999999"),
        (BM25, "[relevance]\ngrades = [[1, 99999999999999999999]]"),
    ],
)
def test_an_experiment_beyond_measure_is_refused(tmp_path, capsys, monkeypatch, retrievers, more):
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    path = small.experiment(tmp_path, retrievers=retrievers, more=more)
    refused(capsys, "run", path, "--results", tmp_path / "out")


@pytest.mark.parametrize(
    "name",
    [
        f"nDCG@{'9' * 4300}",
        f"nDCG@{'9' * 5000}",
        "nDCG@9999999999",
        f"P(rel={'9' * 5000})@3",
        "RBP(p=1e999)",
        "x" * 9999,
    ],
)
def test_a_measure_beyond_measure_is_refused(tmp_path, capsys, name):
    qrels, run = tmp_path / "qrels", tmp_path / "run"
    qrels.write_text("q 0 d 1\n")
    run.write_text("q Q0 d 1 1.0 t\n")
    refused(capsys, "score", qrels, run, "-m", name)
    path = small.experiment(tmp_path, retrievers=BM25)
    path.write_text(path.read_text().replace('"DCG@3"]', f'"{name}"]'))
    refused(capsys, "check", path)


def test_a_path_too_long_for_any_file_is_refused(capsys):
    assert "too long" in refused(capsys, "check", "x" * 5000)


def test_the_manifests_own_word_is_no_name_of_a_retriever(tmp_path, capsys):
    path = small.experiment(tmp_path, retrievers='[[retrievers]]\nname = "dataset"\nkind = "bm25"\n')
    assert "is used for the data set" in refused(capsys, "check", path)
