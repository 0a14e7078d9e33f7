"""The sections: slices, costs, groups of queries that fail alike, and rerankers."""

import json
import re
from dataclasses import replace
from itertools import combinations, permutations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from harness import records
from harness.evaluation.property_slices import small_slices
from harness.report.query_evidence import unpack_json
from harness.report.sections import cost_sentences, pairs
from harness.report.sections.about_data import _label_sentences, data_section
from harness.report.sections.all_measures import measures_sentence
from harness.report.sections.decision import _board_note, decision_section
from harness.report.sections.fails import fails_section
from harness.report.sections.pairs import diagnose_view_pairs, pairs_section
from harness.report.sections.quality_counts import (
    ListedIds,
    count_field,
    list_shared_ids,
)
from harness.report.sections.query_groups import group_queries
from harness.report.sections.rerankers import find_rerankings, reranker_rows
from harness.report.sections.slices import slices_sentence
from harness.report.slice_comparison import (
    RowName,
    SliceComparison,
    SlicePair,
    compare_slice,
    compare_slices,
    decisive_slice,
    reversed_slices,
    view_slices,
)
from harness.report.view import beaten_letters, build_view
from harness.report.write import markdown_report
from harness.stats.settings import Settings
from harness.wording.conclusion import conclusion_headline
from retrievers.types import Query
from tests.support import layouts, small
from tests.support.scored import finding, scored, shown
from tests.support.theirs import install

WORDS = ("apples", "pears", "cars", "trains", "boats", "fish")
TEXTS = list(small.TEXTS)
BETTER = finding("better")


def query_row(i):
    """Odd queries name the document; even ones end with the last word of its text."""
    document = TEXTS[i % 6]
    text = f"the {small.TEXTS[document].split()[-1]} {i}"
    if i % 2:
        text = f"{WORDS[i % 6]} {i}"
    return {
        "id": f"q{i:02}",
        "query": text,
        "relevant_documents": [document],
        "tags": ["names" if i % 2 else "words"],
    }


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """48 queries of two kinds: half name the document."""
    folder = tmp_path_factory.mktemp("slices")
    rows = [query_row(i) for i in range(48)]
    path = small.dataset(folder / "data") / "queries.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return small.ran(folder, report=True)


@pytest.fixture(scope="module")
def view(results):
    return build_view(results)


def script_data(page, element_id):
    """The data of a page for its scripts."""
    text = page.read_text(encoding="utf-8")
    return unpack_json(re.search(rf'id="{element_id}">([^<]*)<', text)[1])


def scores_by_retriever(results, measure):
    """A frame of scores: one row per query, one column per retriever."""
    scores = results.scores[results.scores["measure"] == measure]
    return scores.pivot(index="query_id", columns="retriever", values="value")


@pytest.mark.parametrize("tag", ["names", "words"])
def test_a_slice_has_the_figures_of_scores_csv_and_the_p_of_tests_csv(
    view, results, tag
):
    a, b = view.ranked[:2]
    pair = compare_slices(view, a, b, view_slices(view))
    rows = {row.slice: row for row in pair.rows if row.family == "field tags"}
    row = rows[tag]
    scores = scores_by_retriever(results, view.primary)
    has_tag = [
        results.queries[query_id].query.fields["tags"] == tag
        for query_id in scores.index
    ]
    differences = scores[has_tag][a] - scores[has_tag][b]
    assert set(rows) == {"names", "words"}
    assert row.queries == len(differences) == 24
    assert row.wins + row.ties + row.losses == 24
    assert row.difference == pytest.approx(differences.mean(), abs=1e-12)
    assert row.wins == (differences > 1e-9).sum()
    assert row.losses == (differences < -1e-9).sum()
    tested = results.tests[results.tests["family"] == "field tags"]
    tested = tested[tested["a"].isin([a, b]) & tested["b"].isin([a, b])]
    assert row.p_adjusted == tested.set_index("note")["p_adjusted"][tag]


