"""The schema that editors read is made from the code, and agrees with it."""

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from harness.experiment import parse
from harness.experiment.schema import experiment_schema
from retrievers.errors import InputError

PROJECT = Path(__file__).parents[1]
schema = cache(experiment_schema)
"""Made once for all tests: it takes half a second."""
validator = cache(lambda: jsonschema.Draft202012Validator(schema()))
"""`jsonschema.validate` would look through the whole schema each time."""
EXPERIMENT: dict[str, Any] = {
    "name": "x",
    "dataset": "d",
    "primary": "RR",
    "measures": ["RR"],
    "retrievers": [{"name": "a", "encoder": {"kind": "hashing"}}, {"name": "b", "kind": "bm25"}],
}


def test_the_file_is_current() -> None:
    written = json.loads((PROJECT / "experiments" / "experiment.schema.json").read_text(encoding="utf-8"))
    assert written == json.loads(json.dumps(schema())), "run python -m harness.experiment.schema"


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("path", sorted((PROJECT / "experiments").glob("*.toml")), ids=lambda path: path.name)
def test_the_experiments_keep_to_it(path: Path) -> None:
    validator().validate(tomllib.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"dataset": {"path": "d", "split": "test"}},
        {"dataset": {"path": "d", "queries": ["a.json", "b.json"]}},
        {"relevance": {"grades": [[1, 3], [10, 1]]}, "statistics": {"margin": 0.02, "test": "t"}},
        {"retrievers": [{"name": "a", "encoder": {"kind": "openai", "model": "m"}, "store": "edge"}]},
        {"retrievers": [{"name": "a", "encoder": {"kind": "hashing"}, "store": {"location": "edge", "m": 16}}]},
        {"retrievers": [*EXPERIMENT["retrievers"], {"name": "c", "kind": "fusion", "of": ["a", "b"]}]},
        {"retrievers": [*EXPERIMENT["retrievers"],
                        {"name": "c", "of": "a", "rerank": {"kind": "cross-encoder", "model": "m"}}]},
    ],
)  # fmt: skip
def test_what_the_program_takes_the_schema_takes(change: dict[str, Any]) -> None:
    parse(EXPERIMENT | change)
    validator().validate(EXPERIMENT | change)


@pytest.mark.parametrize(
    "change",
    [
        {"depht": 10},
        {"depth": "ten"},
        {"depth": 0},
        {"measures": []},
        {"statistics": {"alpha": 2}},
        {"relevance": {"grades": "quadratic"}},
        {"retrievers": [{"name": "no/slash", "kind": "bm25"}]},
        {"retrievers": [{"name": "a"}]},
        {"retrievers": [{"name": "a", "kind": "bm52"}]},
        {"retrievers": [{"name": "a", "encoder": {"kind": "openai"}}]},
        {"retrievers": [{"name": "a", "encoder": {"kind": "hashing", "dimension": 3}}]},
        {"retrievers": [{"name": "a", "encoder": {"kind": "hashing"}, "store": {"locaton": "edge"}}]},
    ],
)
def test_what_the_program_refuses_the_schema_refuses(change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        parse(EXPERIMENT | change)
    assert not validator().is_valid(EXPERIMENT | change)


def test_every_key_says_what_it_is() -> None:
    made = schema()
    tables = [made, *made["$defs"].values()]
    tables += [kind for table in made["$defs"].values() for kind in table.get("anyOf", [])]
    for table in tables:
        for key, value in table.get("properties", {}).items():
            assert "description" in value or "const" in value, f"{key}: {value}"
