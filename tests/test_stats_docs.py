"""What the statistics' documentation shows is what the program does."""

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("page", ["articles-wilcoxon.md", "statistics.md"])
def test_the_examples_of_the_page_run(page):
    found = doctest.testfile(str(DOCS / page), module_relative=False, encoding="utf-8")
    assert found.attempted > 0
    assert found.failed == 0
