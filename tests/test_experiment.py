from pathlib import Path

import pytest

from harness.experiment import expanded, load
from harness.stats.settings import Statistics
from retrievers.errors import InputError

HEAD = """
name = "x"
dataset = "data"
primary = "nDCG@10"
measures = ["nDCG@10", "P@5"]
"""
BM25 = """
[[retrievers]]
name = "bm25"
kind = "bm25"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(folder: Path, text: str) -> str:
    path = folder / "e.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load(path)
    return str(caught.value)


def test_defaults_are_filled_in(folder: Path) -> None:
    (folder / "e.toml").write_text(HEAD + BM25 + '[[retrievers]]\nname = "h"\nencoder = {kind = "hashing"}\n')
    loaded = load(folder / "e.toml")
    resolved = loaded.experiment.resolved()
    assert resolved["depth"] == 100
    assert resolved["statistics"] | {"test": "wilcoxon", "correction": "holm"} == resolved["statistics"]
    assert resolved["retrievers"][0] == {
        "name": "bm25", "kind": "bm25", "k1": 0.9, "b": 0.4, "stemming": None, "rerank": None, "color": "",
        "filter": {}, "chunk": None,
    }  # fmt: skip
    assert resolved["retrievers"][1]["encoder"]["kind"] == "hashing"
    assert "dimensions" in resolved["retrievers"][1]["encoder"]
    assert [str(measure) for measure in loaded.question.measures] == ["nDCG@10", "P@5"]


def test_relevance_fills_in_what_a_measure_leaves_open(folder: Path) -> None:
    head = HEAD.replace('"P@5"', '"nDCG(dcg=\'log2\')@5", "P@5"')
    (folder / "e.toml").write_text(head + '[relevance]\ngain = "exponential"\nideal = "retrieved"\n' + BM25)
    loaded = load(folder / "e.toml")
    assert str(loaded.question.primary) == "nDCG(dcg='exp-log2', ideal='retrieved')@10"
    assert str(loaded.question.measures[1]) == "nDCG(ideal='retrieved')@5"


def test_the_data_set_is_found_from_a_parent_of_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = folder / "experiments" / "deep"
    deep.mkdir(parents=True)
    (deep / "e.toml").write_text(HEAD + BM25)
    monkeypatch.chdir(deep)
    assert load("e.toml").dataset.path == folder / "data"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "is not TOML"),
        (HEAD, "retrievers: needs at least 1"),
        (HEAD + BM25 + BM25, "retriever names: 'bm25' stands twice"),
        (HEAD + BM25 + BM25.replace("bm25", "BM25", 1), "names must differ by more than case"),
        (HEAD + BM25.replace('name = "bm25"', 'name = "a b"'), "retrievers[0].name: 'a b'"),
        (HEAD + 'basline = "x"\n' + BM25, "unknown key 'basline' (did you mean 'baseline'?)"),
        (HEAD + 'baseline = "bm52"\n' + BM25, "baseline 'bm52' is no retriever; did you mean 'bm25'?"),
        (HEAD + "depth = 5\n" + BM25, "nDCG@10 looks below depth 5"),
        (HEAD + 'depth = "5"\n' + BM25, "depth: '5': should be a valid integer"),
        (HEAD.replace('"P@5"', '"ndgc@5"') + BM25, "there is no measure 'ndgc' (did you mean 'nDCG'?)"),
        (HEAD.replace('primary = "nDCG@10"', 'primary = "AP"') + BM25, "primary: AP is not among the measures"),
        (HEAD + BM25 + "k2 = 1\n", "retrievers[0].k2: unknown key 'k2'"),
        (HEAD + BM25.replace('"bm25"\n', '"bm26"\n').replace('name = "bm26"', 'name = "b"'), "unknown kind 'bm26'"),
        (HEAD + '[[retrievers]]\nname = "b"\nkind = ["bm25"]\n', "unknown kind ['bm25']"),
        (HEAD + '[[retrievers]]\nname = "b"\nkind = { a = 1 }\n', "unknown kind {'a': 1}"),
        (HEAD + '[[retrievers]]\nname = "x"\n', "has neither an encoder nor a kind"),
        (HEAD + '[[retrievers]]\nname = "x"\nencoder = {kind = "hashng"}\n', "did you mean 'hashing'?"),
        (
            HEAD + '[[retrievers]]\nname = "x"\nencoder = {kind = "hashing", dim = 3}\n',
            "encoder.dim: unknown key 'dim'",
        ),
        (HEAD + '[[retrievers]]\nname = "x"\nencoder = "hashing"\n', "encoder: is no table with a kind"),
        (
            HEAD + BM25 + '[[retrievers]]\nname = "f"\nkind = "fusion"\nof = ["bm25", "bm26"]\n',
            "made of unknown 'bm26'",
        ),
        (HEAD + '[[retrievers]]\nname = "f"\nkind = "fusion"\nof = ["f", "bm25"]\n' + BM25, "in a circle: f"),
        (HEAD + BM25.replace("bm25", "BM25", 1) + BM25, "'BM25' and 'bm25' differ by case only"),
        (HEAD.replace('"P@5"', '"P@5", "p@5"') + BM25, "p@5 stands twice"),
        (HEAD.replace('"P@5"', '"P@0"') + BM25, "measures: 'P@0'"),
        (
            HEAD + BM25 + '[[retrievers]]\nname = "f"\nkind = "fusion"\nof = ["bm25", "bm25"]\n',
            "name each retriever once",
        ),
        (HEAD + BM25 + "[statistics]\nalpha = 1.5\n", "statistics.alpha: 1.5"),
        (HEAD + BM25 + '[relevance]\ngrades = "steep"\n', "relevance.grades"),
        (HEAD.replace('"data"', '"dta"') + BM25, "'dta' does not exist"),
        (
            HEAD + BM25 + '[[retrievers]]\nname="o"\nencoder={kind="hashing"}\nstore={location="http://u:p@h"}',
            "a secret",
        ),
        (HEAD + 'api_key = "sk-1"\n' + BM25, "api_key: a secret does not belong in a file"),
        (HEAD.replace('"data"', '"${NOT_SET_AT_ALL}"') + BM25, "${NOT_SET_AT_ALL} is not set"),
    ],
)
def test_each_fault_is_one_message_with_its_place(folder: Path, text: str, message: str) -> None:
    said = told(folder, text)
    assert message in said
    assert "e.toml" in said
    assert ("needs at least 1" in said) == (text == HEAD)


def test_all_faults_are_told_at_once(folder: Path) -> None:
    said = told(folder, HEAD + "dept = 1\n" + BM25 + "k2 = 1\n" + '[[retrievers]]\nname = "y"\nkind = "bm52"\n')
    assert len(said.splitlines()) == 3


def test_a_missing_file_and_a_wrong_encoding(folder: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load(folder / "none.toml")
    (folder / "l.toml").write_bytes(b'name = "caf\xe9"')
    with pytest.raises(InputError, match="is not UTF-8"):
        load(folder / "l.toml")


def test_references_are_expanded_only_on_use(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "s3cret")
    (folder / "e.toml").write_text(
        HEAD.replace('"x"', '"x"\nbaseline = "bm25"') + BM25.replace("kind", 'stemming = "${A_KEY}"\nkind')
    )
    loaded = load(folder / "e.toml")
    assert "s3cret" not in str(loaded)
    assert expanded(loaded.experiment.resolved()["retrievers"][0])["stemming"] == "s3cret"


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ('zeros = "pratt"', "statistics.zeros"),
        ('correction = "hommel"', "statistics.correction"),
        ('correction = "tukey"', "statistics.correction"),
        ('interval = "bca"', "statistics.interval"),
    ],
)
def test_what_is_retired_is_refused_with_what_to_use(folder, table, place):
    error = told(folder, f"{HEAD}[statistics]\n{table}\n{BM25}")
    assert f"{place}: " in error and " is retired (" in error and error.count("\n") == 0


def test_what_was_said_before_and_means_what_is_done_today_is_read(folder: Path) -> None:
    (folder / "e.toml").write_text(f'{HEAD}[statistics]\nzeros = "wilcox"\ninterval = "t"\n{BM25}')
    assert load(folder / "e.toml").experiment.statistics == Statistics()
