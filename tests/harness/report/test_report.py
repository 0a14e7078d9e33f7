"""The files of a report: their content, their safety, their costs."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import itertools
import json
import math
import re
import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness import records
from harness.evaluation.costs import retriever_costs
from harness.pages import visible_text
from harness.report.escape import (
    escape_latex,
    escape_markdown,
    escape_spreadsheet_cell,
)
from harness.report.interchange import mteb_results
from harness.report.names import measure_names
from harness.report.numbers import power_p_text
from harness.report.page import first_screen_html, report_page
from harness.report.paper import citation_texts
from harness.report.query_evidence import unpack_json
from harness.report.sections import decision, fails, query_groups
from harness.report.view import build_view, document_heading
from harness.report.write import write_report
from retrievers.errors import InputError
from retrievers.types import Document, parse_facts
from tests.support import hostile, small
from tests.support.scored import with_primary_alone

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
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


def read_page(results):
    return (results.folder / "report.html").read_text(encoding="utf-8")


def content_hash(code):
    """The hash of a script or style in a content security policy."""
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    return f"'sha256-{digest}'"


@pytest.fixture(params=["results", "attacked"])
def page(request):
    """The page of each experiment."""
    return read_page(request.getfixturevalue(request.param))


def test_the_policy_allows_exactly_the_scripts_and_the_style_of_the_page(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    policy = policy.replace("&#39;", "'")
    flags = re.DOTALL | re.IGNORECASE
    scripts = re.findall(r"<script([^>]*)>(.*?)</script", page, flags)
    (style,) = re.findall(r"<style[^>]*>(.*?)</style", page, flags)
    plain = 'type="text/plain"'  # which no browser runs
    (code,) = [script for attributes, script in scripts if plain not in attributes]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert f"script-src {content_hash(code)};" in policy
    assert f"style-src {content_hash(style)};" in policy


def test_the_page_has_no_tag_and_no_attribute_that_runs_or_loads_anything(page):
    tags = re.sub(r'<(script|style)[^>]*>.*?</\1|"[^"]*"', "", page, flags=re.DOTALL)
    assert not re.search(r"<(img|iframe|object|embed|base)\b", tags)
    assert not re.search(r"<[^<>]*\s(on\w+|style)=", tags)


def test_every_link_within_the_page_has_its_target(page):
    ids = set(re.findall(r' id="([\w-]+)"', page))
    links = set(re.findall(r'href="#([\w-]+)"', page))
    assert len(links) > 5
    assert links <= ids
    assert "data" in ids  # the target of further warnings of the first screen


def test_a_report_of_the_same_folder_is_the_same(results):
    names = [
        "report.html",
        "report.md",
        "tables/leaderboard.tex",
        "figures/leaderboard.svg",
    ]
    before = [(results.folder / name).read_bytes() for name in names]
    write_report(records.read_results(results.folder))
    assert [(results.folder / name).read_bytes() for name in names] == before


def test_a_report_that_cannot_be_written_is_one_message(results, tmp_path):
    copy = shutil.copytree(results.folder, tmp_path / "blocked")
    (copy / "report.md").unlink()
    (copy / "report.md").mkdir()
    message = r"report\.md: cannot be written: .*free disk space"
    with pytest.raises(InputError, match=message):
        write_report(records.read_results(copy))


def read_markdown(results):
    return (results.folder / "report.md").read_text(encoding="utf-8")


def test_hostile_strings_stay_text_in_markdown(attacked):
    markdown = read_markdown(attacked)
    assert "<script" not in markdown
    assert "<img" not in markdown
    assert not re.search(r"(?<!\\)\]\(javascript:", markdown)


def test_hostile_strings_stay_in_their_cells_of_markdown(attacked):
    tables = re.findall(r"(?:^\|.*\n)+", read_markdown(attacked), re.MULTILINE)
    assert len(tables) > 5
    for table in tables:
        cells = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        assert len(cells) == 1, table


def test_hostile_strings_stay_text_in_figures(attacked):
    markdown = read_markdown(attacked)
    figures = sorted((attacked.folder / "figures").glob("*.svg"))
    assert len(figures) > 1
    for file in figures:
        root = ET.fromstring(file.read_text(encoding="utf-8"))
        tags = [child.tag.rpartition("}")[2] for child in root]
        assert tags[:2] == ["title", "desc"]
        assert not list(root.iter("{http://www.w3.org/2000/svg}script"))
        assert f"(figures/{file.name})" in markdown


@pytest.mark.parametrize("table", ["leaderboard", "describe", "comparisons"])
def test_hostile_strings_stay_text_in_latex(attacked, table):
    path = attacked.folder / "tables" / f"{table}.tex"
    latex = path.read_text(encoding="utf-8").replace("\\{", "").replace("\\}", "")
    assert latex.count("{") == latex.count("}")
    assert r"\toprule" in latex


def test_the_best_of_the_leaderboard_is_bold_in_latex(results):
    path = results.folder / "tables" / "leaderboard.tex"
    assert r"\textbf{" in path.read_text(encoding="utf-8")


def test_hostile_strings_are_no_formula_in_a_spreadsheet(attacked):
    path = attacked.folder / "tables" / "queries.csv"
    # As bytes: reading as text would turn a carriage return into a line feed.
    sheet = path.read_bytes().decode("utf-8")
    assert sheet[0] == "\ufeff"
    lines = io.StringIO(sheet.removeprefix("\ufeff"), newline="")
    rows = list(csv.reader(lines))
    assert len(rows) == 21
    for query_id, text, *scores in rows[1:]:
        assert not query_id.startswith(FORMULA_STARTS)
        assert not text.startswith(FORMULA_STARTS)
        assert all(float(score) >= 0 for score in scores)


@given(WILD)
def test_any_string_is_fit_for_xml(text):
    visible = visible_text(text)
    assert visible_text(visible) == visible
    ET.fromstring(f"<a>{visible.replace('&', '&amp;').replace('<', '&lt;')}</a>")


@given(WILD)
def test_any_string_is_fit_for_a_spreadsheet(text):
    cell = escape_spreadsheet_cell(text).lstrip()
    assert not cell.startswith(("=", "+", "-", "@"))


@given(WILD)
def test_any_string_is_fit_for_a_cell_of_markdown(text):
    line = escape_markdown(text)
    assert len(line.splitlines()) <= 1
    assert "<" not in line
    assert not re.search(r"(?<!\\)(?:\\\\)*\|", line)


def test_a_p_is_never_shown_as_zero():
    texts = [power_p_text(10.0**-n) for n in range(400)]
    assert not [text for text in texts if re.fullmatch(r"[0.]+", text)]


TWINS = small.BM25 + '[[retrievers]]\nname = "twin"\nkind = "bm25"\n'
ALIKE = "bm25 and twin rank identically on these queries"


@pytest.mark.parametrize(
    ("more", "retrievers", "sentences"),
    [
        pytest.param(
            "",
            small.BM25,
            [
                "Add a second retriever to compare.",
                "This query scores lowest of 6 queries.",
            ],
            id="a single retriever",
        ),
        pytest.param(
            "",
            TWINS,
            [
                ALIKE,
                "bm25 lost no query. This one it scores lowest.",
            ],
            id="two equal retrievers",
        ),
        pytest.param(
            'baseline = "hashing"',
            small.RETRIEVERS,
            ["gap to hashing (95 % CI)"],
            id="a baseline",
        ),
        pytest.param("[statistics]\nmargin = 0.5", TWINS, [ALIKE], id="a margin"),
        pytest.param(
            "[relevance]\ngain = 'exponential'\nideal = 'retrieved'",
            small.RETRIEVERS,
            ["however much was missed"],
            id="another ideal",
        ),
    ],
)
def test_every_kind_of_experiment_has_a_report(tmp_path, more, retrievers, sentences):
    results = small.ran(tmp_path, more=more, retrievers=retrievers, report=True)
    page = read_page(results)
    assert [sentence for sentence in sentences if sentence not in page] == []
    assert (results.folder / "report.md").stat().st_size > 1000


def test_a_single_retriever_is_quoted_with_its_mean(tmp_path):
    results = small.ran(tmp_path, retrievers=small.BM25)
    texts = dict(citation_texts(build_view(results)))
    interval = r"\(95 % interval 0\.\d{3} to [01]\.\d{3}\)"
    sentence = rf"On 6 queries, bm25 has a mean nDCG@3 of 0\.\d{{3}} {interval}\."
    assert re.fullmatch(sentence, texts["Sentence"])
    assert "nDCG@3 of 1 retriever over 6 queries" in texts["BibTeX"]
    write_report(results)
    table = (results.folder / "tables" / "leaderboard.tex").read_text(encoding="utf-8")
    assert r"\caption{Means over 6 queries. nDCG@3" in table


def test_a_notebook_shows_the_first_screen(results):
    html = results._repr_html_()
    assert html == first_screen_html(results)
    assert "Undecided." in html
    assert html.count('<tr role="row"') == 5  # a head, three retrievers, the axis
    assert not re.search("<script|<link|http|href", html)


def test_the_next_look_has_its_command_on_every_first_screen(tmp_path, call):
    looks = "[statistics]\nlooks = { queries = [6, 12] }"
    results = small.ran(tmp_path, more=looks, report=True)
    command = f"harness pool {results.folder.as_posix()} --next-look"
    assert f"\n\n    {command}\n\n" in read_markdown(results)
    assert command in first_screen_html(results)
    printed = call("run", tmp_path / "small.toml", "--results", tmp_path / "out").out
    assert "! Look 1 (planned at 6, 12): level" in printed
    scored = json.loads(call("score", results.folder, "--json").out)["summary"]
    assert scored[0]["ci_low"] == pytest.approx(float(results.summary["ci_low"][0]))
    refused = call("pool", results.folder, "--next-look", code=2).err
    assert "all 6 queries are labelled (add queries to the data set" in refused


def test_a_quoted_sentence_has_no_sign_that_latex_lacks():
    text = escape_latex("p = 1.50×10⁻⁹, −0.1")
    assert text.isascii()
    assert text.endswith(r"10\textsuperscript{-}\textsuperscript{9}, \textminus{}0.1")


@pytest.mark.parametrize(
    "text",
    [
        "<b>Undecided.</b>",
        "4 queries differ: no corrected p can reach .05; 7 are needed.",
        'title="linear gain"',  # which nDCG it is
        "over the 5 hits kept",  # AP and RR have no cutoff
    ],
)
def test_the_page_has_the_verdict_and_the_full_names_of_measures(results, text):
    assert text in read_page(results)


def board_rows(results):
    """The leader, and the other rows of the leaderboard.

    The others have a difference behind the leader, and their own won queries.
    """
    section = decision.decision_section(build_view(results))
    leader, *others = section.context.screen.board.rows
    return leader, others


def test_the_leaderboard_has_the_means_of_the_tables(results):
    view = build_view(results)
    means = results.summary.set_index(["retriever", "measure"])["mean"]
    leader, others = board_rows(results)
    assert leader.retriever == view.ranked[0]
    assert leader.difference is None
    for row in (leader, *others):
        assert row.mean == means[row.retriever, view.primary]


def test_the_leaderboard_has_the_comparisons_of_the_tables(results):
    primary = build_view(results).primary
    rows = results.comparisons[results.comparisons["measure"] == primary]
    pairs = rows.set_index(["a", "b"])
    leader, others = board_rows(results)
    for row in others:
        expected = leader.mean - row.mean
        assert row.difference == pytest.approx(expected, abs=1e-12)
        # The leader is the first of its pairs in the table.
        pair = pairs.loc[leader.retriever, row.retriever]
        assert row.difference == pair["mean_difference"]
        assert (row.wins, row.losses) == (pair["losses"], pair["wins"])
        assert row.ties == pair["ties"]
        assert row.p == pair["p_adjusted"]


def largest_flipped_t(table):
    """The 95 % quantile of the largest |t| of all pairs, over all signs of the rows."""
    n, k = table.shape
    columns = [
        table[:, a] - table[:, b] for a in range(k) for b in range(a)
    ]  # centred, so that no difference is the truth
    centred = np.column_stack([column - column.mean() for column in columns])
    largest = []
    for signs in itertools.product([-1, 1], repeat=n):
        flipped = np.array(signs)[:, None] * centred
        errors = flipped.std(axis=0, ddof=1) / math.sqrt(n)
        largest.append(np.abs(flipped.mean(axis=0) / errors).max())
    return np.quantile(largest, 0.95, method="inverted_cdf")


def test_the_intervals_of_the_leaderboard_hold_for_all_rows_at_once(results):
    primary = build_view(results).primary
    scores = results.scores[results.scores["measure"] == primary]
    table = scores.pivot_table(index="query_id", columns="retriever", values="value")
    quantile = largest_flipped_t(table.to_numpy())
    leader, others = board_rows(results)
    for row in others:
        gaps = table[leader.retriever] - table[row.retriever]
        reach = quantile * gaps.std() / math.sqrt(len(gaps))
        ends = (gaps.mean() - reach, gaps.mean() + reach)
        assert (row.low, row.high) == pytest.approx(ends, rel=1e-6)


def test_within_the_budget_the_page_has_all_queries(attacked):
    view = build_view(attacked)
    section = fails.fails_section(view)
    assert len(section.context.browser.evidence.queries) == view.n == 20
    assert section.context.omitted == 0
    assert fails.remaining_queries(view, section.context) is None


@pytest.fixture
def small_budget(monkeypatch):
    monkeypatch.setattr(fails, "MAX_PAGE_BYTES", 2_000)


@pytest.mark.usefixtures("small_budget")
def test_beyond_the_budget_the_page_has_the_worst_queries_and_says_so(attacked):
    view = build_view(attacked)
    section = fails.fails_section(view)
    on_page = [query.id for query in section.context.browser.evidence.queries]
    worst = [view.ids[i] for i in query_groups.order_by_loss(view)]
    assert 0 < len(on_page) < 20
    assert on_page == [visible_text(query_id) for query_id in worst[: len(on_page)]]
    page = report_page(view, [decision.decision_section(view), section], "")
    assert '<a href="queries.html">another page</a>' in page


@pytest.mark.usefixtures("small_budget")
def test_beyond_the_budget_the_other_queries_have_their_own_page(attacked):
    view = build_view(attacked)
    section = fails.fails_section(view)
    remaining = fails.remaining_queries(view, section.context).section
    evidence = unpack_json(remaining.context.browser.packed)
    page_ids = {query.id for query in section.context.browser.evidence.queries}
    remaining_ids = set(evidence["columns"][0])
    assert len(page_ids) + len(remaining_ids) == 20
    assert not page_ids & remaining_ids
    page_sentence = section.context.browser.sentence
    assert page_sentence.endswith("This one it lost most.")
    sentence = remaining.context.browser.sentence
    assert f"{sentence} This one it lost most." == page_sentence


TEXTS = ("fruit that grows on trees", "apples grow on trees")


def test_without_texts_a_report_has_ids_in_their_place(tmp_path):
    results = small.ran(tmp_path, report=True)
    write_report(results, shows_texts=False)
    written = "".join(
        path.read_text(encoding="utf-8")
        for path in [results.folder / "report.md", *results.folder.glob("tables/*")]
    )
    page = read_page(results)
    evidence = re.search(r'id="evidence">([^<]*)<', page)[1]
    written += page + str(unpack_json(evidence))
    assert [text for text in TEXTS if text in written] == []
    assert "“q-" in page


class StageCost(NamedTuple):
    """The made-up cost of one stage."""

    stage: str
    texts: int
    cached: int
    usd: float
    p50_ms: float | None


PRICED_RETRIEVERS = ("dense", "words", "both")


def priced(results, *, encoder="openai", price="0.02", cached_tokens=0, **stages):
    """The costs of results with made-up costs of the stages of each retriever."""
    manifest = priced_manifest(results.manifest, encoder, price, cached_tokens)
    changed = replace(results, manifest=manifest)
    cost_rows = []
    for retriever, costs in stages.items():
        cost_rows += [cost_row(retriever, cost) for cost in costs]
    changed.__dict__["cost_rows"] = cost_rows
    return retriever_costs(changed)


def priced_manifest(manifest, encoder, price, cached_tokens):
    """A manifest of a dense retriever, one of words, and a fusion of both."""
    tables = (
        {"name": "dense", "kind": "dense", "encoder": {"kind": encoder}},
        {"name": "words", "kind": "bm25"},
        {"name": "both", "kind": "fusion", "of": ["dense", "words"]},
    )
    provenance = {"dimensions": "8"}
    if price is not None:
        provenance["usd_per_million_tokens"] = price
    counts = {}
    if cached_tokens:
        counts["embed-queries"] = {"cached_tokens": cached_tokens}
    outcome = records.RetrieverOutcome(error="", provenance=parse_facts(provenance))
    quality = records.RetrieverQuality(counts=counts)
    return replace(
        manifest,
        resolved=replace(
            manifest.resolved,
            retrievers=tuple(map(records.RetrieverRecord.read, tables)),
        ),
        retrievers=dict.fromkeys(PRICED_RETRIEVERS, outcome),
        ledger=records.DataQuality(
            retrievers=dict.fromkeys(PRICED_RETRIEVERS, quality)
        ),
        dataset=replace(manifest.dataset, documents=100),
    )


def cost_row(retriever, cost):
    """A row of costs.csv."""
    latency = None
    if cost.p50_ms is not None:
        latency = records.StageLatency(
            cost.p50_ms, 2 * cost.p50_ms, 3 * cost.p50_ms, "2026-11-20"
        )
    return records.CostRow(
        retriever=retriever,
        stage=cost.stage,
        calls=1,
        texts=cost.texts,
        cached=cost.cached,
        tokens=0,
        usd=cost.usd,
        seconds=1.0,
        latency=latency,
    )


ALL_CACHED = {
    "dense": [
        StageCost("embed-queries", 10, 10, 0.0, None),
        StageCost("search", 10, 0, 0.0, None),
    ],
    "words": [StageCost("search", 10, 0, 0.0, 1.0)],
    "both": [StageCost("fuse", 10, 0, 0.0, 0.5)],
}


@pytest.mark.parametrize(
    ("encoder", "price", "cached_tokens", "expected"),
    [
        # Four tokens per query, half a dollar for a million tokens.
        pytest.param("of-a-third-party", "0.5", 40, 2.0, id="a price"),
        pytest.param("of-a-third-party", "0.5", 0, None, id="tokens not counted"),
        pytest.param("of-a-third-party", None, 40, None, id="no price"),
        pytest.param("openai", "unknown", 40, None, id="unknown price"),
        pytest.param("openai", "0", 40, 0.0, id="free"),
    ],
)
def test_the_queries_of_a_cached_run_cost_the_price_in_its_provenance(
    results, encoder, price, cached_tokens, expected
):
    costs = priced(
        results, encoder=encoder, price=price, cached_tokens=cached_tokens, **ALL_CACHED
    )
    assert costs["dense"].usd_per_million == expected
    assert costs["both"].usd_per_million == expected
    assert costs["words"].usd_per_million == 0


def test_a_fusion_has_no_latency_if_a_part_was_not_timed(results):
    costs = priced(results, **ALL_CACHED)
    assert costs["words"].p50 == 1.0
    assert costs["both"].p50 is None


@pytest.fixture
def fusion_costs(results):
    return priced(
        results,
        dense=[
            StageCost("embed-documents", 100, 0, 0.5, None),
            StageCost("embed-queries", 10, 5, 0.00005, 20.0),
            StageCost("search", 10, 0, 0.0, 2.0),
        ],
        words=[StageCost("search", 10, 0, 0.0, 1.0)],
        both=[StageCost("fuse", 10, 0, 0.0, 0.5)],
    )


def test_a_fusion_costs_the_sum_of_its_parts(fusion_costs):
    """Five texts were billed, not ten."""
    assert fusion_costs["dense"].usd_per_million == pytest.approx(10.0)
    assert fusion_costs["words"].usd_per_million == 0
    assert fusion_costs["both"].usd_per_million == pytest.approx(10.0)
    assert fusion_costs["both"].usd == pytest.approx(0.50005)


def test_the_latency_of_a_fusion_has_the_stages_of_its_parts(fusion_costs):
    both = fusion_costs["both"]
    assert [(stage.stage, stage.p50) for stage in both.stages] == [
        ("embed-queries", 20.0),
        ("search", 3.0),
        ("fuse", 0.5),
    ]
    assert both.p50 == pytest.approx(23.5)
    assert both.p95 == pytest.approx(47.0)


def test_a_fusion_has_the_vectors_of_its_parts(fusion_costs):
    assert fusion_costs["both"].vector_bytes == 4 * 8 * 100
    assert fusion_costs["words"].vector_bytes == 0


def test_a_reranker_is_billed_for_the_pairs_of_a_query(results):
    """There are ten pairs per query."""
    costs = priced(results, dense=[StageCost("rerank", 60, 30, 0.003, 1.0)])
    expected = 0.003 / 30 * 10 * 1e6
    assert costs["dense"].usd_per_million == pytest.approx(expected)


@pytest.mark.parametrize(
    ("primary", "is_ordinal"), [("RR", True), ("RR@3", True), ("RR@1", False)]
)
def test_rr_as_the_primary_measure_is_called_ordinal(tmp_path, primary, is_ordinal):
    path = small.experiment(tmp_path, retrievers=small.BM25, report=True)
    text = path.read_text(encoding="utf-8")
    text = text.replace('primary = "nDCG@3"', f'primary = "{primary}"')
    text = text.replace('"R@2"', '"RR@3", "RR@1"')
    path.write_text(text, encoding="utf-8")
    results = harness.run(path, harness.RunOptions(tmp_path / "out"))
    for name in ("report.html", "report.md"):
        report = (results.folder / name).read_text(encoding="utf-8")
        assert ("The primary measure, RR, is ordinal" in report) == is_ordinal


def test_measures_with_another_ideal_have_names_of_their_own():
    measures = [f"nDCG(ideal='{ideal}')@10" for ideal in ("retrieved", "retrieved-all")]
    names = measure_names(measures, 10, 1)
    assert len({name.short for name in names.values()}) == 2


def test_a_document_with_a_blank_title_has_the_start_of_its_text_as_heading():
    assert document_heading(Document("d1", "its text", "  ")) == "its text"
    assert document_heading(Document("d1", " \n", " ")) == "d1"


def test_a_measure_without_a_value_is_not_in_the_file_for_mteb(results):
    view = build_view(results)
    undefined = with_primary_alone(view)
    for file in mteb_results(undefined):
        (scores,) = json.loads(file.content)["scores"]["test"]
        numbers = [number for number in scores.values() if isinstance(number, float)]
        assert numbers and not any(map(math.isnan, numbers))
