"""How far a stage is."""

from __future__ import annotations

from typing import NamedTuple

from retrievers.meter import Meter

STEP_UNITS = {"comparing": "pairs"}
"""What is counted in a stage that treats no texts, where it has a name."""


StageKey = tuple[str, str]
"""Retriever and stage."""


class StageProgress(NamedTuple):
    """How far a stage is."""

    texts: int
    """Texts, or steps of what treats none."""
    expected: int | None
    cached: int
    seconds: float
    spent: float
    """Dollars of the whole run so far."""
    unit: str = ""
    """What is counted, where it is not texts and has a name."""

    def share(self) -> str:
        """Texts done, of those expected; the time that has passed where nothing is counted.

        >>> StageProgress(500, 1000, 0, 40.0, 0.0).share(), StageProgress(0, None, 0, 40.0, 0.0).share()
        ('500 of 1,000', 'for 0:40')
        >>> StageProgress(412, 1330, 0, 4.0, 0.0, "pairs").share()
        '412 of 1,330 pairs'
        """
        if not self.texts and not self.expected:
            return f"for {_clock(self.seconds)}"
        return f"{self.texts:,}" + (
            f" of {self.expected:,} {self.unit}".rstrip() if self.expected else ""
        )

    def details(self) -> list[str]:
        """Rate, remaining time where it is known how much there is, cached share, dollars.

        >>> StageProgress(500, 1000, 100, 40.0, 0.0123).details()
        ['10/s', '0:50 left', '20 % cached', '$0.0123']
        >>> StageProgress(0, None, 100, 40.0, 0.0).details()  # no texts
        ['100 cached']
        """
        made = max(0, self.texts - self.cached)
        rate = made / self.seconds if self.seconds > 0 else 0.0
        details = []
        if rate:
            details.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
            if self.expected and self.expected > self.texts:
                details.append(f"{_clock((self.expected - self.texts) / rate)} left")
        if self.cached and not self.texts:
            details.append(f"{self.cached:,} cached")
        elif self.cached:
            details.append(
                "all cached"
                if not made
                else f"{100 * self.cached / self.texts:.0f} % cached"
            )
        if self.spent:
            details.append(
                f"${self.spent:.4f}" if self.spent < 1 else f"${self.spent:,.2f}"
            )
        return details


def read_stage_progress(meter: Meter, stage: str, seconds: float) -> StageProgress:  # noqa: D103
    totals = meter.totals(stage)
    texts, cached = (
        int(totals.counts.get("texts", 0)) or totals.steps,
        int(totals.counts.get("cached", 0)),
    )
    return StageProgress(
        texts,
        totals.total,
        cached,
        seconds,
        meter.budget.spent,
        STEP_UNITS.get(stage, ""),
    )


def stage_label(key: StageKey) -> str:
    """A stage by its retriever; of what is done for all of them together, the stage alone.

    >>> stage_label(("bm25", "search")), stage_label(("", "scoring"))
    ('bm25: search', 'scoring')
    """
    return ": ".join(filter(None, key))


def _clock(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> _clock(50), _clock(3725)
    ('0:50', '1:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    return (
        f"{minutes}:{rest:02}"
        if minutes < 60
        else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
    )
