"""The progress of a stage."""

from __future__ import annotations

from typing import NamedTuple

from retrievers.meter import Meter

STEP_UNITS = {"comparing": "pairs"}
"""Units of the stages that count no texts."""
StageKey = tuple[str, str]
"""Retriever and stage; the retriever is "" if the stage is for all."""


class StageProgress(NamedTuple):
    """The progress of a stage."""

    texts: int
    """Texts so far, or steps of a stage that has no texts."""
    expected: int | None
    """How many there will be; None if unknown."""
    cached: int
    """How many of the texts came from the cache."""
    seconds: float
    """Seconds since the stage began, or since a model was loaded in it."""
    spent: float
    """Dollars of the whole run so far."""
    unit: str = ""
    """The unit, unless texts are counted."""

    def share(self) -> str:
        """Texts done, of those expected; without a count the elapsed time.

        >>> StageProgress(500, 1000, 0, 40.0, 0.0).share()
        '500 of 1,000'
        >>> StageProgress(0, None, 0, 40.0, 0.0).share()
        'for 0:40'
        >>> StageProgress(412, 1330, 0, 4.0, 0.0, "pairs").share()
        '412 of 1,330 pairs'
        """
        if not self.texts and not self.expected:
            return f"for {_clock(self.seconds)}"
        if not self.expected:
            return f"{self.texts:,}"
        return f"{self.texts:,} of {self.expected:,} {self.unit}".rstrip()

    def details(self) -> list[str]:
        """Rate, remaining time if the total is known, cached share, dollars.

        >>> StageProgress(500, 1000, 100, 40.0, 0.0123).details()
        ['10/s', '0:50 left', '20 % cached', '$0.0123']
        >>> StageProgress(0, None, 100, 40.0, 0.0).details()  # no texts
        ['100 cached']
        """
        uncached = max(0, self.texts - self.cached)
        rate = uncached / self.seconds if self.seconds > 0 else 0.0
        details: list[str] = []
        if rate:
            details.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
            if self.expected and self.expected > self.texts:
                details.append(f"{_clock((self.expected - self.texts) / rate)} left")
        if self.cached and not self.texts:
            details.append(f"{self.cached:,} cached")
        elif self.cached and not uncached:
            details.append("all cached")
        elif self.cached:
            details.append(f"{100 * self.cached / self.texts:.0f} % cached")
        if self.spent:
            dollars = f"{self.spent:.4f}" if self.spent < 1 else f"{self.spent:,.2f}"
            details.append(f"${dollars}")
        return details


def read_stage_progress(meter: Meter, stage: str, seconds: float) -> StageProgress:
    """Return the progress of a stage after some seconds."""
    totals = meter.totals(stage)
    return StageProgress(
        texts=int(totals.counts.get("texts", 0)) or totals.steps,
        expected=totals.total,
        cached=int(totals.counts.get("cached", 0)),
        seconds=seconds,
        spent=meter.budget.spent,
        unit=STEP_UNITS.get(stage, ""),
    )


def stage_label(key: StageKey) -> str:
    """A stage with its retriever; the stage alone if it is for all of them.

    >>> stage_label(("bm25", "search")), stage_label(("", "scoring"))
    ('bm25: search', 'scoring')
    """
    return ": ".join(filter(None, key))


def _clock(total_seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> _clock(50), _clock(3725)
    ('0:50', '1:02:05')
    """
    minutes, seconds = divmod(round(total_seconds), 60)
    if minutes < 60:
        return f"{minutes}:{seconds:02}"
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
