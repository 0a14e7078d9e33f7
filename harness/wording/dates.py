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


def day_of(started: str) -> date | None:
    """Return the day of a time of a manifest; None if it is no time.

    >>> day_of("2026-11-27T12:00:00+00:00"), day_of("soon")
    (datetime.date(2026, 11, 27), None)
    """
    try:
        return date.fromisoformat(started[:10])
    except ValueError:
        return None


def date_text(started: str) -> str:
    """Return the day of a time of a manifest; the text itself if it is no time.

    >>> date_text("2026-11-27T12:00:00+00:00")
    '27 November 2026'
    """
    day = day_of(started)
    return started if day is None else f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def short_date_text(started: str) -> str:
    """Return the same without the year, and with three letters of the month.

    >>> short_date_text("2026-09-28T12:00:00+00:00")
    '28 Sep'
    """
    day = day_of(started)
    return started if day is None else f"{day.day} {MONTHS[day.month - 1][:3]}"
