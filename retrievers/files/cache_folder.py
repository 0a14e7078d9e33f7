"""The folder of the caches."""

import os
from pathlib import Path

from retrievers.files.text_files import user_path


def cache_folder() -> Path:
    """Return the folder that HARNESS_CACHE names, else the user's cache folder."""
    folder = os.environ.get("HARNESS_CACHE")
    if folder:
        return user_path(folder)
    from platformdirs import user_cache_path

    return user_cache_path("retriever-harness", appauthor=False)
