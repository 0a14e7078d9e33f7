"""Untrusted text, escaped for each format."""

import html
import re

from harness.english import SUPERSCRIPT_DIGITS
from harness.pages import visible_text
from harness.records import escape_cell

SPREADSHEET_FORMULA = re.compile(r"[\s\0]*[=+\-@|%]|[\t\r\n]")
"""The start of a text that a spreadsheet would run as a formula."""
MARKDOWN_SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")
LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "'": r"\textquotesingle{}",
    # pdfLaTeX does not know these signs of numbers.
    "×": r"\texttimes{}",
    "\N{MINUS SIGN}": r"\textminus{}",
    **{
        chr(sign): rf"\textsuperscript{{{chr(plain)}}}"
        for plain, sign in SUPERSCRIPT_DIGITS.items()
    },
}


def shorten_text(text: str, length: int) -> str:
    """Return the beginning of a text on one line, with an ellipsis where it goes on.

    >>> shorten_text("one  two three", 8)
    'one two…'
    """
    line = " ".join(visible_text(text).split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def escape_markdown(text: str) -> str:
    r"""Return a text that GitHub shows literally, on one line.

    This holds also in a list or a table.

    >>> print(escape_markdown("a|b <i>*x* nDCG@10 @you"))
    a\|b &lt;i&gt;\*x\* nDCG@10 &#64;you
    """
    line = " ".join(visible_text(text).split())
    line = MARKDOWN_SPECIAL.sub(r"\\\1", html.escape(line, quote=False))
    # Entities start no list, mention or link.
    line = re.sub(r"^(\d+)([.)])", lambda match: f"{match[1]}&#{ord(match[2])};", line)
    return re.sub(
        r"^[-+]|(?<!\w)@|(?<=\w):(?=//)|(?<=www)\.",
        lambda match: f"&#{ord(match[0])};",
        line,
    )


def escape_latex(text: str) -> str:
    r"""Return a text for LaTeX.

    >>> escape_latex("50_%")
    '50\\_\\%'
    """
    return "".join(LATEX_ESCAPES.get(letter, letter) for letter in visible_text(text))


def escape_spreadsheet_cell(text: str) -> str:
    """Return a text that no spreadsheet runs as a formula.

    >>> escape_spreadsheet_cell("=1+1"), escape_spreadsheet_cell("plain")
    ("'=1+1", 'plain')
    """
    # As in every CSV file of the folder; a spreadsheet reads further signs as formulas.
    text = escape_cell(visible_text(text))
    return "'" + text if SPREADSHEET_FORMULA.match(text) else text
