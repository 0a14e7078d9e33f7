"""The report's files: what they say, that they are safe, and that they rest on the results folder alone."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import math
import re
import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness import records
from harness.evaluation.costs import retriever_costs
from harness.pages import visible_text
from harness.report.escape import escape_markdown, escape_spreadsheet_cell
from harness.report.numbers import power_p_text
from harness.report.page import first_screen_html, report_page
from harness.report.paper import citation_texts
from harness.report.sections import decision, page_budget, queries
from harness.report.sections.page_budget import unpack_json
from harness.report.view import build_view
from harness.report.write import write_report
from retrievers.errors import InputError
from tests.support import hostile, small

WILD = st.text(st.characters(), max_size=60) | st.sampled_from(hostile.ATTACKS)


@pytest.fixture(scope="module")
def results(finished):
    """A small experiment of three retrievers and six queries."""
    return harness.open_results(finished.folder)


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """An experiment whose every string is hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    return harness.run(
        hostile.write(folder), harness.RunOptions(results=folder / "results")
    )


def page_of(results):
    return (results.folder / "report.html").read_text(encoding="utf-8")


def hashed(code):
    return (
        f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"
    )


@pytest.mark.parametrize("fixture", ["results", "attacked"])
def test_the_policy_allows_exactly_the_pages_own_scripts_and_every_link_has_its_target(
    fixture, request
):
    page = page_of(request.getfixturevalue(fixture))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1].replace(
        "&#39;", "'"
    )
    scripts = re.findall(
        r"<script([^>]*)>(.*?)</script", page, re.DOTALL | re.IGNORECASE
    )
    (style,) = re.findall(r"<style[^>]*>(.*?)</style", page, re.DOTALL | re.IGNORECASE)
    (code,) = [code for kind, code in scripts if "type=" not in kind]
    assert all(
        'type="text/plain"' in kind for kind, script in scripts if script != code
    )
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy
    assert (
        f"script-src {hashed(code)};" in policy
        and f"style-src {hashed(style)};" in policy
    )
    tags = re.sub(r'<(script|style)[^>]*>.*?</\1|"[^"]*"', "", page, flags=re.DOTALL)
    assert not re.search(
        r"<(img|iframe|object|embed|base)\b|<[^<>]*\s(on\w+|style)=", tags
    )
    ids, links = (
        set(re.findall(rf'{key}([\w-]+)"', page)) for key in (' id="', 'href="#')
    )
    assert len(links) > 5
    assert links | {"integrity"} <= ids  # where a warning of the first screen leads


def test_a_report_of_the_same_folder_is_the_same_and_one_that_cannot_be_written_is_one_message(
    results, tmp_path
):
    names = [
        "report.html",
        "report.md",
        "tables/leaderboard.tex",
        "figures/leaderboard.svg",
    ]
    before = [(results.folder / name).read_bytes() for name in names]
    write_report(records.read_results(results.folder))
    assert [(results.folder / name).read_bytes() for name in names] == before
    copy = shutil.copytree(results.folder, tmp_path / "blocked")
    (copy / "report.md").unlink()
    (copy / "report.md").mkdir()
    with pytest.raises(
        InputError, match=r"report\.md: cannot be written: .*free disk space"
    ):
        write_report(records.read_results(copy))


def test_what_is_hostile_stays_text_in_markdown_figures_latex_and_spreadsheets(
    attacked,
):
    source = (attacked.folder / "report.md").read_text(encoding="utf-8")
    assert "<script" not in source and "<img" not in source
    assert not re.search(r"(?<!\\)\]\(javascript:", source)
    tables = re.findall(r"(?:^\|.*\n)+", source, re.MULTILINE)
    assert len(tables) > 5
    for table in tables:  # no cell was broken open
        assert (
            len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1
        ), table
    drawn = sorted((attacked.folder / "figures").glob("*.svg"))
    assert len(drawn) > 1
    for file in drawn:
        root = ET.fromstring(file.read_text(encoding="utf-8"))
        assert [child.tag.rpartition("}")[2] for child in root][:2] == ["title", "desc"]
        assert not list(root.iter("{http://www.w3.org/2000/svg}script"))
        assert f"(figures/{file.name})" in source
    for file in (attacked.folder / "tables").glob("*.tex"):
        latex = file.read_text(encoding="utf-8").replace("\\{", "").replace("\\}", "")
        assert latex.count("{") == latex.count("}")
        assert r"\toprule" in latex and (
            r"\textbf{" in latex or file.stem != "leaderboard"
        )
    sheet = (attacked.folder / "tables" / "queries.csv").read_text(encoding="utf-8")
    rows = list(csv.reader(io.StringIO(sheet.removeprefix("\ufeff"))))
    assert (sheet[0], len(rows)) == ("\ufeff", 21)
    assert not [
        cell
        for row in rows[1:]
        for cell in row[:2]
        if cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    ]
    assert all(float(cell) >= 0 for row in rows[1:] for cell in row[2:])


