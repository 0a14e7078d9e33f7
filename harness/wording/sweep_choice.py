"""The choice of a sweep in words."""

from __future__ import annotations

from harness.english import (
    join_names,
    p_relation,
    p_text,
    percent_text,
    with_minus_sign,
)
from harness.evaluation.evaluation import SweepChoice
from harness.stats.settings import Settings

MAX_ALIKE_NAMES = 3
"""Configurations up to which all are named."""


def sweep_sentence(choice: SweepChoice, settings: Settings) -> str:
    """Say by how much the chosen configuration gains, and how sure that is."""
    level = settings.alpha / 2
    gain = f"{choice.chosen} scores {_signed(choice.gain)} against {choice.default}"
    if choice.expected is not None:
        expected = with_minus_sign(f"{round(choice.expected, 4) + 0.0:+.2g}")
        spread = ""
        if choice.expected_error is not None:
            spread = f", standard error {choice.expected_error:.2g}"
        gain += f"; on new queries expect {expected} (cross-fitted{spread})"
    if choice.low is not None:
        confidence = f"{percent_text(1 - level)} % confidence"
        gain += f"; its true gain is above {_signed(choice.low)} with {confidence}"
    p = p_relation(p_text(choice.p_value))
    return f"{gain}; p {p} by the max-T test (one-sided, level {level:.3g})."


def _signed(number: float) -> str:
    """Return a number with its sign; float noise below 0 has no minus."""
    return with_minus_sign(f"{round(number, 4) + 0.0:+.4f}")


def alike_sentence(choice: SweepChoice) -> str:
    """Return which configurations may be as good as the best, and the cheapest.

    None is the cheapest if several cost the same. A default with a higher mean is not
    among them; "" if none is left.
    """
    others = [name for name in choice.alike if name != choice.chosen]
    if not others:
        return f"{choice.chosen} is shown to differ from every other configuration."
    is_below_default = choice.gain <= 0
    if is_below_default:
        others = [name for name in others if name != choice.default]
    if not others:
        return ""
    names = join_names(others)
    if len(others) > MAX_ALIKE_NAMES:
        names = f"{len(others)} other configurations"
    sentence = f"{names} may be as good as {choice.chosen}"
    if is_below_default:
        sentence += f" (the best besides {choice.default})"
    if choice.cheapest is None:
        return f"{sentence}."
    if choice.cheapest == choice.chosen:
        return f"{sentence}, the cheapest of them."
    return f"{sentence}; {choice.cheapest} is the cheapest."


def edge_sentence(choice: SweepChoice) -> str:
    """Return where the highest mean is at the edge of the grid; "" if nowhere."""
    if not choice.edges:
        return ""
    edges = [
        f"the {'largest' if edge.is_largest else 'smallest'} {edge.axis} tried "
        f"({edge.value})"
        for edge in choice.edges
    ]
    return f"The highest mean has {join_names(edges)}: try values beyond."
