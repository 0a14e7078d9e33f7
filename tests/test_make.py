"""Installing by make, with a uv that only writes down how it is called."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
FAKE_UV = """#!/bin/sh
echo "$UV_TORCH_BACKEND:$*" >> calls.txt
[ "$UV_TORCH_BACKEND" != "$UNREACHABLE" ]
"""
"""Fails for one backend, as uv does if that backend's index cannot be reached."""
NO_INDEX = "PyTorch's own index cannot be reached"

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="make is missing")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with an environment of programs that install nothing."""
    for name in ("Makefile", "requirements.lock", "pyproject.toml", "setup.py"):
        shutil.copy(PROJECT / name, tmp_path / name)
    binaries = tmp_path / ".venv" / "bin"
    binaries.mkdir(parents=True)
    for name, program in (("uv", FAKE_UV), ("python", "#!/bin/sh\n")):
        (binaries / name).write_text(program, encoding="utf-8")
        (binaries / name).chmod(0o755)
    (tmp_path / ".venv" / ".made").touch()
    return tmp_path


def install(checkout: Path, unreachable: str, backend: str | None) -> tuple[str, str]:
    """Return how uv installed the locked packages, and what make said."""
    environment = {"PATH": os.environ["PATH"], "UNREACHABLE": unreachable}
    if backend is not None:
        environment["UV_TORCH_BACKEND"] = backend
    installing = subprocess.run(
        ["make", ".venv/.demo"],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    calls = (checkout / "calls.txt").read_text(encoding="utf-8").splitlines()
    (installed,) = [call for call in calls if "-r requirements.lock" in call]
    return installed.partition(":")[0], installing.stderr


@pytest.mark.parametrize(
    ("backend", "expected"), [(None, "auto"), ("auto", "auto"), ("cu130", "cu130")]
)
def test_torch_comes_from_its_own_index(
    checkout: Path, backend: str | None, expected: str
) -> None:
    installed_by, errors = install(checkout, "none", backend)
    assert installed_by == expected
    assert NO_INDEX not in errors


def test_without_that_index_torch_comes_from_the_package_index(checkout: Path) -> None:
    installed_by, errors = install(checkout, "auto", None)
    assert installed_by == ""
    assert errors.count(NO_INDEX) == 1