def test_the_first_row_of_slices_is_that_of_all_queries(view, results):
    a, b = view.ranked[:2]
    pair = compare_slices(view, a, b, view_slices(view))
    scores = scores_by_retriever(results, view.primary)
    expected = (scores[a] - scores[b]).mean()
    assert pair.rows[0].difference == pytest.approx(expected, abs=1e-12)


def slice_row(label, query_count, difference, *, differs=True, weight=0):
    """A row of slices; without a label that of all queries."""
    return SliceComparison(
        family="field tags" if label else "",
        slice=label or "all queries",
        queries=query_count,
        weight=weight or query_count,
        wins=0,
        ties=query_count,
        losses=0,
        difference=difference,
        low=None,
        high=None,
        p_adjusted=0.01 if differs else 0.4,
        differs=differs,
    )


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(
            (
                slice_row("", 100, 0.05),
                slice_row("vague", 25, 0.2),
                slice_row("keywords", 75, 0.0),
            ),
            "vague",
            id="all of the difference",
        ),
        pytest.param(
            (
                slice_row("", 100, 0.05),
                slice_row("vague", 25, 0.19),
                slice_row("keywords", 75, 0.25 / 75),
            ),
            None,
            id="most of the difference",
        ),
        pytest.param(
            (
                slice_row("", 60, 0.05, weight=30),
                slice_row("vague", 10, 0.15, weight=10),
                slice_row("others", 50, 0.0, weight=20),
            ),
            "vague",
            id="a sixth of the queries, a third of the weight",
        ),
        pytest.param(
            (
                slice_row("", 3, 0.1),
                slice_row("vague", 1, 0.3),
                slice_row("others", 2, 0.0),
            ),
            "vague",
            id="the others are ahead by float noise: 3 x 0.1 - 0.3",
        ),
        pytest.param(
            (
                slice_row("", 60, 0.05, weight=30),
                slice_row("vague", 10, 0.08, weight=20),
                slice_row("others", 50, -0.01, weight=10),
            ),
            None,
            id="most of the weight",
        ),
        pytest.param(
            (
                slice_row("", 100, 0.05),
                slice_row("most", 60, 5 / 60),
                slice_row("others", 40, 0.0),
            ),
            None,
            id="most of the queries",
        ),
        pytest.param(
            (
                slice_row("", 100, 0.05),
                slice_row("vague", 25, 0.2, differs=False),
            ),
            None,
            id="no test shows that the others differ",
        ),
    ],
)
def test_a_small_slice_is_decisive_if_the_other_queries_show_no_lead(rows, expected):
    row = decisive_slice(None, SlicePair("a", "b", rows))
    assert (row and row.slice) == expected


@pytest.mark.parametrize(
    ("gains", "weights", "difference"),
    [
        pytest.param(
            [0.1, 0.2, -0.1, 0.3],
            (4.0, 2.0, 1.0, 1.0),
            0.125,
            id="the weighted example of standard_error",
        ),
        pytest.param(
            [1.0, 1.0, 1.0, 0.5],
            (1.0,) * 4,
            0.875,
            id="Student's interval would end at 1.273",
        ),
    ],
)
def test_a_query_keeps_its_weight_in_a_slice(gains, weights, difference):
    values = {"a": np.array(gains), "b": np.zeros(4)}
    view = SimpleNamespace(
        n=4,
        primary="m",
        values_by_measure={"m": values},
        scores=scored(values, weights=weights),
        settings=Settings(),
    )
    everything = np.ones(4, dtype=np.bool_)
    row = compare_slice(view, ("a", "b"), everything, RowName("", ""))
    assert row.difference == pytest.approx(difference)
    assert row.weight == pytest.approx(sum(weights))
    assert -1 <= row.low < row.high <= 1


def test_a_slice_is_reversed_only_if_a_test_shows_it(view):
    rows = (
        slice_row("", 100, 0.05),
        slice_row("keywords", 40, -0.04),
        slice_row("long", 40, 0.2),
        slice_row("typos", 40, -0.04, differs=False),
    )
    (sentence,) = reversed_slices(view, SlicePair("minilm", "bm25", rows))
    assert sentence == (
        "On the 40 queries of tags: keywords, bm25 is ahead by 0.040 in nDCG@3, "
        "unlike on the other queries (adjusted p 0.0100)."
    )


