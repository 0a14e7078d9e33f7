"""What tests share: one cache folder a session, and the collections with known answers where they lie beside us."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
SHARED = PROJECT.parent / "shared"


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of this session's own, shared by the workers of pytest-xdist, so that no text is embedded twice."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"
    os.environ["HARNESS_CACHE"] = str(folder)
    return folder


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real collections and models; a user's clone has none."""
    if not (SHARED / "data").is_dir():
        pytest.skip("the collections with known answers are not here")
    return SHARED


@pytest.fixture(scope="session")
def project() -> Path:
    """The root of this checkout."""
    return PROJECT
