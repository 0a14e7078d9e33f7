"""How retrievers are drawn: the same in every report, told apart by everybody, or as their table declares."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import harness
from harness.report import text
from harness.report.view import view_of
from retrievers.errors import InputError
from tests.support import small

BLOCK = '\n[[retrievers]]\nname = "{}"\nkind = "bm25"\nk1 = {}\n'


def luminance(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return float(
        np.dot([0.2126, 0.7152, 0.0722], [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts])
    )


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_every_colour_stands_out_from_its_paper():
    for shade in text.SERIES:
        assert contrast(shade.light, text.PAPER.light) >= 3
        assert contrast(shade.dark, text.PAPER.dark) >= 3
    for shade in (text.INK, text.MUTED):
        assert contrast(shade.light, text.PAPER.light) >= 4.5
        assert contrast(shade.dark, text.PAPER.dark) >= 4.5


MACHADO = {
    # Machado, Oliveira & Fernandes (2009), severity 1.0, on linear RGB.
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


@pytest.mark.parametrize("kind", MACHADO)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_retrievers_differ_for_colour_blind_readers(kind, scheme):
    """CIE 1976 differences of the first five colours, seen with each deficiency; a name stands beside every one."""
    seen = [lab(np.clip(np.array(MACHADO[kind]) @ linear(getattr(shade, scheme)), 0, 1)) for shade in text.SERIES[:5]]
    apart = [np.linalg.norm(seen[i] - seen[j]) for i in range(5) for j in range(i)]
    assert min(apart) >= 20


def linear(color):
    parts = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ rgb
    x, y, z = np.cbrt(xyz / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_ten_retrievers_have_ten_colours_and_more_share_them():
    names = [f"r{i}" for i in range(40)]
    for few in (names[:10], names):
        colors = text.colors_of({name: f"identity of {name}" for name in few})
        assert list(colors) == few
        assert Counter(Counter(colors.values()).values()) == {len(few) // 10: 10}


def test_a_retriever_looks_the_same_in_every_report(tmp_path):
    """Under another name, in another order, among others; as long as nobody whose name comes first has its place."""
    first = small.experiment(
        tmp_path / "x", name="x", retrievers=BLOCK.format("a", 1.2) + BLOCK.format("z", 0.5), report=True
    )
    second = small.experiment(tmp_path / "y", name="y", retrievers=BLOCK.format("again", 1.2), report=True)
    views = [view_of(harness.run(path, harness.Options(results=tmp_path / "results"))) for path in (first, second)]
    assert views[0].colors["a"] == views[1].colors["again"]
    assert views[0].colors["a"] != views[0].colors["z"]


def ran(folder, name, retrievers):
    return small.ran(folder, name=name, retrievers=retrievers, report=True)


def test_a_declared_colour_is_drawn_on_any_screen_and_is_no_part_of_what_a_retriever_is(tmp_path):
    plain = view_of(ran(tmp_path, "plain", BLOCK.format("a", 1.2) + BLOCK.format("b", 0.5)))
    declared = ran(tmp_path, "declared", BLOCK.format("a", 1.2) + 'color = "#101010"\n' + BLOCK.format("b", 0.5))
    colors = view_of(declared).colors
    assert (colors["a"], colors["b"]) == ("#101010", plain.colors["b"])
    assert declared.manifest.retrievers["a"] == plain.manifest.retrievers["a"]
    shown = (declared.folder / "report.html").read_text(encoding="utf-8")
    (twin,) = re.findall(r'\[fill="#101010"\] \{ fill: (#\w{6}); \}', shown)
    assert contrast(twin, text.PAPER.dark) >= 3


@pytest.mark.parametrize(
    ("color", "message"), [("red", "'red' is not a colour"), ("#ffee00", "is too light to be seen on white paper")]
)
def test_a_colour_that_cannot_be_drawn_is_refused(tmp_path, color, message):
    with pytest.raises(InputError, match=message):
        ran(tmp_path, "refused", BLOCK.format("a", 1.2) + f'color = "{color}"\n')


def test_a_manifest_brings_nothing_but_a_colour_into_the_style_sheet(tmp_path):
    results = ran(tmp_path, "hostile", BLOCK.format("a", 1.2) + BLOCK.format("b", 0.5))
    resolved = results.manifest.resolved
    first, *others = resolved.retrievers
    tables = ({**first, "color": '#000000"] {} </style><script>'}, *others)
    manifest = replace(results.manifest, resolved=replace(resolved, retrievers=tables))
    assert view_of(replace(results, manifest=manifest)).colors["a"] in {shade.light for shade in text.SERIES}
