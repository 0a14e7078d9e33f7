"""The pages as a site: built strictly, whole, and without anything from elsewhere."""

import re
import runpy
from importlib.util import find_spec
from pathlib import Path

import pytest

import harness
from harness.cli import app
from tests.harness.console.test_cli import commands

PROJECT = Path(__file__).parents[1]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("zensical") is None,
        reason="Zensical is not installed: requirements-dev.lock has it",
    ),
]


@pytest.fixture(scope="module")
def script() -> dict:
    return runpy.run_path(str(PROJECT / ".ci" / "site"))


def test_the_site_has_every_page_and_loads_nothing_from_elsewhere(
    script: dict, tmp_path: Path
) -> None:
    script["gather"](tmp_path / "site-source")
    script["gallery"](tmp_path / "site-source")
    assert script["build"](tmp_path) == 0
    site = tmp_path / "site"
    reports = re.findall(
        r'href="(gallery/[^"]+/report\.html)"',
        (site / "docs" / "gallery.html").read_text("utf-8"),
    )
    assert len(set(reports)) == len(script["SHOWN_OFF"])
    assert all(
        "<title>" in (site / "docs" / report).read_text(encoding="utf-8")
        for report in reports
    )
    for page in (PROJECT / "docs").rglob("*.md"):
        name = "index" if page.stem == "README" else page.stem
        assert (site / page.relative_to(PROJECT).with_name(f"{name}.html")).is_file()
    api = (site / "docs" / "api.html").read_text(encoding="utf-8")
    assert re.findall(r"<h2 id=[^>]*>\s*harness\.(\w+)\s*<", api) == harness.__all__
    helps = (site / "docs" / "commands.html").read_text(encoding="utf-8")
    assert re.findall(r"<h2 id=[^>]*>harness ([a-z ]+)<", helps) == [
        name for name, _ in commands(app)
    ]
    loaded = (
        r"<(?:script|img|iframe)[^>]* src=\"http"
        r"|<link[^>]* rel=\"stylesheet\"[^>]* href=\"http"
    )
    assert [
        page
        for page in site.rglob("*.html")
        if re.search(loaded, page.read_text(encoding="utf-8"))
    ] == []