@given(WILD)
def test_any_string_is_fit_for_xml_a_spreadsheet_and_a_cell_of_markdown(text):
    visible, line = visible_text(text), escape_markdown(text)
    assert visible_text(visible) == visible
    ET.fromstring(f"<a>{visible.replace('&', '&amp;').replace('<', '&lt;')}</a>")
    assert not escape_spreadsheet_cell(text).lstrip().startswith(("=", "+", "-", "@"))
    assert len(line.splitlines()) <= 1 and "<" not in line
    assert not re.search(r"(?<!\\)(?:\\\\)*\|", line)


def test_a_p_is_never_shown_as_zero():
    assert not [n for n in range(400) if re.fullmatch(r"[0.]+", power_p_text(10.0**-n))]


TWINS = small.BM25 + '[[retrievers]]\nname = "twin"\nkind = "bm25"\n'
ALIKE = "bm25 and twin rank identically on these queries"


@pytest.mark.parametrize(
    ("more", "retrievers", "sentences"),
    [
        (
            "",
            small.BM25,
            [
                "Add a second [[retrievers]]",
                "No query fails: for each, bm25 finds a relevant document among the first 3 hits.",
            ],
        ),
        (
            "",
            TWINS,
            [
                ALIKE,
                "No query fails: for each, at least two retrievers find a relevant document",
            ],
        ),
        ('baseline = "hashing"', small.RETRIEVERS, ["ahead of hashing"]),
        ("[statistics]\nmargin = 0.5", TWINS, [ALIKE]),
        (
            "[relevance]\ngain = 'exponential'\nideal = 'retrieved'",
            small.RETRIEVERS,
            ["however much was missed"],
        ),
    ],
)
def test_every_kind_of_experiment_has_a_report(tmp_path, more, retrievers, sentences):
    results = small.ran(tmp_path, more=more, retrievers=retrievers, report=True)
    assert all(sentence in page_of(results) for sentence in sentences)
    assert (results.folder / "report.md").stat().st_size > 1000
    if retrievers == small.BM25:
        texts, interval = (
            citation_texts(build_view(results)),
            r"\(95 % interval 0\.\d{3} to [01]\.\d{3}\)",
        )
        assert re.fullmatch(
            rf"On 6 queries, bm25 has a mean nDCG@3 of 0\.\d{{3}} {interval}\.",
            texts["Sentence"],
        )
        assert "nDCG@3 of 1 retriever over 6 queries" in texts["BibTeX"]


def test_the_numbers_of_the_first_screen_and_of_a_notebook_are_those_of_the_tables(
    results,
):
    view, html = build_view(results), results._repr_html_()
    assert html == first_screen_html(results) and "no difference is shown" in html
    assert html.count('<tr role="row"') == 5  # a head, three retrievers, the axis
    assert not re.search("<script|<link|http|href", html)
    page = page_of(results)
    for text in (
        "Undecided: no difference is shown between the 3 retrievers",
        "6 queries are too few to show one",
        'title="linear gain"',
        "over the 5 hits kept",
    ):
        assert text in page  # which nDCG it is; AP and RR have no cutoff
    summary = results.summary.set_index(["retriever", "measure"])["mean"]
    pairs = results.comparisons[
        results.comparisons["measure"] == view.primary
    ].set_index(["a", "b"])
    leader, *others = decision.decision_section(view).context["screen"].board.rows
    assert (leader.retriever, leader.difference) == (view.ranked[0], None)
    assert leader.mean == summary[leader.retriever, view.primary]
    for row in others:
        assert row.mean == summary[row.retriever, view.primary]
        key = (leader.retriever, row.retriever)
        sign, pair = (
            (1, pairs.loc[key]) if key in pairs.index else (-1, pairs.loc[key[::-1]])
        )
        assert (
            row.difference
            == sign * pair["mean_difference"]
            == pytest.approx(leader.mean - row.mean, abs=1e-12)
        )
        ends = [pair["ci_low"], pair["ci_high"]]
        assert [row.low, row.high] == (
            ends if sign > 0 else [-end for end in ends[::-1]]
        )
        counts = (pair["wins"], pair["ties"], pair["losses"])
        assert (row.wins, row.ties, row.losses) == (
            counts[::-1] if sign > 0 else counts
        )
        assert row.p == pair["p_adjusted"]


def test_beyond_the_budget_the_evidence_is_thinned_and_says_so(attacked, monkeypatch):
    complete = queries.queries_section(build_view(attacked))
    assert complete.context["whole"]
    monkeypatch.setattr(page_budget, "MAX_PAGE_BYTES", 2_000)
    view = build_view(attacked)
    thinned = queries.queries_section(view)
    budget = thinned.context["kept"]
    assert budget.document_length == 0
    assert 0 < budget.queries < 20
    assert len(thinned.context["evidence"]) < 2_000
    assert "This page has" in report_page(
        view, [decision.decision_section(view), thinned], ""
    )
    assert thinned.context["rest"] == queries.REMAINING_PAGE
    _, section = queries.remaining_queries(view, thinned)
    page_ids = {view.ids[i] for i in thinned.context["places"]}
    remaining_ids = {
        query["id"] for query in unpack_json(section.context["evidence"])["queries"]
    }
    assert len(page_ids) + len(remaining_ids) == 20
    assert not page_ids & remaining_ids
    assert queries.remaining_queries(view, complete) is None


