"""What is drawn: colours that everybody tells apart, the same in every report or as declared; names and ticks."""

from __future__ import annotations

import re
from dataclasses import replace

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

BLOCK = '\n[[retrievers]]\nname = "{}"\nkind = "bm25"\nk1 = {}\n'


def luminance(color):
    return float(np.dot([0.2126, 0.7152, 0.0722], linear(color)))


def contrast(color, other):
    high, low = sorted((luminance(color), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_colour_stands_out_from_its_paper(scheme):
    paper = getattr(palette.PAPER_SHADE, scheme)
    assert (
        min(
            contrast(getattr(shade, scheme), paper)
            for shade in palette.RETRIEVER_SHADES
        )
        >= 3
    )
    assert (
        min(
            contrast(getattr(shade, scheme), paper)
            for shade in (palette.INK_SHADE, palette.MUTED_SHADE)
        )
        >= 4.5
    )


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
    """CIE 1976 differences of the first five colours, seen with each deficiency; a name stands beside every one."""
    colors = [
        lab(np.clip(np.array(MACHADO[kind]) @ linear(getattr(shade, scheme)), 0, 1))
        for shade in palette.RETRIEVER_SHADES[:5]
    ]
    distances = [
        np.linalg.norm(colors[i] - colors[j]) for i in range(5) for j in range(i)
    ]
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


def ran(folder, name, retrievers):
    return small.ran(folder, name=name, retrievers=retrievers, report=True)


A, B = BLOCK.format("a", 1.2), BLOCK.format("b", 0.5)


def test_a_retriever_looks_the_same_in_every_report_or_as_declared(tmp_path):
    """Under another name, among others; a declared colour is drawn on any screen, and is no part of what it is."""
    plain = ran(tmp_path, "plain", A + B)
    colors, again = (
        build_view(plain).colors,
        build_view(ran(tmp_path, "other", BLOCK.format("again", 1.2))).colors,
    )
    assert again["again"] == colors["a"] != colors["b"]
    declared = ran(tmp_path, "declared", A + 'color = "#101010"\n' + B)
    assert build_view(declared).colors == {"a": "#101010", "b": colors["b"]}
    assert declared.manifest.retrievers["a"] == plain.manifest.retrievers["a"]
    page = (declared.folder / "report.html").read_text(encoding="utf-8")
    (dark_color,) = re.findall(r'\[fill="#101010"\] \{ fill: (#\w{6}); \}', page)
    assert contrast(dark_color, palette.PAPER_SHADE.dark) >= 3
    for color, problem in (
        ("red", "'red' is not a colour"),
        ("#ffee00", "is too light to be seen on white paper"),
    ):
        with pytest.raises(InputError, match=problem):
            ran(tmp_path, "refused", f'{A}color = "{color}"\n')
    first, *others = plain.manifest.resolved.retrievers
    tables = (
        {**first, "color": '#000000"] {} </style><script>'},
        *others,
    )  # as a manifest of somebody else
    manifest = replace(
        plain.manifest, resolved=replace(plain.manifest.resolved, retrievers=tables)
    )
    assert build_view(replace(plain, manifest=manifest)).colors["a"] in {
        shade.light for shade in palette.RETRIEVER_SHADES
    }


@pytest.mark.parametrize(
    ("points", "logarithmic", "expected"),
    [
        (
            {
                "bm25": (0.0, 0.55),
                "ada": (0.16, 0.13),
                "small": (0.32, 0.13),
                "large": (0.64, 0.13),
            },
            False,
            {"bm25": "left", "ada": "left", "small": "left", "large": "right"},
        ),
        (
            {
                "a": (0.0, 0.5),
                "named": (5.0, 0.3),
                "near": (5.3, 0.3),
                "z": (10.0, 0.1),
            },
            False,
            {"named": "right"},
        ),
        (
            {"first": (1.0, 0.5), "second": (1.0, 0.499), "third": (3.0, 0.1)},
            False,
            {"second": None},
        ),
        (
            {"n" * 90: (1.0, 0.5), "b": (2.0, 0.2)},
            False,
            {"n" * 90: None, "b": "right"},
        ),
        (
            {"a": (1.0, 0.5), "b": (10.0, 0.5), "c": (10_000.0, 0.5)},
            True,
            {"a": "left", "b": "left", "c": "right"},
        ),
    ],
    ids=[
        "at different prices",
        "beside another point",
        "on each other",
        "wider than the chart",
        "logarithmic",
    ],
)
def test_names_stand_where_there_is_room(points, logarithmic, expected):
    prices = [price for price, _ in points.values()]
    x, y = (
        Axis(min(prices), max(prices), 24.0, 510.0, logarithmic),
        Axis(0.0, 0.7, 260.0, 0.0),
    )
    sides = place_names(
        {
            name: (x.position(price), y.position(mean))
            for name, (price, mean) in points.items()
        },
        0.0,
        534.0,
    )
    assert {name: sides.get(name) for name in expected} == expected


@pytest.mark.parametrize("size", [0.004, 0.00004, 0.4, 30.0])
def test_no_two_ticks_of_a_difference_read_the_same(size):
    rows = [ForestRow("x", "x", size / 2, 0.0, size, 5, "")]
    drawn = svg_file(
        draw_figure(
            "f", "t", "d", lambda width: draw_forest({"": rows}, "m", None, width)
        )
    )
    ticks = re.findall(r">([+−]?[\d.,e]+)</text>", drawn)
    assert len(ticks) > 2
    assert len(set(ticks)) == len(ticks)
