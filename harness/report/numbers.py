"""Numbers for readers of a report."""

import math

from harness.english import p_text, with_minus_sign


def score_text(value: float | None) -> str:
    """Return a score with three decimals; a dash for None or NaN.

    >>> score_text(0.46154), score_text(None), score_text(-0.0001)
    ('0.462', '–', '0.000')
    """
    if _is_missing(value):
        return "–"
    text = f"{value:.3f}"
    return text.removeprefix("-") if float(text) == 0 else with_minus_sign(text)


def difference_text(value: float | None) -> str:
    """Return a difference with its sign.

    >>> difference_text(-0.0307), difference_text(0.2), difference_text(0.0)
    ('−0.031', '+0.200', '0.000')
    """
    if _is_missing(value):
        return "–"
    text = f"{value:+.3f}"
    return text[1:] if float(text) == 0 else with_minus_sign(text)


def interval_text(ends: tuple[float | None, float | None]) -> str:
    """Return an interval, or "not estimable".

    >>> interval_text((0.2, 0.41)), interval_text((None, None))
    ('0.200 to 0.410', 'not estimable')
    """
    if any(map(_is_missing, ends)):
        return "not estimable"
    return " to ".join(map(score_text, ends))


def difference_interval_text(ends: tuple[float | None, float | None]) -> str:
    """Return an interval of a difference, or "not estimable".

    >>> difference_interval_text((-0.01, 0.2))
    '−0.010 to +0.200'
    """
    if any(map(_is_missing, ends)):
        return "not estimable"
    return " to ".join(map(difference_text, ends))


def power_p_text(p: float | None) -> str:
    """Return a p-value with three digits, never as 0.

    >>> power_p_text(0.046875), power_p_text(1.5575e-9)
    ('0.0469', '1.56×10⁻⁹')
    >>> power_p_text(0.0), power_p_text(1.0)
    ('< 10⁻¹²', '1.00')
    """
    if p is None or math.isnan(p):
        return "–"
    return p_text(p)


def number_text(value: float | None) -> str:
    """Return a number with at most six digits; of a million or more, all of them.

    >>> number_text(51.5), number_text(20.0), number_text(None)
    ('51.5', '20', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    text = f"{value:,.6g}" if abs(value) < 999_999.5 else f"{value:,.0f}"
    return with_minus_sign(text)


def dollars_text(value: float | None) -> str:
    """Return an amount of money; an unknown price is not 0.

    >>> dollars_text(0.0), dollars_text(0.00004), dollars_text(12.3), dollars_text(None)
    ('$0', '$0.00004', '$12.30', 'unknown')
    """
    if value is None or math.isnan(value):
        return "unknown"
    if value == 0 or value >= 0.01:
        return f"${value:,.2f}" if value else "$0"
    decimals = 1 - math.floor(math.log10(value))
    return "$" + f"{value:.{decimals}f}".rstrip("0")


def milliseconds_text(value: float | None) -> str:
    """Return a duration given in milliseconds.

    >>> milliseconds_text(0.5), milliseconds_text(12.34)
    ('0.50 ms', '12.3 ms')
    >>> milliseconds_text(999.7), milliseconds_text(1500)
    ('1000 ms', '1.50 s')
    """
    if value is None or math.isnan(value):
        return "–"
    if value >= 1000:
        return seconds_text(value / 1000)
    if value < 1:
        return f"{value:.2f} ms"
    return f"{value:#.3g} ms".replace(". ", " ").replace("1.00e+03", "1000")


def milliseconds_number(value: float) -> str:
    """Return milliseconds without their unit, for a column.

    >>> milliseconds_number(9.51), milliseconds_number(2216.4)
    ('9.5', '2,216')
    >>> milliseconds_number(0.03)
    '<0.1'
    """
    if 0 < value < 0.05:
        return "<0.1"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def seconds_text(value: float | None) -> str:
    """Return a duration given in seconds.

    >>> seconds_text(0.0514), seconds_text(75.0), seconds_text(7300)
    ('51.4 ms', '1 min 15 s', '2 h 1 min')
    """
    if value is None or math.isnan(value):
        return "–"
    if value < 1:
        return milliseconds_text(value * 1000) if value else "0 s"
    if value < 60:
        return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
    minutes, seconds = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    return f"{minutes // 60} h {minutes % 60} min"


def byte_size_text(value: float | None) -> str:
    """Return a number of bytes.

    >>> byte_size_text(279_552), byte_size_text(999_700), byte_size_text(None)
    ('280 kB', '1 MB', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    amount = value
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 999.5:  # else three digits would round it to 1e+03
            return f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:,.3g} TB"


def sort_key(value: object) -> str:
    """Return a number as a table is sorted by it; "" for anything else.

    >>> sort_key(0.123456789), sort_key(180), sort_key("")
    ('0.12346', '180', '')
    """
    if not isinstance(value, int | float) or math.isnan(value):
        return ""
    return f"{value:.5g}"


def whole_number_text(value: float) -> str:
    """Return a whole number with commas.

    >>> whole_number_text(18971.0)
    '18,971'
    """
    return f"{value:,.0f}"


def _is_missing(value: float | None) -> bool:
    return value is None or math.isnan(value)