@pytest.mark.parametrize(
    ("leads", "sentence"),
    [
        pytest.param(
            (0.2, -0.1),
            "a leads b most on “tags: x” (+0.200). On “tags: y” b is ahead by 0.100. "
            "Exploratory.",
            id="both",
        ),
        pytest.param(
            (0.2, 0.0),
            "a leads b most on “tags: x” (+0.200). On “tags: y” both score the same. "
            "Exploratory.",
            id="one",
        ),
        pytest.param(
            (0.0, 0.0),
            "a and b score the same on every slice. Exploratory.",
            id="neither",
        ),
    ],
)
def test_the_sentence_of_slices_says_which_retriever_is_ahead(leads, sentence):
    rows = (
        slice_row("", 40, sum(leads) / 2),
        slice_row("x", 20, leads[0]),
        slice_row("y", 20, leads[1]),
    )
    assert slices_sentence(SlicePair("a", "b", rows)) == sentence


def test_both_sides_of_a_slice_have_a_row_with_one_p(view):
    a, b = view.ranked[:2]
    rows = compare_slices(view, a, b, view_slices(view)).rows
    first, second = (row for row in rows if row.family == "field tags")
    assert {first.slice, second.slice} == {"names", "words"}
    assert first.queries + second.queries == view.n
    assert first.p_adjusted == second.p_adjusted


def test_retrievers_with_the_same_ids_share_one_list():
    many = tuple(f"q{i}" for i in range(21))
    lists = list_shared_ids({"bm25": ("q1",), "minilm": many, "hybrid": ("q1",)})
    assert lists == [
        ListedIds(("bm25", "hybrid"), ("q1",), is_cut=False),
        ListedIds(("minilm",), many[:20], is_cut=True),
    ]


def test_the_page_has_the_rankings_and_scores_of_the_folder(view, results):
    evidence = script_data(results.folder / "report.html", "evidence")
    scores = results.scores.set_index(["measure", "retriever", "query_id"])["value"]
    titles = evidence["documents"]
    assert evidence["retrievers"] == list(view.ranked)
    rows = list(zip(*evidence["columns"], strict=True))
    assert len(rows) == 48
    for number, retriever in enumerate(view.ranked):
        rankings = results.rankings(retriever)
        for query_id, _, query_scores, hits, *_ in rows:
            expected = scores[view.primary, retriever, query_id]
            assert query_scores[number] == pytest.approx(expected, abs=1e-4)
            shown = [titles[document] for document in hits[number]]
            assert shown == list(rankings[query_id].doc_ids[: view.cutoff])


def test_the_first_card_is_the_largest_loss_against_the_best_other(view):
    section = fails_section(view)
    card = section.context.browser.card
    scores = pd.DataFrame(view.values_by_measure[view.primary], index=view.ids)
    leader, *others = view.ranked
    gaps = scores[leader] - scores[others].max(axis=1)
    assert gaps[card.query.id] == gaps.min() < 0
    assert card.left.retriever == leader
    best = scores[others].loc[card.query.id]
    assert best[card.right.retriever] == best.max()
    lost = int((gaps < 0).sum())
    assert section.context.browser.sentence.startswith(
        f"{leader} lost {lost} of 48 queries"
    )


def test_a_link_of_a_card_joins_the_same_document(view):
    card = fails_section(view).context.browser.card
    for link in card.links:
        left = card.left.hits[link.left]
        right = card.right.hits[link.right]
        assert left.document == right.document
        assert left.grade == right.grade > 0
        assert link.is_lost == (link.right < link.left)


