"""Names beside the points of a chart: as many as have room, and none on another."""

import pytest

from harness.report.axes import Axis, placed_names


@pytest.mark.parametrize(
    ("points", "logarithmic", "placed"),
    [
        ({"bm25": (0.0, 0.55), "ada": (0.16, 0.13), "small": (0.32, 0.13), "large": (0.64, 0.13)}, False,
         {"bm25": "left", "ada": "left", "small": "left", "large": "right"}),
        ({"a": (0.0, 0.5), "named": (5.0, 0.3), "near": (5.3, 0.3), "z": (10.0, 0.1)}, False, {"named": "right"}),
        ({"first": (1.0, 0.5), "second": (1.0, 0.499), "third": (3.0, 0.1)}, False, {"second": None}),
        ({"n" * 90: (1.0, 0.5), "b": (2.0, 0.2)}, False, {"n" * 90: None, "b": "right"}),
        ({"a": (1.0, 0.5), "b": (10.0, 0.5), "c": (10_000.0, 0.5)}, True, {"a": "left", "b": "left", "c": "right"}),
    ],
    ids=["at different prices", "beside another point", "on each other", "wider than the chart", "logarithmic"],
)  # fmt: skip
def test_names_stand_where_there_is_room(points, logarithmic, placed):
    prices = [price for price, _ in points.values()]
    x, y = Axis(min(prices), max(prices), 24.0, 510.0, logarithmic), Axis(0.0, 0.7, 260.0, 0.0)
    found = placed_names({name: (x.at(price), y.at(mean)) for name, (price, mean) in points.items()}, 0.0, 534.0)
    assert {name: found.get(name) for name in placed} == placed
