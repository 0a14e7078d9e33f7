"""Numbers, untrusted text and colours of a page; colour-blind readers can distinguish the colours."""

import hashlib
import html
import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from harness.english import format_p, minus
from harness.pages import DARK, WHITE, on_dark
from harness.pages import visible as visible  # re-exported
from harness.records import as_cell

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Helvetica Neue', Arial, sans-serif"


class Shade(NamedTuple):
    """A colour on paper and its counterpart on a dark screen."""

    light: str
    dark: str


PAPER = Shade(WHITE, DARK)
INK = Shade("#1b1f24", "#e8eaed")
MUTED = Shade("#57606a", "#a3adb8")
RULE = Shade("#dfe3e8", "#343a42")
SERIES = (
    Shade("#2f8ac4", "#4f9cf0"),
    Shade("#9b53ea", "#764de2"),
    Shade("#055e00", "#9cf853"),
    Shade("#5a1560", "#b8609a"),
    Shade("#a87f19", "#e0d385"),
    Shade("#cf3a5e", "#ff8fa3"),
    Shade("#1d1a8a", "#837bf0"),
    Shade("#66737f", "#a9b8c4"),
    Shade("#d12fa6", "#ff5fe0"),
    Shade("#7b5a48", "#b58f78"),
)
"""At least 3 : 1 against their paper (WCAG 2.2, 1.4.11). The first five are 20 apart or more (CIE 1976) to readers with
each of the three colour deficiencies; each appears with a name. None is close to the hues of the verdicts."""
SHADES = (PAPER, INK, MUTED, RULE, *SERIES)