def test_any_two_retrievers_can_be_compared_on_the_slices(view, results):
    leads = script_data(results.folder / "report.html", "slice-leads")
    slices = view_slices(view)
    pairs = list(combinations(range(len(view.ranked)), 2))
    assert sorted((a, b) for a, b, _ in leads["pairs"]) == pairs
    for a, b, rows in leads["pairs"]:
        pair = compare_slices(view, view.ranked[a], view.ranked[b], slices)
        expected = [row.difference for row in pair.rows]
        assert [row[0] / 1000 for row in rows] == pytest.approx(expected, abs=6e-4)


def test_with_too_many_queries_the_page_lists_those_that_differ_most(
    results, monkeypatch
):
    monkeypatch.setattr("harness.report.view.MAX_PAGE_RANKINGS", 3 * 5)
    view = build_view(results)
    scores = np.column_stack([*view.values_by_measure[view.primary].values()])
    ranges = np.ptp(scores, axis=1)
    unlisted = set(view.order) - set(view.listed_queries)
    assert len(view.listed_queries) == 5 < len(view.order)
    assert min(ranges[i] for i in view.listed_queries) >= max(
        ranges[i] for i in unlisted
    )


def test_a_field_of_many_values_does_not_fill_the_page(view, monkeypatch):
    queries = [Query(str(i), "", {"id": f"value {i // 2:02}"}) for i in range(view.n)]
    small = small_slices(queries, [])
    monkeypatch.setattr(pairs, "small_slices", lambda *properties: small)
    context = pairs_section(view).context
    assert context.small_slices[0] == ("id: value 00", 2)
    assert len(context.small_slices) == 20
    assert context.unnamed_slices == 4


def test_answers_make_no_slices():
    # given queries that have one of two topics, and an answer of their own each
    queries = [
        Query(str(i), "", {"answer": f"It costs {i} euros.", "topic": "ab"[i > 7]})
        for i in range(15)
    ]
    # when
    small = small_slices(queries, [])
    # then the topics alone are listed
    assert {slice_.name.property_name for slice_ in small} == {"field topic"}


@pytest.mark.parametrize(
    ("texts", "values", "distinct"),
    [
        pytest.param(["a, b", "a", "b"], [("a", 2), ("b", 2)], 2, id="lists"),
        pytest.param(["a, b,", "a", "", "b"], [("a", 2), ("b", 2)], 2, id="empty"),
        pytest.param(
            ["At most 140 euros, in Paris 200.", "Second class.", "Yes."],
            [],
            3,
            id="an answer each",
        ),
        pytest.param(
            ["It is at most 140 euros, as always."] * 2,
            [("It is at most 140 euros, as always.", 2)],
            1,
            id="one prose text",
        ),
    ],
)
def test_prose_of_queries_is_no_list_of_values(texts, values, distinct):
    assert count_field("notes", texts) == ("notes", values, distinct)


MEASURED = {
    "stages": (),
    "measured_at": "",
    "price_keys": ("encoder.price",),
    "is_cached": False,
}


@pytest.mark.parametrize(
    ("prices", "latencies", "sentences"),
    [
        pytest.param(
            (None, 1.0, 0.0),
            (None, None, None),
            [
                "Latency was not measured: set `[latency] sample = 20`.",
                "The price of {0} is unknown: set `encoder.price`.",
            ],
            id="unknown",
        ),
        pytest.param(
            (0.0, 0.0, 0.0),
            (320.0, 10.0, 20.0),
            [
                "Of the three that may be best, {1} is the fastest.",
                "All cost $0 per million queries.",
            ],
            id="local",
        ),
        pytest.param(
            (2.0, 1.0, 3.0),
            (320.0, None, 20.0),
            [
                "The latency of {1} was not measured.",
                "{1} is the cheapest: $1.00 per million queries.",
            ],
            id="priced",
        ),
        pytest.param(
            (1.0, 1.0, 3.0),
            (13.0, 13.1, 12.9),
            [],
            id="equal but for noise",
        ),
    ],
)
def test_costs_in_sentences(view, monkeypatch, prices, latencies, sentences):
    costs = {}
    for name, price, p95 in zip(view.ranked, prices, latencies, strict=True):
        p50 = None if p95 is None else 0.8 * p95
        costs[name] = SimpleNamespace(
            usd_per_million=price, p50=p50, p95=p95, **MEASURED
        )
    monkeypatch.setattr(cost_sentences, "retriever_costs", lambda results: costs)
    undecided = shown(
        view.evaluation, **dict.fromkeys(view.evaluation.others, "undecided")
    )
    told = cost_sentences.cost_sentences(
        replace(view, evaluation=undecided.model_copy(update={"choice": None}))
    )
    assert told == [sentence.format(*view.ranked) for sentence in sentences]


