"""The experiments that come with the package."""

from pathlib import Path


def shipped_experiments() -> Path:
    """Return the folder of the quickstart and of the schema of experiment files.

    `setup.py` puts it into an installed package; in a checkout it is in the project's
    folder.
    """
    package = Path(__file__).parent
    installed = package / "demo" / "experiments"
    return installed if installed.is_dir() else package.parent / "experiments"
