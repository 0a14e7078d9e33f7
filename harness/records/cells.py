"""Text in CSV files: what a spreadsheet would run stays text, and no character makes a row of its own."""

from __future__ import annotations

import re

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
FORMULA = re.compile(r"""(^|[;,\t])('*)(?=\s*"?(?:=|[+@-][^;,\t]*[(|!]))""")
QUOTED = re.compile(r"""(^|[;,\t])'('*)(?=\s*"?(?:=|[+@-][^;,\t]*[(|!]))""")


def as_cell(text: str) -> str:
    r"""Return a text as it is written into a CSV file.

    A spreadsheet runs what begins with an equals sign, or with a sign and holds a call; where it cuts lines at
    semicolons or tabs, also in the middle of a text. An apostrophe before it makes it text. Control characters become
    spaces: some readers end a row at each of them.

    >>> as_cell("=HYPERLINK(1)"), as_cell("a;@SUM(1)"), as_cell("-abc123"), as_cell("a\rb")
    ("'=HYPERLINK(1)", "a;'@SUM(1)", '-abc123', 'a b')
    """
    return FORMULA.sub(r"\1'\2", CONTROL.sub(" ", text))


def of_cell(cell: str) -> str:
    """Return the text that `as_cell` wrote.

    >>> of_cell(as_cell("=1")), of_cell(as_cell("'=1")), of_cell("don't")
    ('=1', "'=1", "don't")
    """
    return QUOTED.sub(r"\1\2", cell)