def priced(results, *, encoder="openai", price="0.02", cached_tokens=0, **rows):
    """The results with made-up costs: retriever -> (stage, texts, cached, usd, p50 in ms)."""
    blocks = (
        {"name": "dense", "kind": "dense", "encoder": {"kind": encoder}},
        {"name": "words", "kind": "bm25"},
        {"name": "both", "kind": "fusion", "of": ["dense", "words"]},
    )
    provenance = {"dimensions": "8"} | (
        {} if price is None else {"usd_per_million_tokens": price}
    )
    counts = (
        {"embed-queries": {"cached_tokens": cached_tokens}} if cached_tokens else {}
    )
    names, manifest = [block["name"] for block in blocks], results.manifest
    manifest = replace(
        manifest,
        resolved=replace(manifest.resolved, retrievers=blocks),
        retrievers=dict.fromkeys(
            names, records.RetrieverOutcome(error="", provenance=provenance)
        ),
        ledger=records.DataQuality(
            retrievers=dict.fromkeys(names, records.RetrieverQuality(counts=counts))
        ),
        dataset=replace(manifest.dataset, documents=100),
    )
    changed = replace(results, manifest=manifest)
    changed.__dict__["cost_rows"] = [
        {
            "retriever": name,
            "stage": stage,
            "calls": 1,
            "texts": texts,
            "cached": cached,
            "tokens": 0,
            "usd": usd,
            "seconds": 1.0,
            "p50_ms": p50,
            "p95_ms": 2 * p50,
            "p99_ms": 3 * p50,
            "measured_at": "2026-11-20",
        }
        for name, stages in rows.items()
        for stage, texts, cached, usd, p50 in stages
    ]
    return retriever_costs(changed)


ALL_CACHED = {
    "dense": [
        ("embed-queries", 10, 10, 0.0, math.nan),
        ("search", 10, 0, 0.0, math.nan),
    ],
    "words": [("search", 10, 0, 0.0, 1.0)],
    "both": [("fuse", 10, 0, 0.0, 0.5)],
}


@pytest.mark.parametrize(
    ("encoder", "price", "cached_tokens", "expected"),
    [
        (
            "of-a-third-party",
            "0.5",
            40,
            2.0,
        ),  # four tokens a query, half a dollar for a million tokens
        ("of-a-third-party", "0.5", 0, None),  # nobody counted the tokens
        ("of-a-third-party", None, 40, None),
        ("openai", "unknown", 40, None),
        ("openai", "0", 40, 0.0),  # a server of one's own
    ],
)
def test_a_cached_run_costs_what_the_price_in_its_provenance_says(
    results, encoder, price, cached_tokens, expected
):
    costs = priced(
        results, encoder=encoder, price=price, cached_tokens=cached_tokens, **ALL_CACHED
    )
    assert costs["dense"].usd_per_million == costs["both"].usd_per_million == expected
    assert costs["words"].usd_per_million == 0
    assert (costs["words"].p50, costs["both"].p50) == (
        1.0,
        None,
    )  # one of its parts was not timed


def test_a_fusion_costs_what_its_parts_cost(results):
    costs = priced(
        results,
        dense=[
            ("embed-documents", 100, 0, 0.5, math.nan),
            ("embed-queries", 10, 5, 0.00005, 20.0),
            ("search", 10, 0, 0.0, 2.0),
        ],
        words=[("search", 10, 0, 0.0, 1.0)],
        both=[("fuse", 10, 0, 0.0, 0.5)],
    )
    assert costs["dense"].usd_per_million == pytest.approx(
        10.0
    )  # billed for five texts, not for ten
    assert costs["words"].usd_per_million == 0
    assert costs["both"].usd_per_million == pytest.approx(10.0)
    reranked = priced(results, dense=[("rerank", 60, 30, 0.003, 1.0)])[
        "dense"
    ]  # 10 pairs a query
    assert reranked.usd_per_million == pytest.approx(0.003 / 30 * 10 * 1e6)
    assert costs["both"].usd == pytest.approx(0.50005)
    assert [(stage.stage, stage.p50) for stage in costs["both"].stages] == [
        ("embed-queries", 20.0),
        ("search", 3.0),
        ("fuse", 0.5),
    ]
    assert (costs["both"].p50, costs["both"].p95) == pytest.approx((23.5, 47.0))
    assert costs["both"].vector_bytes == 4 * 8 * 100
    assert costs["words"].vector_bytes == 0
