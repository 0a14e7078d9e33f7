"""Names beside the points of a chart: as many as have room, and none on another."""

from harness.report.axes import Plane, placed_names

PLANE = Plane(534, 260, 24, False)


def test_equal_qualities_at_different_prices_all_have_their_names():
    points = {"bm25": (0.0, 0.55), "ada": (0.16, 0.13), "small": (0.32, 0.13), "large": (0.64, 0.13)}
    assert placed_names(points, (0.05, 0.7), PLANE) == {
        "bm25": "left", "ada": "left", "small": "left", "large": "right",
    }  # fmt: skip


def test_a_name_that_would_lie_on_a_point_stands_on_its_other_side():
    points = {"a": (0.0, 0.5), "named": (5.0, 0.3), "near": (5.3, 0.3), "z": (10.0, 0.1)}
    assert placed_names(points, (0.0, 0.6), PLANE)["named"] == "right"


def test_points_that_lie_on_each_other_have_one_name():
    points = {"first": (1.0, 0.5), "second": (1.0, 0.499), "third": (3.0, 0.1)}
    assert set(placed_names(points, (0.0, 0.6), PLANE)) == {"first", "third"}


def test_a_name_that_is_wider_than_the_chart_is_left_to_the_legend():
    assert placed_names({"n" * 90: (1.0, 0.5), "b": (2.0, 0.2)}, (0.0, 0.6), PLANE) == {"b": "right"}


def test_prices_far_apart_are_placed_on_their_logarithms():
    points = {"a": (1.0, 0.5), "b": (10.0, 0.5), "c": (10_000.0, 0.5)}
    assert set(placed_names(points, (0.0, 0.6), PLANE._replace(logarithmic=True))) == {"a", "b", "c"}
