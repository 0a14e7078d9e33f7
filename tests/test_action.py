"""The composite action: its steps run in a shell, as a workflow would run them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import small

PROJECT = Path(__file__).parents[1]
ACTION = yaml.safe_load((PROJECT / "action.yml").read_text(encoding="utf-8"))


def inputs(**given: str) -> dict[str, str]:
    defaults = {
        name: str(option["default"])
        for name, option in ACTION["inputs"].items()
        if "default" in option
    }
    return {**defaults, **given}


def step(name: str) -> dict[str, Any]:
    return next(step for step in ACTION["runs"]["steps"] if step["name"] == name)


def run_step(
    name: str, values: dict[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    variables = {
        variable: text.replace("${{ inputs.", "").replace(" }}", "")
        for variable, text in step(name)["env"].items()
    }
    environment = {variable: values[key] for variable, key in variables.items()}
    scripts = folder / "bin"
    return subprocess.run(
        ["bash", "-e", "-c", step(name)["run"]],
        cwd=folder,
        env={
            **os.environ,
            **environment,
            "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(PROJECT),
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def workspace(tmp_path: Path, own_cache: None) -> Path:
    """A folder with an experiment, and commands that record how pip was called."""
    small.experiment(tmp_path)
    scripts = tmp_path / "bin"
    scripts.mkdir()
    commands = {
        "pip": f'#!/bin/sh\necho "$@" >> {tmp_path / "pip.txt"}\n',
        "harness": f'#!/bin/sh\nexec {sys.executable} -m harness "$@"\n',
        "python": f'#!/bin/sh\nexec {sys.executable} "$@"\n',
    }
    for name, script in commands.items():
        (scripts / name).write_text(script, encoding="utf-8")
        (scripts / name).chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ({"wheels": "dist"}, "--find-links dist retriever-harness[offline]"),
        (
            {"source": "git+https://host/repository"},
            "retriever-harness[offline] @ git+https://host/repository",
        ),
    ],
    ids=["wheels", "source"],
)
def test_the_harness_is_installed_from_wheels_or_a_repository(
    workspace: Path, given: dict[str, str], arguments: str
) -> None:
    process = run_step("Install", inputs(**given), workspace)
    assert process.returncode == 0, process.stderr
    assert arguments in (workspace / "pip.txt").read_text(encoding="utf-8")


def test_an_action_without_a_source_says_which_inputs_it_takes(workspace: Path) -> None:
    process = run_step("Install", inputs(), workspace)
    assert process.returncode == 2
    assert "::error::Set wheels" in process.stdout


@pytest.mark.slow
def test_a_run_is_gated_and_summarised(workspace: Path) -> None:
    values = inputs(
        experiment="small.toml", baseline="bm25", challenger="hashing", margin="0.9"
    )
    ran = run_step("Run", values, workspace)
    assert ran.returncode == 0, ran.stderr
    gated = run_step("Gate", values, workspace)
    assert gated.returncode in (0, 1), gated.stderr
    assert "bm25" in (workspace / "summary.md").read_text(encoding="utf-8")
