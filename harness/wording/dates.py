"""Dates in words."""

from datetime import date

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
"""English in every locale."""


def date_text(started: str) -> str:
    """Return the day of a time of a manifest.

    >>> date_text("2026-11-27T12:00:00+00:00")
    '27 November 2026'
    """
    day = date.fromisoformat(started[:10])
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def short_date_text(started: str) -> str:
    """Return the day of a time of a manifest, without its year.

    >>> short_date_text("2026-09-28T12:00:00+00:00")
    '28 Sep'
    """
    day = date.fromisoformat(started[:10])
    return f"{day.day} {MONTHS[day.month - 1][:3]}"