def test_the_leaders_pairs_come_first_with_the_higher_mean_as_a(view):
    comparisons = {(row.a, row.b): row for row in view.comparisons[view.primary]}
    rows = pairs_section(view).context.rows
    pairs = [(row.a, row.b) for row in rows]
    assert pairs == list(combinations(view.ranked, 2))
    assert pairs != list(comparisons)
    for row in rows:
        stored = comparisons.get((row.a, row.b)) or comparisons[row.b, row.a].swapped
        assert row == stored
        means = view.evaluation.means
        assert row.mean_difference == pytest.approx(means[row.a] - means[row.b])


def test_of_many_pairs_only_those_of_leader_and_baseline_are_listed(view, monkeypatch):
    all_rows = pairs_section(view).context.rows
    monkeypatch.setattr(pairs, "MAX_TEST_ROWS", 2)
    section = pairs_section(view)
    assert section.context.rows == all_rows[:2]
    assert section.context.unlisted == 1
    markdown = markdown_report(view, [section])
    assert markdown.count("1 row without the leader and the baseline") == 1


@pytest.mark.parametrize(
    ("verdict", "headline"),
    [
        ("worse", "{leader} leads"),
        ("undecided", "Undecided"),
    ],
)
def test_the_headline_does_not_deny_a_difference_that_a_test_shows(
    view, verdict, headline
):
    """Nothing is shown about the leader, but about the two others."""
    leader, second, third = view.ranked
    undecided = shown(view.evaluation, **dict.fromkeys((second, third), "undecided"))
    rows = []
    for row in view.comparisons[view.primary]:
        text = verdict if {row.a, row.b} == {second, third} else "undecided"
        rows.append(replace(row, finding=finding(text)))
    evaluation = undecided.model_copy(
        update={"comparisons": {view.primary: tuple(rows)}}
    )
    assert conclusion_headline(evaluation) == headline.format(leader=leader)


@pytest.fixture(scope="module")
def baseline_view(tmp_path_factory):
    """With a baseline, only its pairs are tested."""
    folder = small.ran(tmp_path_factory.mktemp("baseline"), more='baseline = "bm25"')
    return build_view(records.read_results(folder.folder))


def test_every_pair_is_diagnosed_also_one_that_no_test_compares(baseline_view):
    pairs = [sorted((row.a, row.b)) for row in diagnose_view_pairs(baseline_view)]
    assert sorted(pairs) == [
        ["bm25", "hashing"],
        ["bm25", "hybrid"],
        ["hashing", "hybrid"],
    ]


def test_diagnostics_count_the_common_hits(baseline_view):
    """The depth is 5: these are all hits."""
    for row in diagnose_view_pairs(baseline_view):
        rankings_of_a = baseline_view.results.rankings(row.a)
        rankings_of_b = baseline_view.results.rankings(row.b)
        shares = []
        for query_id, ranking in rankings_of_a.items():
            hits_of_b = rankings_of_b[query_id].doc_ids
            common = len({*ranking.doc_ids} & {*hits_of_b})
            shares.append(common / max(len(ranking.doc_ids), len(hits_of_b)))
        assert row.top_10_in_common == pytest.approx(sum(shares) / len(shares))
        assert 0 < row.rbo <= 1


def test_compare_prints_the_diagnostics_of_the_page(baseline_view, capsys):
    output = small.told(
        capsys,
        "compare",
        baseline_view.results.folder,
        "--measure",
        baseline_view.primary,
        "--baseline",
        "bm25",
        "--json",
    )
    diagnostics = diagnose_view_pairs(baseline_view)
    assert json.loads(output)["evidence"] == [row._asdict() for row in diagnostics]


