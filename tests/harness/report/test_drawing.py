"""Colours, names and ticks of the charts."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from harness.report import palette
from harness.report.charts.axes import Axis
from harness.report.charts.figure import draw_figure, svg_file
from harness.report.charts.forest import ForestRow, draw_forest
from harness.report.charts.names import place_names
from harness.report.view import build_view
from retrievers.errors import InputError
from tests.support import small

RETRIEVER = '\n[[retrievers]]\nname = "{}"\nkind = "bm25"\nk1 = {}\n'


def luminance(color):
    return float(np.dot([0.2126, 0.7152, 0.0722], linear(color)))


def contrast(first, second):
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_colour_stands_out_from_its_paper(scheme):
    paper = getattr(palette.PAPER_SHADE, scheme)
    for shade in palette.RETRIEVER_SHADES:
        assert contrast(getattr(shade, scheme), paper) >= 3
    for shade in (palette.INK_SHADE, palette.MUTED_SHADE):
        assert contrast(getattr(shade, scheme), paper) >= 4.5


MACHADO = {
    # Machado, Oliveira & Fernandes (2009), severity 1.0, on linear RGB.
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


@pytest.mark.parametrize("kind", MACHADO)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_retrievers_differ_for_colour_blind_readers(kind, scheme):
    """CIE 1976 differences of the first five colours, seen with each deficiency."""
    matrix = np.array(MACHADO[kind])
    colors = [
        lab(np.clip(matrix @ linear(getattr(shade, scheme)), 0, 1))
        for shade in palette.RETRIEVER_SHADES[:5]
    ]
    distances = [np.linalg.norm(a - b) for a, b in combinations(colors, 2)]
    assert min(distances) >= 20


def linear(color):
    parts = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    xyz = (
        np.array(
            [
                [0.4124, 0.3576, 0.1805],
                [0.2126, 0.7152, 0.0722],
                [0.0193, 0.1192, 0.9505],
            ]
        )
        @ rgb
    )
    x, y, z = np.cbrt(xyz / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def run_with_report(folder, name, retrievers):
    return small.ran(folder, name=name, retrievers=retrievers, report=True)


RETRIEVER_A = RETRIEVER.format("a", 1.2)
RETRIEVER_B = RETRIEVER.format("b", 0.5)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The results of two retrievers without declared colours."""
    folder = tmp_path_factory.mktemp("plain")
    return run_with_report(folder, "plain", RETRIEVER_A + RETRIEVER_B)


def test_a_retriever_has_the_same_colour_under_another_name(plain, tmp_path):
    colors = build_view(plain).colors
    other = run_with_report(tmp_path, "other", RETRIEVER.format("again", 1.2))
    assert build_view(other).colors["again"] == colors["a"]
    assert colors["a"] != colors["b"]


@pytest.fixture(scope="module")
def declared(tmp_path_factory):
    """The same with a declared colour."""
    folder = tmp_path_factory.mktemp("declared")
    retrievers = RETRIEVER_A + 'color = "#101010"\n' + RETRIEVER_B
    return run_with_report(folder, "declared", retrievers)


def test_a_declared_colour_is_used(plain, declared):
    expected = {"a": "#101010", "b": build_view(plain).colors["b"]}
    assert build_view(declared).colors == expected


def test_a_declared_colour_is_no_part_of_the_identity(plain, declared):
    outcome = declared.manifest.retrievers["a"]
    assert outcome == plain.manifest.retrievers["a"]


def test_a_declared_colour_has_a_counterpart_on_a_dark_screen(declared):
    page = (declared.folder / "report.html").read_text(encoding="utf-8")
    (dark_color,) = re.findall(r'\[fill="#101010"\] \{ fill: (#\w{6}); \}', page)
    assert contrast(dark_color, palette.PAPER_SHADE.dark) >= 3


@pytest.mark.parametrize(
    ("color", "problem"),
    [
        ("red", "'red' is not a colour"),
        ("#ffee00", "is too light to be seen on white paper"),
    ],
)
def test_a_colour_that_cannot_be_seen_is_refused(tmp_path, color, problem):
    with pytest.raises(InputError, match=problem):
        run_with_report(tmp_path, "refused", f'{RETRIEVER_A}color = "{color}"\n')


def test_a_colour_of_a_foreign_manifest_does_not_get_into_the_style_sheet(plain):
    first, *others = plain.manifest.resolved.retrievers
    hostile = {**first, "color": '#000000"] {} </style><script>'}
    resolved = replace(plain.manifest.resolved, retrievers=(hostile, *others))
    manifest = replace(plain.manifest, resolved=resolved)
    color = build_view(replace(plain, manifest=manifest)).colors["a"]
    assert color in {shade.light for shade in palette.RETRIEVER_SHADES}


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
            {"bm25": "left", "ada": "left", "small": "left", "large": "right"},
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
            {"named": "right"},
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
            {"n" * 90: None, "b": "right"},
            id="wider than the chart",
        ),
        pytest.param(
            {"a": (1.0, 0.5), "b": (10.0, 0.5), "c": (10_000.0, 0.5)},
            True,
            {"a": "left", "b": "left", "c": "right"},
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
    sides = place_names(centres, 0.0, 534.0)
    assert {name: sides.get(name) for name in expected} == expected


@pytest.mark.parametrize("size", [0.004, 0.00004, 0.4, 30.0])
def test_no_two_ticks_of_a_difference_read_the_same(size):
    rows = [ForestRow("x", "x", size / 2, 0.0, size, 5, "")]
    figure = draw_figure(
        "f", "t", "d", lambda width: draw_forest({"": rows}, "m", None, width)
    )
    ticks = re.findall(r">([+−]?[\d.,e]+)</text>", svg_file(figure))
    assert len(ticks) > 2
    assert len(set(ticks)) == len(ticks)
