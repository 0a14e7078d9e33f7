"""What stands beside the code for those who carry it on says what is so."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import harness
from harness.records.manifest_file import MANIFEST_SCHEMA
from retrievers import errors

PROJECT = Path(__file__).parents[1]


def text_of(*path_parts: str) -> str:
    return PROJECT.joinpath(*path_parts).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads(text_of("pyproject.toml"))["project"]


def test_every_target_that_contributors_are_told_of_is_one_of_make() -> None:
    documented_targets = set(re.findall(r"make ([a-z]+)", text_of("CONTRIBUTING.md")))
    assert documented_targets <= set(
        re.findall(r"^([a-z]+):", text_of("Makefile"), re.MULTILINE)
    )


def test_public_ci_runs_what_ours_does_on_every_python_that_is_claimed(
    project: dict[str, Any],
) -> None:
    job = yaml.safe_load(text_of(".github", "workflows", "tests.yml"))["jobs"]["tests"]
    pythons = job["strategy"]["matrix"]["python"]
    claimed = [
        word.rpartition(" ")[2] for word in project["classifiers"] if ":: 3." in word
    ]
    assert pythons == claimed
    assert project["requires-python"] == f">={pythons[0]}"
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]


def test_what_the_versions_call_public_is_all_that_is() -> None:
    page = text_of("docs", "commands.md")
    (listed,) = re.findall(r"`harness.__all__`: ([^-]*)", page)
    assert re.findall(r"`(\w+)`", listed) == harness.__all__
    groups = {
        f"retriever_harness.{part}"
        for part in ("encoders", "rerankers", "retrievers", "stores")
    }
    assert set(re.findall(r"retriever_harness\.\w+", page)) == groups
    family = [
        error_class
        for error_class in vars(errors).values()
        if isinstance(error_class, type)
        and issubclass(error_class, errors.HarnessError)
    ]
    codes = {int(code) for code in re.findall(r"^- (\d+): ", page, re.MULTILINE)}
    assert codes == {0, 130, *(error_class.exit_code for error_class in family)}
    assert f'`"schema": {MANIFEST_SCHEMA}`' in page
