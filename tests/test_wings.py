"""Wings can be taken off: without one of them, the demo runs, is scored and reported as with it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

WINGS = {
    "labels": ["harness/labels"],
    "answers": ["harness/answers"],
    "sweep": ["harness/experiment/sweep.py", "harness/evaluation/sweep.py", "harness/report/sections/sweep.py"],
    "index": ["harness/report/index.py"],
}
"""Wing -> the folders and files that are deleted; nothing else is touched."""
DEMO = "quickstart-no-model"


@pytest.mark.slow
@pytest.mark.parametrize("wing", WINGS)
def test_the_demo_runs_without_a_wing(wing: str, project: Path, tmp_path: Path) -> None:
    for name in ("harness", "retrievers", "datasets/survey-templates-en"):
        shutil.copytree(project / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "experiments").mkdir()
    shutil.copy(project / f"experiments/{DEMO}.toml", tmp_path / "experiments")
    for name in WINGS[wing]:
        place = tmp_path / name
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "HARNESS_CACHE": str(tmp_path / "cache")}
    experiment = f"experiments/{DEMO}.toml"
    for words in (["run", experiment], ["report", f"results/{DEMO}"], ["check", experiment]):
        command = [sys.executable, "-m", "harness", *words]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    results = tmp_path / "results" / DEMO
    assert {"report.html", "report.md", "scores.csv", "comparisons.csv"} <= {file.name for file in results.iterdir()}
