"""The report's files: what they say, that they are safe, and that they rest on the results folder alone."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import math
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness import records
from harness.evaluation.costs import costs_of
from harness.report import first_screen, html_page, text, write_report
from harness.report.latex import citation
from harness.report.sections import decision, queries
from harness.report.view import view_of
from retrievers.errors import InputError
from tests.support import hostile, small

WILD = st.text(st.characters(), max_size=60) | st.sampled_from(hostile.ATTACKS)


@pytest.fixture(scope="module")
def results(finished):
    """A small experiment of three retrievers and six queries."""
    return harness.open(finished.folder)


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """An experiment whose every string is hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    return harness.run(hostile.write(folder), harness.Options(results=folder / "results"))


class Elements(HTMLParser):
    """What a page holds: its elements, and the content of its scripts and styles."""

    def __init__(self, source):
        super().__init__()
        self.tags, self.scripts, self.styles, self.attributes = [], [], [], []
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag == "script":
            self.scripts.append((dict(attrs).get("type", ""), ""))
        if tag == "style":
            self.styles.append("")

    def handle_data(self, data):
        if self.tags and self.tags[-1] == "script" and self.scripts:
            kind, before = self.scripts[-1]
            self.scripts[-1] = (kind, before + data)
        if self.tags and self.tags[-1] == "style":
            self.styles[-1] += data

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self.tags.append("/" + tag)


def hashed(code):
    return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"


def test_the_first_screen_says_what_six_queries_could_show(results):
    source = (results.folder / "report.html").read_text(encoding="utf-8")
    assert "Undecided: no difference is shown between the 3 retrievers" in source
    assert "6 queries are too few to show one" in source
    assert 'title="linear gain"' in source  # which nDCG it is
    assert "over the 5 hits kept" in source  # AP and RR have no cutoff


@pytest.mark.parametrize("which", ["results", "attacked"])
def test_the_policy_allows_exactly_the_pages_own_scripts(which, request):
    source = (request.getfixturevalue(which).folder / "report.html").read_text(encoding="utf-8")
    elements = Elements(source)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', source)[1].replace("&#39;", "'")
    code = [script for kind, script in elements.scripts if kind == ""]
    assert len(code) == 1
    assert f"script-src {' '.join(map(hashed, code))};" in policy
    assert f"style-src {hashed(elements.styles[0])};" in policy
    assert len(elements.styles) == 1
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert {kind for kind, _ in elements.scripts} == {"", "text/plain"}
    assert not [name for name in elements.attributes if name.startswith("on") or name == "style"]
    assert not {"img", "iframe", "object", "embed", "base", "form"} & set(elements.tags) - {"form"}


def test_a_report_of_the_same_folder_is_the_same(results):
    names = ["report.html", "report.md", "tables/leaderboard.tex", "figures/leaderboard.svg"]
    before = [(results.folder / name).read_bytes() for name in names]
    write_report(records.read(results.folder))
    assert [(results.folder / name).read_bytes() for name in names] == before