def test_pairs_beyond_the_budget_are_counted(baseline_view, monkeypatch):
    monkeypatch.setattr(pairs, "MAX_PAIR_QUERIES", 2 * baseline_view.n)
    assert pairs_section(baseline_view).context.undiagnosed == 1


@pytest.fixture(scope="module")
def failing_view(tmp_path_factory):
    """Every query has the text of a document, and another one is relevant."""
    folder = tmp_path_factory.mktemp("failing")
    texts = {}
    grades = {}
    for document, relevant in permutations(TEXTS, 2):
        query_id = f"{document}-{relevant}"
        texts[query_id] = small.TEXTS[document]
        grades[query_id] = {"fish": 0} | {relevant: 1}
    collection = layouts.Collection(small.TEXTS, texts, grades)
    layouts.beir(folder / "data", collection)
    return build_view(small.ran(folder))


def test_the_queries_that_the_leader_lost_come_first(failing_view):
    lost, every = group_queries(failing_view)
    scores = failing_view.values_by_measure[failing_view.primary]
    leader, *others = failing_view.ranked
    best = np.max([scores[name] for name in others], axis=0)
    expected = {
        query_id
        for query_id, gap in zip(failing_view.ids, scores[leader] - best, strict=True)
        if gap < 0
    }
    assert lost.title == f"Lost by {leader}"
    assert set(lost.query_ids) == expected != set()
    assert every.count == failing_view.n


def test_a_query_that_float_noise_separates_is_not_lost(failing_view):
    primary = failing_view.primary
    leader, *others = failing_view.ranked
    noisy = {name: np.full(failing_view.n, 0.1 + 0.2) for name in others}
    scores = {**noisy, leader: np.full(failing_view.n, 0.3)}
    values = {**failing_view.scores.values, primary: scores}
    view = replace(failing_view, scores=replace(failing_view.scores, values=values))
    assert [group.title for group in group_queries(view)] == ["All queries"]


def test_each_query_has_its_relevant_documents_of_those_with_a_label(failing_view):
    notes = data_section(failing_view).context.notes
    assert "Each query has 1 relevant document." in notes  # and one that is irrelevant


def test_a_leader_with_the_fewest_labelled_hits_has_its_share_once(view):
    leader, *others = view.ranked
    shares = {leader: 0.25, **dict.fromkeys([*others, "c", "d", "e"], 0.5)}
    means = {**view.evaluation.means, **dict.fromkeys("cde", 0.0)}
    changes = {"judged_shares": shares, "means": means}
    evaluation = view.evaluation.model_copy(update=changes)
    sentences = list(_label_sentences(replace(view, evaluation=evaluation)))
    assert sentences[1].endswith(f" documents: {leader} 25 %.")


@pytest.mark.parametrize(("test", "heads"), [("wilcoxon", 0), ("t", 2)])
def test_only_the_p_of_a_test_of_means_is_called_so(view, test, heads):
    settings = replace(view.settings, test=test)
    evaluation = view.evaluation.model_copy(update={"settings": settings})
    tested = replace(view, evaluation=evaluation)
    sections = [decision_section(tested), pairs_section(tested)]
    assert markdown_report(tested, sections).count("| p (mean) |") == heads


def test_of_more_retrievers_than_letters_the_numbers_of_the_beaten_rise(view):
    names = [f"r{i:02}" for i in range(30)]
    rows = tuple(
        replace(view.comparisons[view.primary][0], a="r00", b=name, finding=BETTER)
        for name in names[1:]
    )
    many = SimpleNamespace(ranked=names, comparisons={"m": rows})
    numbers = beaten_letters(many, "m")["r00"].split()
    assert numbers == [str(number) for number in range(2, 31)]


