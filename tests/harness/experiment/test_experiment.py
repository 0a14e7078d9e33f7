"""An experiment file: defaults, refused keys, the schema for editors."""

import json
import runpy
import tomllib
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from harness.experiment import load, load_sets, parse_experiment
from retrievers.errors import InputError
from tests.support import small
from tests.support.small import BM25, Call, refusal

HEAD = """
name = "x"
dataset = "data"
primary = "nDCG@10"
measures = ["nDCG@10", "P@5"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(text: str) -> str:
    Path("e.toml").write_text(text, encoding="utf-8")
    return "e.toml"


def test_what_is_left_open_is_filled_in(
    folder: Path,
) -> None:
    loaded = load(
        written(
            HEAD + BM25 + '[[retrievers]]\nname = "h"\nencoder = {kind = "hashing"}\n'
        )
    )
    resolved = loaded.experiment.resolved()
    assert resolved["depth"] == 100
    assert (
        resolved["statistics"] | {"test": "randomization", "correction": "holm"}
        == resolved["statistics"]
    )
    assert resolved["retrievers"][0] == {
        "name": "bm25",
        "kind": "bm25",
        "k1": 0.9,
        "b": 0.4,
        "stemming": None,
        "rerank": None,
        "filter": {},
        "chunk": None,
    }
    assert resolved["retrievers"][1]["encoder"].keys() >= {"kind", "dimensions"}
    assert [str(measure) for measure in loaded.question.measures] == ["nDCG@10", "P@5"]
    head = HEAD.replace('"P@5"', '"nDCG(dcg=\'log2\')@5", "P@5"')
    loaded = load(
        written(
            head + '[relevance]\ngain = "exponential"\nideal = "retrieved"\n' + BM25
        )
    )
    assert str(loaded.question.primary) == "nDCG(dcg='exp-log2', ideal='retrieved')@10"
    assert str(loaded.question.measures[1]) == "nDCG(ideal='retrieved')@5"


@pytest.mark.parametrize("key", ["zeros", "interval"])
def test_a_key_of_an_earlier_version_is_unknown(
    folder: Path, call: Call, key: str
) -> None:
    written(f'{HEAD}[statistics]\n{key} = "t"\n{BM25}')
    assert (
        f"statistics.{key}: unknown key '{key}'" in call("check", "e.toml", code=2).err
    )


def test_the_data_set_is_found_from_a_parent_of_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "experiments" / "deep").mkdir(parents=True)
    monkeypatch.chdir(folder / "experiments" / "deep")
    assert load(written(HEAD + BM25)).dataset.path == folder / "data"


def test_a_sheet_is_found_in_a_folder_with_a_hash_in_its_name(folder: Path) -> None:
    (folder / "c#").mkdir()
    (folder / "c#" / "book.xlsx").touch()
    head = HEAD.replace('"data"', '"c#/book.xlsx#March"')
    assert load(written(head + BM25)).dataset.name == "c#/book.xlsx#March"


def test_the_name_of_an_experiment_on_several_data_sets_is_a_text() -> None:
    words = {"name": "words", "kind": "bm25"}
    tables = {"name": 2026, "primary": "RR", "retrievers": [words]}
    datasets = [{"path": ".", "name": "a"}, {"path": ".", "name": "b"}]
    message = str(refusal(load_sets, {**tables, "dataset": datasets}))
    assert message == str(refusal(load_sets, {**tables, "dataset": "."}))
    assert message.startswith("name: 2026")


def other(name: str, *lines: str) -> str:
    """A second retriever beside BM25."""
    return HEAD + BM25 + "\n".join(["[[retrievers]]", f'name = "{name}"', *lines, ""])


def dense(encoder: str = "", *lines: str) -> str:
    return other("x", f'encoder = {{ kind = "hashing" {encoder} }}', *lines)


FAULTS = [
    ("name = ", "is not TOML"),
    (HEAD, "retrievers: needs at least 1"),
    (HEAD + BM25 + BM25, "retriever names: 'bm25' occurs twice"),
    (
        HEAD + BM25.replace("bm25", "BM25", 1) + BM25,
        "'BM25' and 'bm25' differ by case only",
    ),
    (HEAD + BM25.replace('name = "bm25"', 'name = "a b"'), "retrievers[0].name: 'a b'"),
    (
        HEAD + 'basline = "x"\n' + BM25,
        "unknown key 'basline' (did you mean 'baseline'?)",
    ),
    (
        HEAD + 'baseline = "bm52"\n' + BM25,
        "baseline 'bm52' is not a retriever; did you mean 'bm25'?",
    ),
    (
        HEAD + "seed = 9223372036854775808\n" + BM25,
        "seed: is too large a number (at most 9,223,372,036,854,775,807)",
    ),
    (HEAD + "depth = 5\n" + BM25, "nDCG@10 needs depth 10 or more; depth is 5"),
    (
        HEAD.replace('["nDCG@10", "P@5"]', '["ndgc@5", "nDCG@10"]')
        + "depth = 5\n"
        + BM25,
        "nDCG@10 needs depth 10 or more; depth is 5",
    ),
    (
        HEAD.replace('"P@5"', '"ndgc@5"') + BM25,
        "there is no measure 'ndgc' (did you mean 'nDCG'?)",
    ),
    (
        HEAD.replace('primary = "nDCG@10"', 'primary = "AP"') + BM25,
        "primary: AP is not among the measures",
    ),
    (
        HEAD.replace("nDCG@10", "RBP(residual=True)") + BM25,
        "primary: RBP(residual=True) is no quality",
    ),
    (other("x"), "has neither an encoder nor a kind"),
    (other("x", 'encoder = { kind = "hashng" }'), "did you mean 'hashing'?"),
    (dense(", dim = 3"), "encoder.dim: unknown key 'dim'"),
    (
        other("x", 'kind = "bm25"', 'filter = { f = { quer = "g" } }'),
        "quer: unknown key 'quer' (did you mean 'query'?)",
    ),
    (
        other("x", 'kind = "bm25"', "filter = { f = [3] }"),
        'filter.f: [3]: should be "value"',
    ),
    (other("f", 'kind = "fusion"', 'of = ["bm25", "bm26"]'), "uses unknown 'bm26'"),
    (other("f", 'kind = "fusion"', 'of = ["f", "bm25"]'), "in a circle: f"),
    (other("f", 'kind = "fusion"', 'of = ["bm25", "bm25"]'), "each retriever once"),
    (
        HEAD + BM25 + '[vectors]\nfrm = "x"\n',
        "vectors.frm: unknown key 'frm' (did you mean 'from'?)",
    ),
    (HEAD + BM25 + "[statistics]\nalpha = 1.5\n", "statistics.alpha: 1.5"),
    (HEAD.replace('"data"', '"dta"') + BM25, "'dta' does not exist"),
    (dense("", 'store = { location = "http://u:p@h" }'), "a secret"),
    (dense("", 'store = { location = "edge", shards = 3 }'), "shards: is for"),
    (other("h", 'kind = "http"', 'url = "http://h/?q=a&key=b"'), "url: a secret"),
    (HEAD + 'api_key = "sk-1"\n' + BM25, "api_key: a secret does not belong in a file"),
    (HEAD + 'api_keys = ["sk-1"]\n' + BM25, "api_keys[0]: a secret does not belong"),
    (
        HEAD.replace('"data"', '"${NOT_SET_AT_ALL}"') + BM25,
        "${NOT_SET_AT_ALL} is not set",
    ),
    ("caf\xe9", "is not UTF-8"),
]


@pytest.mark.parametrize(("text", "message"), FAULTS)
def test_each_fault_is_one_message_with_its_place(
    folder: Path, text: str, message: str
) -> None:
    Path("e.toml").write_bytes(
        text.encode("latin-1" if message == "is not UTF-8" else "utf-8")
    )
    error_text = str(refusal(load, "e.toml"))
    assert message in error_text and "e.toml" in error_text
    assert ("needs at least 1" in error_text) == (text == HEAD)
    assert "cannot be read" in str(refusal(load, "none.toml"))


def test_a_conversation_may_be_written_on_several_lines(folder: Path) -> None:
    template = '[conversation]\ntext = "{history}\\n{query}"\n'
    (config,) = load(written(HEAD + BM25 + template)).experiment.retrievers
    assert config.conversation is not None
    assert config.conversation.text == "{history}\n{query}"


def test_a_swept_value_may_be_empty(folder: Path) -> None:
    table = dense("", 'filter = { lang = "en" }')
    sweep = '[sweep]\ndefault = "x"\nof = "x"\nfilter = [{}, { lang = "de" }]\n'
    experiment = load(written(table + sweep)).experiment
    assert experiment.retriever_names == ["bm25", "x", "x[none]", "x[de]"]
    refused = refusal(load, experiment)
    assert "sweep: is written out" in str(refused)


schema = cache(
    lambda: runpy.run_path(str(Path(__file__).parents[3] / ".ci" / "keys"))[
        "experiment_schema"
    ]()
)
"""Made once for all tests: it takes half a second."""
validator = cache(lambda: jsonschema.Draft202012Validator(schema()))
"""`jsonschema.validate` would look through the whole schema each time."""
EXPERIMENT: dict[str, Any] = {
    "name": "x",
    "dataset": "d",
    "primary": "RR",
    "measures": ["RR"],
    "retrievers": [
        {"name": "a", "encoder": {"kind": "hashing"}},
        {"name": "b", "kind": "bm25"},
    ],
}


def test_the_schema_is_current_and_says_what_every_key_is(project: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    file = json.loads(
        (project / "experiments" / "experiment.schema.json").read_text(encoding="utf-8")
    )
    assert file == json.loads(json.dumps(schema())), "run python .ci/keys"
    for path in (project / "experiments").glob("*.toml"):
        validator().validate(tomllib.loads(path.read_text(encoding="utf-8")))
    tables = [file, *file["$defs"].values()]
    tables += [
        kind for table in file["$defs"].values() for kind in table.get("anyOf", [])
    ]
    undescribed = set()
    for table in tables:
        undescribed |= {
            key
            for key, schema_of_key in table.get("properties", {}).items()
            if not {"description", "const"} & set(schema_of_key)
        }
    assert undescribed == set()


@pytest.mark.parametrize(
    ("change", "is_valid"),
    [
        (tables, True)
        for tables in [
            {},
            {"dataset": {"path": "d", "queries": ["a.json", "b.json"]}},
            {
                "relevance": {"grades": [[1, 3], [10, 1]]},
                "statistics": {"margin": 0.02, "test": "t"},
            },
            {
                "retrievers": [
                    {
                        "name": "a",
                        "encoder": {"kind": "hashing"},
                        "store": {"location": "edge", "m": 16},
                    }
                ]
            },
            {
                "retrievers": [
                    *EXPERIMENT["retrievers"],
                    {
                        "name": "c",
                        "of": "a",
                        "rerank": {"kind": "cross-encoder", "model": "m"},
                    },
                ]
            },
        ]
    ]
    + [
        (tables, False)
        for tables in [
            {"depht": 10},
            {"statistics": {"alpha": 2}},
            {"relevance": {"grades": "quadratic"}},
            {"retrievers": [{"name": "no/slash", "kind": "bm25"}]},
            {"retrievers": [{"name": "a", "encoder": {"kind": "openai"}}]},
        ]
    ],
)
def test_the_schema_takes_what_the_program_takes(
    change: dict[str, Any], is_valid: bool
) -> None:
    with nullcontext() if is_valid else pytest.raises(InputError):
        parse_experiment(EXPERIMENT | change)
    assert validator().is_valid(EXPERIMENT | change) == is_valid


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("embed small.toml --to parts --address ray://here:1", "--address"),
        ("check data --results elsewhere", "--results"),
        ("compare RESULTS --report page.html", "--report"),
        ("compare RESULTS --range 0 2", "--range"),
        ("compare RESULTS/scores.csv --grades binary", "--grades"),
        ("judge pool.jsonl --base-url http://localhost:1", "--base-url"),
        ("judge pool.jsonl --max-cost 1", "--max-cost"),
        ("judge pool.jsonl --plan", "--plan"),
        ("labels merge judgments.jsonl --into data --policy policy.txt", "--policy"),
    ],
)
def test_an_option_without_effect_is_refused(
    call: Call, results: Path, tmp_path: Path, in_tmp: None, words: str, option: str
) -> None:
    small.experiment(tmp_path)
    if words.startswith("judge"):
        call("pool", results)
    before = set(tmp_path.iterdir())
    output = call(*words.replace("RESULTS", str(results)).split(), code=2)
    assert output.out == "" and output.err.startswith(f"error: {option}: ")
    assert set(tmp_path.iterdir()) == before
