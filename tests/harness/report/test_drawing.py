"""Colours, names and ticks of the charts."""

from __future__ import annotations

import re
from typing import get_args

import numpy as np
import pytest

from harness.evaluation.board import Standing
from harness.report import palette
from harness.report.charts.axes import Axis, axis_ends
from harness.report.charts.figure import draw_figure, svg_file
from harness.report.charts.forest import ForestRow, draw_forest
from harness.report.charts.names import ABOVE, BELOW, BESIDE, place_names
from harness.report.charts.strip import fit_strip_axis
from harness.wording.verdicts import STANDING_WORDS
from retrievers.errors import InputError
from tests.support import small


def luminance(color):
    return float(np.dot([0.2126, 0.7152, 0.0722], linear(color)))


def contrast(first, second):
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("paper", ["background", "panel"])
@pytest.mark.parametrize("text", ["ink", "muted", "good", "worse", "undecided"])
def test_every_text_can_be_read_on_its_paper(scheme, paper, text):
    """WCAG 2.2, 1.4.3: at least 4.5 : 1; 5.7 is the lowest that the page has."""
    shades = palette.PAGE_SHADES
    colors = (getattr(shades[name], scheme) for name in (text, paper))
    assert contrast(*colors) >= 5.6


@pytest.mark.parametrize("standing", get_args(Standing))
def test_every_standing_has_the_colour_of_its_state_and_a_word(standing):
    assert palette.standing_shade(standing) in palette.PAGE_SHADES.values()
    assert STANDING_WORDS[standing][1]


def test_a_colour_of_a_retriever_is_no_key(tmp_path):
    with pytest.raises(InputError, match="color"):
        small.ran(tmp_path, retrievers=small.BM25 + 'color = "#101010"\n')


def linear(color):
    parts = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


@pytest.mark.parametrize(
    ("points", "logarithmic", "expected"),
    [
        pytest.param(
            {
                "bm25": (0.0, 0.55),
                "ada": (0.16, 0.13),
                "small": (0.32, 0.13),
                "large": (0.64, 0.13),
            },
            False,
            {"bm25": "start", "ada": "start", "small": "start", "large": "end"},
            id="at different prices",
        ),
        pytest.param(
            {
                "a": (0.0, 0.5),
                "named": (5.0, 0.3),
                "near": (5.3, 0.3),
                "z": (10.0, 0.1),
            },
            False,
            {"named": "end"},
            id="beside another point",
        ),
        pytest.param(
            {"first": (1.0, 0.5), "second": (1.0, 0.499), "third": (3.0, 0.1)},
            False,
            {"second": None},
            id="on each other",
        ),
        pytest.param(
            {"n" * 90: (1.0, 0.5), "b": (2.0, 0.2)},
            False,
            {"n" * 90: None, "b": "end"},
            id="wider than the chart",
        ),
        pytest.param(
            {"a": (1.0, 0.5), "b": (10.0, 0.5), "c": (10_000.0, 0.5)},
            True,
            {"a": "start", "b": "start", "c": "end"},
            id="logarithmic",
        ),
    ],
)
def test_names_are_placed_beside_points_with_room(points, logarithmic, expected):
    prices = [price for price, _ in points.values()]
    price_axis = Axis(min(prices), max(prices), 24.0, 510.0, logarithmic)
    mean_axis = Axis(0.0, 0.7, 260.0, 0.0)
    centres = {
        name: (price_axis.position(price), mean_axis.position(mean))
        for name, (price, mean) in points.items()
    }
    places = place_names(centres, 0.0, 534.0, (ABOVE,))
    anchors = {name: place.anchor for name, place in places.items()}
    assert {name: anchors.get(name) for name in expected} == expected


def test_a_name_between_two_points_is_beside_or_below_its_own():
    # In a column, 15 and 23 pixels apart: above the third is also below the second.
    centres = {"first": (500.0, 10.0), "second": (500.0, 25.0), "third": (500.0, 48.0)}
    places = place_names(centres, 0.0, 534.0, (BESIDE, ABOVE, BELOW))
    assert {name: place.baseline for name, place in places.items()} == {
        "first": BESIDE,
        "second": BESIDE,
        "third": BESIDE,
    }
    above = place_names(centres, 0.0, 534.0, (ABOVE, BELOW))
    assert above["first"].baseline == ABOVE
    assert "second" not in above
    assert above["third"].baseline == BELOW


@pytest.mark.parametrize("size", [0.004, 0.00004, 0.4, 30.0])
def test_no_two_ticks_of_a_difference_read_the_same(size):
    rows = [ForestRow("x", size / 2, 0.0, size, 5, "")]
    figure = draw_figure(
        "f", "t", "d", lambda width: draw_forest({"": rows}, "m", None, width)
    )
    ticks = re.findall(r">([+−]?[\d.,e]+)</text>", svg_file(figure))
    assert len(ticks) > 2
    assert len(set(ticks)) == len(ticks)


@pytest.mark.parametrize("values", [[0.15, 0.1 + 0.05], [0.0, 5e-17], [1e30, 1e30]])
def test_an_axis_of_values_that_float_noise_separates_has_ticks(values):
    axis = Axis(*axis_ends(values, bounded=False), 0.0, 100.0)
    assert len(set(axis.ticks(44))) >= 3
    assert len({tick.value for tick in fit_strip_axis(values, None).ticks}) >= 2