def test_every_query_is_in_the_last_group_the_worst_first(failing_view):
    *_, every = group_queries(failing_view)
    assert (every.title, every.count) == ("All queries", failing_view.n)
    scores = failing_view.values_by_measure[failing_view.primary]
    leader, *others = failing_view.ranked
    gaps = scores[leader] - np.max([scores[name] for name in others], axis=0)
    in_order = [gaps[failing_view.ids.index(one)] for one in every.query_ids]
    assert in_order == sorted(in_order)


RERANKED = """[[retrievers]]
name = "reranked"
of = "bm25"
rerank = { kind = "shorter", depth = 3 }
"""


@pytest.fixture
def reranked(tmp_path, monkeypatch):
    """A run with a reranked retriever."""
    install(tmp_path, monkeypatch)
    return small.ran(tmp_path, retrievers=small.RETRIEVERS + RERANKED, report=True)


def test_the_ceiling_bounds_the_scores_of_a_reranker(reranked):
    ceiling = find_rerankings(build_view(reranked))["reranked"].ceiling
    scores = scores_by_retriever(reranked, "nDCG@3")
    best = scores[["reranked", "bm25"]].max(axis=1)
    assert (ceiling >= best.to_numpy() - 1e-6).all()


def test_the_row_of_a_reranker_has_the_means_and_counts_of_the_scores(reranked):
    (row,) = reranker_rows(build_view(reranked))
    scores = scores_by_retriever(reranked, "nDCG@3")
    differences = scores["reranked"] - scores["bm25"]
    assert (row.retriever, row.first_stage, row.depth) == ("reranked", "bm25", 3)
    assert row.before == pytest.approx(scores["bm25"].mean())
    assert row.after == pytest.approx(scores["reranked"].mean())
    assert row.wins == (differences > 1e-9).sum()
    assert row.ties == (differences.abs() <= 1e-9).sum()
    assert row.losses == (differences < -1e-9).sum()


def test_the_row_of_a_reranker_has_the_mean_ceiling(reranked):
    (row,) = reranker_rows(build_view(reranked))
    expected = find_rerankings(build_view(reranked))["reranked"].ceiling.mean()
    assert row.ceiling == pytest.approx(expected, abs=1e-6)
    uplift = reranked.tests[reranked.tests["family"] == "rerank uplift"]
    assert uplift["note"].tolist() == [f"ceiling {row.ceiling:.4f}"]


def test_the_page_has_a_section_of_rerankers(reranked):
    page = (reranked.folder / "report.html").read_text(encoding="utf-8")
    assert 'id="reranked-title">Rerankers<' in page


def test_a_best_mean_that_two_retrievers_share_is_called_so(view):
    summary = dict(view.evaluation.summary)
    leader = summary["R@2"][view.evaluation.leader]
    summary["R@2"] = dict.fromkeys(view.ranked, leader)
    evaluation = view.evaluation.model_copy(update={"summary": summary})
    sentence = measures_sentence(replace(view, evaluation=evaluation))
    assert "shared on R@2" in sentence
    assert "together" not in measures_sentence(view)
    noise = replace(leader, mean=leader.mean + 1e-15)
    summary["R@2"] |= {view.ranked[1]: noise}
    evaluation = view.evaluation.model_copy(update={"summary": summary})
    assert measures_sentence(replace(view, evaluation=evaluation)) == sentence


def test_beside_a_failed_retriever_the_interval_is_of_this_pair(view):
    finished = view.evaluation.board.rows[:2]
    failed = replace(finished[1], retriever="gone", standing="failed", mean=None)
    board = replace(view.evaluation.board, rows=(*finished, failed))
    assert "CI: this pair" in _board_note(view, board)


def test_queries_that_only_a_model_judged_are_counted_beside_a_file_of_labels(tmp_path):
    queries = small.dataset(tmp_path / "data") / "queries.json"
    rows = json.loads(queries.read_text(encoding="utf-8"))
    rows[0]["labelled_by"] = "llm:judge"
    queries.write_text(json.dumps(rows), encoding="utf-8")
    page = small.ran(tmp_path, report=True).folder / "report.html"
    sentence = "People judged 5 queries, only a model 1. The tests use the queries"
    assert sentence in page.read_text(encoding="utf-8")