def test_a_report_needs_no_engine_and_no_model(results, tmp_path):
    code = (
        "import sys; import harness.evaluation.folders; from harness import records\n"
        "from harness.report import write_report\n"
        f"write_report(records.read({str(results.folder)!r}))\n"
        "print([name for name in ('torch', 'qdrant_client', 'openai', 'boto3', 'sentence_transformers', 'bm25s')"
        " if name in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]"


@pytest.mark.parametrize("which", ["results", "attacked"])
def test_figures_are_well_formed_and_described(which, request):
    folder = request.getfixturevalue(which).folder
    markdown = (folder / "report.md").read_text(encoding="utf-8")
    drawn = sorted((folder / "figures").glob("*.svg"))
    assert len(drawn) > 1
    for file in drawn:
        root = ET.fromstring(file.read_text(encoding="utf-8"))
        assert [child.tag.rpartition("}")[2] for child in root][:2] == ["title", "desc"]
        assert not list(root.iter("{http://www.w3.org/2000/svg}script"))
        assert f"(figures/{file.name})" in markdown


def test_markdown_shows_hostile_strings_as_they_are(attacked):
    source = (attacked.folder / "report.md").read_text(encoding="utf-8")
    assert "<script" not in source
    assert "<img" not in source
    assert not re.search(r"(?<!\\)\]\(javascript:", source)
    tables = re.findall(r"(?:^\|.*\n)+", source, re.MULTILINE)
    assert len(tables) > 5
    for table in tables:  # no cell was broken open
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1, table


def test_latex_balances_its_braces(attacked):
    for file in (attacked.folder / "tables").glob("*.tex"):
        source = file.read_text(encoding="utf-8").replace("\\{", "").replace("\\}", "")
        assert source.count("{") == source.count("}")
        assert r"\toprule" in source
        assert r"\textbf{" in source or file.stem != "leaderboard"


def test_spreadsheets_find_no_formula(attacked):
    source = (attacked.folder / "tables" / "queries.csv").read_text(encoding="utf-8")
    assert source.startswith("\ufeff")
    rows = list(csv.reader(io.StringIO(source.removeprefix("\ufeff"))))
    assert len(rows) == 21
    assert not [cell for row in rows[1:] for cell in row[:2] if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert all(float(cell) >= 0 for row in rows[1:] for cell in row[2:])


ALONE = '[[retrievers]]\nname = "bm25"\nkind = "bm25"\n'
TWINS = ALONE + '[[retrievers]]\nname = "twin"\nkind = "bm25"\n'


@pytest.mark.parametrize(
    ("more", "retrievers", "sentence"),
    [
        ("", ALONE, "Add a second [[retrievers]]"),
        ("", ALONE, "No query fails: for each, bm25 finds a relevant document among the first 3 hits."),
        ("", TWINS, "No query fails: for each, at least two retrievers find a relevant document"),
        ("", TWINS, "bm25 and twin rank identically on these queries"),
        ('baseline = "hashing"', small.RETRIEVERS, "ahead of hashing"),
        ("[statistics]\nmargin = 0.5", TWINS, "bm25 and twin rank identically on these queries"),
        ("[relevance]\ngain = 'exponential'\nideal = 'retrieved'", small.RETRIEVERS, "however much was missed"),
    ],
)
def test_every_kind_of_experiment_has_a_report(tmp_path, more, retrievers, sentence):
    folder = small.ran(tmp_path, more=more, retrievers=retrievers, report=True).folder
    assert sentence in (folder / "report.html").read_text(encoding="utf-8")
    assert (folder / "report.md").stat().st_size > 1000


def test_a_report_that_cannot_be_written_is_one_message(results, tmp_path):
    copy = shutil.copytree(results.folder, tmp_path / "blocked")
    (copy / "report.md").unlink()
    (copy / "report.md").mkdir()
    with pytest.raises(InputError, match=r"report\.md: cannot be written: .*free disk space"):
        write_report(records.read(copy))


def test_a_failed_retriever_is_named(results, tmp_path):
    copy = shutil.copytree(results.folder, tmp_path / "failed")
    small.with_failed(copy, "401 <b>no key</b>")
    write_report(records.read(copy))
    assert "× failed (401" in (copy / "report.md").read_text(encoding="utf-8")
    assert 'failed: <bdi title="401 &lt;b&gt;no key' in (copy / "report.html").read_text(encoding="utf-8")


def test_mteb_takes_the_figures_that_it_defines_alike(attacked):
    result = json.loads((attacked.folder / "tables" / "bm25.mteb.json").read_text(encoding="utf-8"))
    scores = result["scores"]["test"][0]
    summary = attacked.summary.set_index(["retriever", "measure"])["mean"]
    assert scores["ndcg_at_10"] == scores["main_score"] == pytest.approx(summary["bm25", "nDCG@10"], abs=1e-15)
    assert scores["hit_rate_at_1"] == pytest.approx(summary["bm25", "Success@1"], abs=1e-15)
    assert "map_at_10" not in scores  # AP has no cutoff here


def test_a_notebook_shows_the_verdict(results):
    shown = results._repr_html_()
    assert "no difference is shown" in shown
    assert shown.count('<tr role="row"') == 5  # a head, three retrievers, the axis
    assert shown == first_screen(results)
    assert not re.search("<script|<link|http|href", shown)


def test_the_numbers_of_the_page_are_those_of_the_tables(results):
    view = view_of(results)
    summary = results.summary.set_index(["retriever", "measure"])["mean"]
    pairs = results.comparisons[results.comparisons["measure"] == view.primary].set_index(["a", "b"])
    leader, *others = decision.section(view).context["screen"].board.rows
    assert (leader.retriever, leader.difference) == (view.ranked[0], None)
    assert leader.mean == summary[leader.retriever, view.primary]
    for row in others:
        assert row.mean == summary[row.retriever, view.primary]
        key = (leader.retriever, row.retriever)
        sign, pair = (1, pairs.loc[key]) if key in pairs.index else (-1, pairs.loc[key[::-1]])
        assert row.difference == sign * pair["mean_difference"] == pytest.approx(leader.mean - row.mean, abs=1e-12)
        ends = [pair["ci_low"], pair["ci_high"]]
        assert [row.low, row.high] == (ends if sign > 0 else [-end for end in ends[::-1]])
        counts = (pair["wins"], pair["ties"], pair["losses"])
        assert (row.wins, row.ties, row.losses) == (counts[::-1] if sign > 0 else counts)
        assert row.p == pair["p_adjusted"]


def test_beyond_the_budget_the_evidence_is_thinned_and_says_so(attacked, monkeypatch):
    whole = queries.section(view_of(attacked))
    assert whole.context["whole"]
    monkeypatch.setattr(queries, "BUDGET", 2_000)
    view = view_of(attacked)
    thinned = queries.section(view)
    kept = thinned.context["kept"]
    assert kept.letters == 0
    assert 0 < kept.queries < 20
    assert len(thinned.context["evidence"]) < 2_000
    assert "This page has" in html_page.page(view, [decision.section(view), thinned], "")
    assert thinned.context["rest"] == queries.REST
    _, section = queries.rest(view, thinned)
    held = {view.ids[place] for place in thinned.context["places"]}
    left = {query["id"] for query in queries.unpacked(section.context["evidence"])["queries"]}
    assert len(held) + len(left) == 20
    assert not held & left
    assert queries.rest(view, whole) is None


@given(WILD)
def test_what_is_visible_is_fit_for_xml(value):
    shown = text.visible(value)
    assert text.visible(shown) == shown
    ET.fromstring(f"<a>{shown.replace('&', '&amp;').replace('<', '&lt;')}</a>")


@given(WILD)
def test_no_cell_is_a_formula(value):
    assert not text.cell(value).lstrip().startswith(("=", "+", "-", "@"))


@given(WILD)
def test_markdown_stays_on_its_line_and_in_its_cell(value):
    line = text.markdown(value)
    assert len(line.splitlines()) <= 1
    assert not re.search(r"(?<!\\)(?:\\\\)*\|", line)
    assert "<" not in line


def test_a_p_is_never_shown_as_zero():
    for exponent in range(400):
        shown = text.p_value(10.0**-exponent)
        assert not re.fullmatch(r"[0.]+", shown)


def priced(results, *, encoder="openai", price="0.02", cached_tokens=0, **rows):
    """The results with made-up costs: retriever -> (stage, texts, cached, usd, p50 in ms)."""
    blocks = (
        {"name": "dense", "kind": "dense", "encoder": {"kind": encoder}}, {"name": "words", "kind": "bm25"},
        {"name": "both", "kind": "fusion", "of": ["dense", "words"]},
    )  # fmt: skip
    provenance = {"dimensions": "8"} | ({} if price is None else {"usd_per_million_tokens": price})
    counts = {"embed-queries": {"cached_tokens": cached_tokens}} if cached_tokens else {}
    names, manifest = [block["name"] for block in blocks], results.manifest
    manifest = replace(
        manifest,
        resolved=replace(manifest.resolved, retrievers=blocks),
        retrievers=dict.fromkeys(names, records.RetrieverFacts(error="", provenance=provenance)),
        ledger=records.Ledger(retrievers=dict.fromkeys(names, records.RetrieverLedger(counts=counts))),
        dataset=replace(manifest.dataset, documents=100),
    )
    changed = replace(results, manifest=manifest)
    changed.__dict__["cost_rows"] = [
        {"retriever": name, "stage": stage, "calls": 1, "texts": texts, "cached": cached, "tokens": 0, "usd": usd,
         "seconds": 1.0, "p50_ms": p50, "p95_ms": 2 * p50, "p99_ms": 3 * p50, "measured_at": "2026-11-20"}
        for name, stages in rows.items() for stage, texts, cached, usd, p50 in stages
    ]  # fmt: skip
    return costs_of(changed)


ALL_CACHED = {
    "dense": [("embed-queries", 10, 10, 0.0, math.nan), ("search", 10, 0, 0.0, math.nan)],
    "words": [("search", 10, 0, 0.0, 1.0)],
    "both": [("fuse", 10, 0, 0.0, 0.5)],
}


@pytest.mark.parametrize(
    ("encoder", "price", "cached_tokens", "expected"),
    [
        ("of-a-third-party", "0.5", 40, 2.0),  # four tokens a query, half a dollar for a million tokens
        ("of-a-third-party", "0.5", 0, None),  # nobody counted the tokens
        ("of-a-third-party", None, 40, None), ("openai", "unknown", 40, None),
        ("openai", "0", 40, 0.0),  # a server of one's own
    ],
)  # fmt: skip
def test_a_cached_run_costs_what_the_price_in_its_provenance_says(results, encoder, price, cached_tokens, expected):
    costs = priced(results, encoder=encoder, price=price, cached_tokens=cached_tokens, **ALL_CACHED)
    assert costs["dense"].usd_per_million == costs["both"].usd_per_million == expected
    assert costs["words"].usd_per_million == 0
    assert (costs["words"].p50, costs["both"].p50) == (1.0, None)  # one of its parts was not timed


def test_a_fusion_costs_what_its_parts_cost(results):
    costs = priced(
        results,
        dense=[("embed-documents", 100, 0, 0.5, math.nan), ("embed-queries", 10, 5, 0.00005, 20.0),
               ("search", 10, 0, 0.0, 2.0)],
        words=[("search", 10, 0, 0.0, 1.0)],
        both=[("fuse", 10, 0, 0.0, 0.5)],
    )  # fmt: skip
    assert costs["dense"].usd_per_million == pytest.approx(10.0)  # billed for five texts, not for ten
    assert costs["words"].usd_per_million == 0
    assert costs["both"].usd_per_million == pytest.approx(10.0)
    assert costs["both"].usd == pytest.approx(0.50005)
    assert [(stage.stage, stage.p50) for stage in costs["both"].stages] == [
        ("embed-queries", 20.0), ("search", 3.0), ("fuse", 0.5)
    ]  # fmt: skip
    assert (costs["both"].p50, costs["both"].p95) == pytest.approx((23.5, 47.0))
    assert costs["both"].vector_bytes == 4 * 8 * 100
    assert costs["words"].vector_bytes == 0


def test_one_retriever_is_quoted_with_its_interval(tmp_path):
    quoted = citation(view_of(small.ran(tmp_path, retrievers=small.BM25)))
    interval = r"\(95 % interval 0\.\d{3} to [01]\.\d{3}\)"
    assert re.fullmatch(rf"On 6 queries, bm25 has a mean nDCG@3 of 0\.\d{{3}} {interval}\.", quoted["Sentence"])
    assert "nDCG@3 of 1 retriever over 6 queries" in quoted["BibTeX"]


def test_every_link_within_the_page_has_its_target(attacked):
    source = (attacked.folder / "report.html").read_text(encoding="utf-8")
    ids, links = (set(re.findall(rf'{key}([\w-]+)"', source)) for key in (' id="', 'href="#'))
    assert len(links) > 5
    assert links | {"integrity"} <= ids  # where a warning of the first screen leads