def colors_of(
    identities: Mapping[str, str], declared: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Give each retriever a colour that depends on its identity, not on its rank.

    The same retriever has the same colour in every report. If two would share one, the first by name keeps it, and
    the other gets the next free one; beyond ten, colours repeat.

    Args:
        identities: retriever -> its identity, without its name.
        declared: retriever -> the colour that its table declares, "" for none.
    """
    declared = declared or {}
    drawn: dict[str, str] = {}
    for name in sorted(identities):
        wanted = int.from_bytes(
            hashlib.sha256(identities[name].encode()).digest()[:4], "big"
        )
        turned = [
            SERIES[(wanted + step) % len(SERIES)].light for step in range(len(SERIES))
        ]
        taken = Counter(drawn.values())
        drawn[name] = declared.get(name) or min(turned, key=lambda color: taken[color])
    return {name: drawn[name] for name in identities}


def declared_shades(drawn: Mapping[str, str]) -> list[Shade]:
    """The colours that an experiment declares, with their counterparts on a dark screen."""
    ours = {shade.light for shade in SERIES}
    return [
        Shade(color, on_dark(color)) for color in sorted(set(drawn.values()) - ours)
    ]


FORMULA = re.compile(r"[\s\0]*[=+\-@|%]|[\t\r\n]")
MARKDOWN = re.compile(r"([\\`*_\[\]#|~$])")
LATEX = {
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
}
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def shortened(text: str, length: int) -> str:
    """Return the beginning of a text on one line, with an ellipsis where it goes on.

    >>> shortened("one  two three", 8)
    'one two…'
    """
    line = " ".join(visible(text).split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def score(value: float | None) -> str:
    """Return a score with three decimals, a dash where there is none.

    >>> score(0.46154), score(None), score(-0.0001)
    ('0.462', '–', '0.000')
    """
    if _missing(value):
        return "–"
    shown = f"{value:.3f}"
    return shown.removeprefix("-") if float(shown) == 0 else minus(shown)


def signed(value: float | None) -> str:
    """Return a difference with its sign.

    >>> signed(-0.0307), signed(0.2), signed(0.0)
    ('−0.031', '+0.200', '0.000')
    """
    if _missing(value):
        return "–"
    text = f"{value:+.3f}"
    return text[1:] if float(text) == 0 else minus(text)


def between(ends: tuple[float | None, float | None]) -> str:
    """Return an interval, or "not estimable".

    >>> between((0.2, 0.41)), between((None, None))
    ('0.200 to 0.410', 'not estimable')
    """
    return (
        "not estimable" if any(map(_missing, ends)) else " to ".join(map(score, ends))
    )


def between_signed(ends: tuple[float | None, float | None]) -> str:
    """Return an interval of a difference, or "not estimable".

    >>> between_signed((-0.01, 0.2))
    '−0.010 to +0.200'
    """
    return (
        "not estimable" if any(map(_missing, ends)) else " to ".join(map(signed, ends))
    )


def p_value(p: float | None) -> str:
    """Return a p-value with three digits, never as 0.

    >>> p_value(0.046875), p_value(1.5575e-9), p_value(0.0), p_value(1.0)
    ('0.0469', '1.56×10⁻⁹', '< 10⁻¹²', '1.00')
    """
    if p is None or math.isnan(p):
        return "–"
    digits, _, power = format_p(p).partition("e")
    if not power:
        return digits
    return f"{'< ' if digits == '< 1' else digits + '×'}10{str(int(power)).translate(SUPERSCRIPTS)}"


def plain(value: float | None) -> str:
    """Return a number with at most six digits.

    >>> plain(51.5), plain(20.0), plain(None)
    ('51.5', '20', '–')
    """
    return (
        "–"
        if _missing(value)
        else minus(f"{value:,.6g}" if abs(value or 0) < 1e6 else f"{value:,.0f}")
    )


def dollars(value: float | None) -> str:
    """Return an amount of money; an unknown price is not 0.

    >>> dollars(0.0), dollars(0.00004), dollars(12.3), dollars(None)
    ('$0', '$0.00004', '$12.30', 'unknown')
    """
    if _missing(value) or value is None:
        return "unknown"
    if value == 0 or value >= 0.01:
        return f"${value:,.2f}" if value else "$0"
    return "$" + f"{value:.{1 - math.floor(math.log10(value))}f}".rstrip("0")


def milliseconds(value: float | None) -> str:
    """Return a duration given in milliseconds.

    >>> milliseconds(0.5), milliseconds(12.34), milliseconds(999.7), milliseconds(1500)
    ('0.50 ms', '12.3 ms', '1000 ms', '1.50 s')
    """
    if _missing(value) or value is None:
        return "–"
    if value >= 1000:
        return seconds(value / 1000)
    return (
        f"{value:.2f} ms"
        if value < 1
        else f"{value:#.3g} ms".replace(". ", " ").replace("1.00e+03", "1000")
    )


def seconds(value: float | None) -> str:
    """Return a duration given in seconds.

    >>> seconds(0.0514), seconds(75.0), seconds(7300)
    ('51.4 ms', '1 min 15 s', '2 h 1 min')
    """
    if _missing(value) or value is None:
        return "–"
    if value < 1:
        return milliseconds(value * 1000) if value else "0 s"
    if value < 60:
        return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return (
        f"{minutes} min {rest} s"
        if minutes < 60
        else f"{minutes // 60} h {minutes % 60} min"
    )


def size(value: float | None) -> str:
    """Return a number of bytes.

    >>> size(279_552), size(None)
    ('280 kB', '–')
    """
    if _missing(value) or value is None:
        return "–"
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:,.3g} TB"


def count(value: float) -> str:
    """Return a whole number with commas.

    >>> count(18971.0)
    '18,971'
    """
    return f"{value:,.0f}"


def markdown(text: str) -> str:
    r"""Return a text that GitHub shows literally, on one line, also in a list or a table.

    >>> print(markdown("a|b <i>*x* nDCG@10 @you"))
    a\|b &lt;i&gt;\*x\* nDCG@10 &#64;you
    """
    line = MARKDOWN.sub(
        r"\\\1", html.escape(" ".join(visible(text).split()), quote=False)
    )
    # Entities start no list, mention or link.
    line = re.sub(r"^(\d+)([.)])", lambda match: f"{match[1]}&#{ord(match[2])};", line)
    return re.sub(
        r"^[-+]|(?<!\w)@|(?<=\w):(?=//)|(?<=www)\.",
        lambda match: f"&#{ord(match[0])};",
        line,
    )


def latex(text: str) -> str:
    r"""Return a text for LaTeX.

    >>> latex("50_%")
    '50\\_\\%'
    """
    return "".join(LATEX.get(letter, letter) for letter in visible(text))


def cell(text: str) -> str:
    """Return a text that no spreadsheet runs as a formula.

    >>> cell("=1+1"), cell("plain")
    ("'=1+1", 'plain')
    """
    text = as_cell(visible(text))
    return "'" + text if FORMULA.match(text) else text


def _missing(value: float | None) -> bool:
    return value is None or math.isnan(value)
