"""What all tests have: one cache folder a session, and examples by hypothesis that may
take their time.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.browser import NO_BROWSER, chromium

# Several workers share few cores: threads that wait for each other sleep. Spinning took
# half of the time of the tests that run models.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

if TYPE_CHECKING:
    from harness.records import Results
    from retrievers.cache import Cache
    from tests.support.qdrant_fake import FakeQdrant
    from tests.support.small import Call, Told
    from tests.support.store_places import Places

for name in ("default", "fuzz"):
    settings.register_profile(
        name,
        deadline=None,  # how fast this machine is says nothing about the code
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=name
        # a commit passes or fails whenever it is tried; `make fuzz` looks for more
        == "default",
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

PROJECT = Path(__file__).parents[1]


REAL = {
    "--qdrant": (
        "URL of a Qdrant server over REST, such as http://localhost:6333; "
        "its collections of tests are removed"
    ),
    "--qdrant-grpc": "URL of the same server over gRPC, such as grpc://localhost:6334",
    "--qdrant-key": "the key of that server, where it asks for one",
}
"""Options that name real servers, which the tests marked `server` need; without them
they are skipped.
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Real servers are named on the command line: pytest -m server --qdrant
    http://localhost:6333
    """
    for name, meaning in REAL.items():
        parser.addoption(name, metavar="WHERE", help=meaning)


@pytest.hookimpl(optionalhook=True)  # also without pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With --dist loadfile, one worker gets all files that run models."""
    if config.getvalue("dist") != "loadfile":
        return None
    from tests.support.scheduling import ModelsTogether

    return ModelsTogether(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """The workers share the work of a first import."""
    folders = [Path(name) for name in session.config.args if Path(name).is_dir()]
    if "PYTEST_XDIST_WORKER" in os.environ:
        from tests.support.scheduling import import_in_turns

        import_in_turns([folder.resolve() for folder in folders], PROJECT)


@pytest.fixture(scope="session")
def real(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Return what an option names, or skip with the reason."""

    def named(option: str) -> str:
        return request.config.getoption(option) or pytest.skip(
            f"needs {option}: {REAL[option]}"
        )

    return named


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser for the tests of one file."""
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test in a browser is slow, and skipped where there is none."""
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.slow)
            if NO_BROWSER:
                item.add_marker(pytest.mark.skip(reason=NO_BROWSER))


def pytest_collection_finish() -> None:
    """What collection imported lives to the end: the garbage collector went through it
    again and again, a sixth of the time of tests that run models. What tests import, or
    keep, it goes through seldom.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Pytest and Python search for cycles six times more: it is done once, here."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of this session's own, shared by the workers of pytest-xdist, so that no
    text is embedded twice.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"
    os.environ["HARNESS_CACHE"] = str(folder)
    return folder


@pytest.fixture(scope="session", autouse=True)
def short_pauses() -> None:
    """Whoever fails for a moment is asked again almost at once."""
    from retrievers.services import caller

    caller.FIRST_PAUSE = 0.01


@pytest.fixture(scope="session", autouse=True)
def commands_built_once() -> None:
    """The command line is built from its functions once a process, as by its users."""
    import typer.main

    typer.main.get_command = functools.cache(typer.main.get_command)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """One run of `small.experiment` with its report, for all tests that only read: what
    changes it copies its folder.

    The experiment file lies beside the folder `out`, in which the results are.
    """
    from harness.pipeline import run
    from harness.running.options import RunOptions
    from tests.support import small

    folder = tmp_path_factory.mktemp("finished")
    return run(small.experiment(folder, report=True), RunOptions(folder / "out"))


@pytest.fixture
def results(finished: Results) -> Path:
    """The folder of that run."""
    return finished.folder


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the command line in this process, which ends with the code that is given."""
    from tests.support import small

    monkeypatch.setenv("COLUMNS", "80")

    def called(*words: object, code: int | None = None) -> Told:
        output = small.call(capsys, *words)
        assert "Traceback" not in output.err
        assert code in (None, output.code), output.err
        return output

    return called


@pytest.fixture(scope="session")
def project() -> Path:
    """The root of this checkout."""
    return PROJECT


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """What is open until the test ends, such as servers."""
    with ExitStack() as opened:
        yield opened


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No account of OpenAI's in the environment."""
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OPENAI_ORG_ID",
        "OPENAI_PROJECT_ID",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys that the fakes of providers ask for."""
    from tests.support.provider_blocks import set_keys

    set_keys(monkeypatch)


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    """A cache of the test's own, open."""
    from retrievers.cache import Cache

    with Cache(tmp_path / "c") as opened:
        yield opened


@pytest.fixture(scope="session")
def server() -> Iterator[FakeQdrant]:
    """A fake of Qdrant's server."""
    from tests.support.qdrant_fake import fake_qdrant

    with fake_qdrant() as running:
        yield running


@pytest.fixture
def places(
    server: FakeQdrant,
    real: Callable[[str], str],
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> Iterator[Places]:
    """Opens stores; closes all at the end."""
    from tests.support.store_places import Places

    places = Places(server, real, request.config.getoption("--qdrant-key"), tmp_path)
    yield places
    places.close()


@pytest.fixture(autouse=True)
def no_keys_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages hide the keys of this process: here those of the test alone."""
    monkeypatch.setattr("retrievers.options.placeholders._used", set())


@pytest.fixture(autouse=True)
def outside_of_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another test may have imported ipykernel, by which a notebook is recognised."""
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)


@pytest.fixture
def kept_converter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that converts files is kept for the next test: it takes a second."""
    from harness.dataset.conversion_process import CONVERSIONS

    monkeypatch.setattr(CONVERSIONS, "stop", lambda: None)


@pytest.fixture
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory of the test's own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
