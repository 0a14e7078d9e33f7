"""The schema that an editor reads beside an experiment file."""

import shutil
from pathlib import Path

from harness.shipped_files import shipped_experiments
from retrievers.files.text_files import explain_write_errors

SCHEMA_FILE = "experiment.schema.json"
"""Its name, in the first line of every experiment file that is written."""


def write_schema(folder: Path) -> None:
    """Write the schema of experiment files into a folder; one that is there stays."""
    path = folder / SCHEMA_FILE
    if path.exists():
        return
    with explain_write_errors(path):
        shutil.copyfile(shipped_experiments() / SCHEMA_FILE, path)
