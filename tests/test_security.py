"""SECURITY.md: each row of its table names tests."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_each_row_of_what_is_not_trusted_names_tests_that_exist():
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    section = page.split("## What is not trusted")[1].split("## ")[0]
    rows = [line for line in section.split("\n") if line.startswith("| ")][2:]
    assert len(rows) == 7
    for row in rows:
        named_files = re.findall(r"`(tests/\S+\.py)`", row.split("|")[-2])
        assert named_files
        assert all((ROOT / name).is_file() for name in named_files)
