"""The sections: where the difference comes from, what may change the decision, which queries fail alike, rerankers."""

import json
import re
from dataclasses import replace
from itertools import combinations, permutations
from types import SimpleNamespace

import numpy as np
import pytest

from harness import records
from harness.evaluation.verdict import Finding, Reason, Verdict
from harness.report.sections import decision, queries, tests
from harness.report.sections.misses import group_queries, miss_causes
from harness.report.sections.page_budget import queries_that_fit, unpack_json
from harness.report.sections.rerankers import reranker_rows
from harness.report.sections.slices import (
    SliceComparison,
    SlicePair,
    compare_slice,
    compare_slices,
    decisive_slice,
    labels_by_family,
    reversed_slices,
)
from harness.report.sections.tests import diagnose_view_pairs, statistics_section
from harness.report.view import build_view
from harness.report.write import markdown_report
from harness.stats.settings import Settings
from harness.wording.conclusion import conclusion_headline as headline_of
from tests.support import layouts, small
from tests.support.scored import finding, scored, shown
from tests.support.theirs import install

WORDS = ("apples", "pears", "cars", "trains", "boats", "fish")
TEXTS = list(small.TEXTS)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """48 queries of two kinds: half name the thing, half name what nothing has."""
    folder = tmp_path_factory.mktemp("slices")
    data = small.dataset(folder / "data")
    queries = [
        {
            "id": f"q{i:02}",
            "query": f"{WORDS[i % 6]} {i}"
            if i % 2
            else f"the {small.TEXTS[TEXTS[i % 6]].split()[-1]} {i}",
            "relevant_documents": [TEXTS[i % 6]],
            "tags": ["names" if i % 2 else "words"],
        }
        for i in range(48)
    ]
    (data / "queries.json").write_text(json.dumps(queries), encoding="utf-8")
    return small.ran(folder, report=True)


@pytest.fixture(scope="module")
def view(results):
    return build_view(results)


def held_by(page, name):
    """What a page holds for its scripts."""
    return unpack_json(
        re.search(rf'id="{name}">([^<]*)<', page.read_text(encoding="utf-8"))[1]
    )


def test_every_slice_has_the_figures_of_scores_csv_and_the_p_of_tests_csv(
    view, results
):
    a, b = view.ranked[:2]
    pair = compare_slices(view, a, b, labels_by_family(view))
    table = results.scores[results.scores["measure"] == view.primary].pivot(
        index="query_id", columns="retriever", values="value"
    )
    tags = {
        query_id: judged.query.fields["tags"]
        for query_id, judged in results.queries.items()
    }
    rows = {row.slice: row for row in pair.rows if row.family == "field tags"}
    assert set(rows) == {"names", "words"}
    tested = results.tests[
        (results.tests["family"] == "field tags") & results.tests["a"].isin([a, b])
    ]
    tested = tested[tested["b"].isin([a, b])].set_index("note")["p_adjusted"]
    for tag, row in rows.items():
        part = table[[tags[query_id] == tag for query_id in table.index]]
        apart = part[a] - part[b]
        assert row.queries == len(part) == 24 == row.wins + row.ties + row.losses
        assert row.difference == pytest.approx(apart.mean(), abs=1e-12)
        assert (row.wins, row.losses) == (
            int((apart > 1e-9).sum()),
            int((apart < -1e-9).sum()),
        )
        assert row.p_adjusted == tested[tag]
    assert pair.rows[0].difference == pytest.approx(
        (table[a] - table[b]).mean(), abs=1e-12
    )


def one(slice_, queries, difference, finding=None, *, weight=0):
    family, counts = (
        "field tags" if slice_ else "",
        (queries, weight or queries, 0, queries, 0),
    )
    return SliceComparison(
        family,
        slice_ or "all queries",
        *counts,
        difference,
        None,
        None,
        0.01 if finding else None,
        finding,
    )


@pytest.mark.parametrize(
    ("rows", "decisive"),
    [
        (
            (one("", 100, 0.05), one("vague", 25, 0.2), one("keywords", 75, 0.0)),
            "vague",
        ),
        (
            (
                one("", 100, 0.05),
                one("vague", 25, 0.19),
                one("keywords", 75, 0.25 / 75),
            ),
            None,
        ),
        # A sixth of the queries, with a third of the weight and all of the lead.
        (
            (
                one("", 60, 0.05, weight=30),
                one("vague", 10, 0.15, weight=10),
                one("rest", 50, 0.0, weight=20),
            ),
            "vague",
        ),
        # The rest is ahead by float noise alone: 3 x 0.1 - 0.3.
        ((one("", 3, 0.1), one("vague", 1, 0.3), one("rest", 2, 0.0)), "vague"),
        # Most of the queries, or of the weight, carry most of the difference: that is no news.
        (
            (
                one("", 60, 0.05, weight=30),
                one("vague", 10, 0.08, weight=20),
                one("rest", 50, -0.01, weight=10),
            ),
            None,
        ),
        ((one("", 100, 0.05), one("most", 60, 5 / 60), one("rest", 40, 0.0)), None),
    ],
)
def test_a_slice_carries_the_difference_only_where_the_rest_shows_none(rows, decisive):
    slice_row = decisive_slice(None, SlicePair("a", "b", rows))
    assert (slice_row and slice_row.slice) == decisive


@pytest.mark.parametrize(
    ("gains", "weights", "difference"),
    [
        (
            [0.1, 0.2, -0.1, 0.3],
            (4.0, 2.0, 1.0, 1.0),
            0.125,
        ),  # the known answer of DEFINITIONS
        ([1.0, 1.0, 1.0, 0.5], (1.0,) * 4, 0.875),
    ],  # Student's interval would end at 1.273
)
def test_a_query_keeps_its_weight_in_whatever_order_a_slice_names_its_queries(
    gains, weights, difference
):
    values = {"a": np.array(gains), "b": np.zeros(4)}
    table = scored(values, weights=weights)
    view = SimpleNamespace(
        n=4,
        primary="m",
        values_by_measure={"m": values},
        scores=table,
        settings=Settings(),
    )
    row = compare_slice(view, ("a", "b"), [3, 1, 0, 2], ("", ""))
    assert (row.difference, row.weight) == pytest.approx((difference, sum(weights)))
    assert -1 <= row.low < row.high <= 1


def test_a_slice_turns_only_where_a_test_shows_it(view):
    rows = (
        one("", 100, 0.05),
        one("keywords", 40, -0.04, Finding(Verdict.WORSE)),
        one("long", 40, 0.2, Finding(Verdict.BETTER)),
        one("typos", 40, -0.04, Finding(Verdict.UNDECIDED, Reason.NOT_SHOWN)),
    )
    (sentence,) = reversed_slices(view, SlicePair("minilm", "bm25", rows))
    assert sentence.startswith(
        "On the 40 queries of tags: keywords, bm25 is ahead by 0.040 in nDCG@3"
    )


def test_scores_of_the_page_are_those_of_the_folder_and_those_of_hits_those_of_the_rankings(
    view, results
):
    page_scores = held_by(results.folder / "report.html", "scores")
    scores = results.scores.set_index(["measure", "retriever", "query_id"])["value"]
    for m, measure in enumerate(page_scores["measures"]):
        for r, retriever in enumerate(page_scores["retrievers"]):
            expected = [
                scores[measure, retriever, query] for query in page_scores["ids"]
            ]
            assert page_scores["values"][m][r] == pytest.approx(expected, abs=1e-6)
    page = queries_that_fit(view, ())
    for index, name in enumerate(view.ranked):
        rankings = results.rankings(name)
        for query, scores in zip(
            page.rows["queries"],
            unpack_json(page.packed_texts)["scores"],
            strict=True,
        ):
            assert scores[index] == pytest.approx(
                rankings[query["id"]].scores.tolist(), rel=1e-2
            )


def test_beyond_its_room_the_page_keeps_the_first_measures_and_the_queries_that_differ_most(
    view, results, monkeypatch
):
    monkeypatch.setattr(queries, "MAX_FILTER_SCORES", 2 * view.n * len(view.ranked))
    filter_data = queries.filter_data(view)
    assert filter_data["measures"] == [
        view.names[measure].short for measure in view.measures[:2]
    ]
    assert filter_data["left"] == len(view.measures) - 2
    monkeypatch.setattr(queries, "MAX_FILTER_SCORES", 1)
    assert len(queries.filter_data(view)["values"]) == 1  # the primary one always
    monkeypatch.setattr("harness.report.view.MAX_PAGE_RANKINGS", 3 * 5)
    thinned = build_view(results)
    ranges = {
        i: np.ptp(
            [
                scores[i]
                for scores in thinned.values_by_measure[thinned.primary].values()
            ]
        )
        for i in thinned.order
    }
    assert len(thinned.listed_queries) == 5 < len(thinned.order)
    assert min(ranges[i] for i in thinned.listed_queries) >= max(
        ranges[i] for i in set(thinned.order) - set(thinned.listed_queries)
    )
    kinds = {"field id": [f"value {i:02}" for i in range(view.n)]}
    monkeypatch.setattr(tests, "slice_labels", lambda queries, cluster: kinds)
    context = statistics_section(
        view
    ).context  # a field of many values does not fill the page
    assert (context["small_slices"][0], len(context["small_slices"])) == (
        ("id: value 00", 1),
        20,
    )
    assert context["small_left"] == 28


@pytest.mark.parametrize(
    ("prices", "sentence"),
    [((None, 1.0), ""), ((2.0, 2.0), ""), ((2.0, 1.0), " Cheapest: y.")],
)
def test_the_cheapest_of_equals_is_named_where_every_price_is_known(
    view, monkeypatch, prices, sentence
):
    costs = {
        "xy"[i]: SimpleNamespace(usd_per_million=usd, p95=None, vector_bytes=0.0)
        for i, usd in enumerate(prices)
    }
    monkeypatch.setattr(decision, "retriever_costs", lambda results: costs)
    (comparison, *_) = view.evaluation.leader_comparisons.values()
    evaluation = view.evaluation.model_copy(
        update={"means": {"x": 0.5, "y": 0.5}, "leader_comparisons": {"y": comparison}}
    )
    assert (
        decision._cheapest(
            SimpleNamespace(results=None, evaluation=shown(evaluation, y="equivalent"))
        )
        == sentence
    )


def test_the_leaders_pairs_come_first_and_a_pair_that_is_turned_says_the_same(
    view, monkeypatch
):
    comparisons = {(row.a, row.b): row for row in view.comparisons[view.primary]}
    context = statistics_section(view).context
    assert (
        [(row.a, row.b) for row in context["rows"]]
        == list(combinations(view.ranked, 2))
        != list(comparisons)
    )
    monkeypatch.setattr(tests, "MAX_TEST_ROWS", 2)
    short_section = statistics_section(view)
    assert (short_section.context["rows"], short_section.context["left"]) == (
        context["rows"][:2],
        1,
    )
    assert (
        markdown_report(view, [short_section]).count(
            "1 row without the leader and the baseline"
        )
        == 1
    )
    for row in context["rows"]:
        assert row == (
            comparisons.get((row.a, row.b)) or comparisons[row.b, row.a].swapped
        )
        assert row.mean_difference == pytest.approx(
            view.evaluation.means[row.a] - view.evaluation.means[row.b]
        )


def test_the_headline_does_not_deny_a_difference_that_a_test_shows(view):
    """Nobody is told from the leader, yet two others are told from each other."""
    leader, second, third = view.ranked
    result = shown(view.evaluation, **dict.fromkeys((second, third), "undecided"))
    for verdict, headline in (
        ("worse", f"{leader} leads; undecided against all others"),
        ("undecided", "Undecided: no difference is shown between the 3 retrievers"),
    ):
        rows = tuple(
            replace(
                row,
                finding=finding(
                    verdict if {row.a, row.b} == {second, third} else "undecided"
                ),
            )
            for row in view.comparisons[view.primary]
        )
        assert (
            headline_of(result.model_copy(update={"comparisons": {view.primary: rows}}))
            == headline
        )


def test_every_pair_has_its_evidence_also_those_that_no_test_compares(
    tmp_path, capsys, monkeypatch
):
    folder = small.ran(tmp_path, more='baseline = "bm25"').folder
    view = build_view(records.read_results(folder))
    rows = {(row.a, row.b): row for row in diagnose_view_pairs(view)}
    assert sorted(map(sorted, rows)) == [
        ["bm25", "hashing"],
        ["bm25", "hybrid"],
        ["hashing", "hybrid"],
    ]
    for (a, b), row in rows.items():
        rankings = [view.results.rankings(name) for name in (a, b)]
        shares = [
            len({*ranking.doc_ids} & {*rankings[1][query].doc_ids})
            / max(len(ranking.doc_ids), len(rankings[1][query].doc_ids))
            for query, ranking in rankings[0].items()
        ]
        assert row.top_10_in_common == pytest.approx(
            sum(shares) / len(shares)
        )  # depth is 5: these are all of them
        assert 0 < row.rbo <= 1
    output = json.loads(
        small.told(
            capsys,
            "compare",
            folder,
            "--measure",
            view.primary,
            "--baseline",
            "bm25",
            "--json",
        )
    )
    assert output["evidence"] == [row._asdict() for row in rows.values()]
    monkeypatch.setattr(tests, "MAX_PAIR_QUERIES", 2 * view.n)
    assert statistics_section(view).context["evidence_left_out"] == 1


def found_within(view, depth):
    """Retriever -> the queries with a relevant document among so many hits."""
    relevant = {
        query: {doc for doc, grade in judged.items() if grade > 0}
        for query, judged in view.grades.items()
    }
    rankings = {name: view.results.rankings(name) for name in view.ranked}
    return {
        name: {
            query
            for query, ranking in of.items()
            if relevant[query] & {*ranking.doc_ids[:depth]}
        }
        for name, of in rankings.items()
    }


def test_queries_that_fail_alike_are_grouped_and_every_miss_has_a_cause(tmp_path):
    wrong = {
        f"{one}-{other}": (small.TEXTS[one], {other: 1, "fish": 0} | {other: 1})
        for one, other in permutations(TEXTS, 2)
    }
    queries, grades = ({id_: both[at] for id_, both in wrong.items()} for at in (0, 1))
    layouts.beir(tmp_path / "data", layouts.Collection(small.TEXTS, queries, grades))
    view = build_view(small.ran(tmp_path))
    near, far = found_within(view, 3), found_within(view, 5)
    hits = {query: [name for name in near if query in near[name]] for query in view.ids}
    expected = {"nobody": {query for query in hits if not hits[query]}}
    expected["deep"] = expected["nobody"] & set.union(*far.values())
    expected |= {
        f"only-{name}": {query for query in hits if hits[query] == [name]}
        for name in near
    }
    members = {
        group.key: {view.ids[place] for place in group.query_indices}
        for group in group_queries(view)
    }
    assert all(expected[key] for key in ("nobody", "deep", "only-hashing", "only-bm25"))
    assert {key: members.get(key, set()) for key in expected} == expected
    found = miss_causes(view)
    assert "its first hit has no label" in {
        one for why in found.values() for one in why.values()
    }
    for place, query in enumerate(view.ids):
        why = found.get(place, {})
        assert set(why) == {name for name in near if query not in near[name]}
        for name, said in why.items():
            assert bool(re.search(r"rank \d", said)) == (query in far[name])
            parts = [part for part in view.resolved.uses(name) if query in near[part]]
            assert said.startswith("lost") == bool(parts)
    cut = records.RetrieverQuality(notes={"truncated": tuple(small.TEXTS)})
    ledger = replace(
        view.manifest.ledger,
        retrievers={**view.manifest.ledger.retrievers, "hashing": cut},
    )
    altered = build_view(
        replace(view.results, manifest=replace(view.manifest, ledger=ledger))
    )
    members = {group.key: len(group.query_indices) for group in group_queries(altered)}
    assert any(
        "read only the start" in why.get("hashing", "")
        for why in miss_causes(altered).values()
    )
    assert members["cut-hashing"] == view.n - len(near["hashing"]) > 0
    assert "cut-bm25" not in members


RERANKED = '[[retrievers]]\nname = "reranked"\nof = "bm25"\nrerank = { kind = "shorter", depth = 3 }\n'


def test_the_ceiling_bounds_what_a_reranker_reaches(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch)
    run = small.ran(tmp_path, retrievers=small.RETRIEVERS + RERANKED, report=True)
    evidence = held_by(run.folder / "report.html", "evidence")
    names = [retriever["name"] for retriever in evidence["retrievers"]]
    reranked, first_stage = names.index("reranked"), names.index("bm25")
    assert evidence["retrievers"][reranked]["before"] == first_stage
    ceilings = [query["ceilings"][str(reranked)] for query in evidence["queries"]]
    for ceiling, query in zip(ceilings, evidence["queries"], strict=True):
        assert (
            ceiling
            >= max(query["scores"][reranked], query["scores"][first_stage]) - 1e-6
        )
    (row,) = reranker_rows(build_view(run))
    scores = run.scores[run.scores["measure"] == "nDCG@3"].pivot(
        index="query_id", columns="retriever", values="value"
    )
    assert (row["retriever"], row["of"], row["depth"]) == ("reranked", "bm25", 3)
    assert (row["before"], row["after"]) == pytest.approx(
        (scores["bm25"].mean(), scores["reranked"].mean())
    )
    assert row["ceiling"] == pytest.approx(sum(ceilings) / len(scores), abs=1e-6)
    (note,) = run.tests[run.tests["family"] == "rerank uplift"]["note"]
    assert note == f"ceiling {row['ceiling']:.4f}"
    differences = scores["reranked"] - scores["bm25"]
    kinds = (differences > 1e-9, differences.abs() <= 1e-9, differences < -1e-9)
    assert (row["better"], row["equal"], row["worse"]) == tuple(
        int(kind.sum()) for kind in kinds
    )
    assert 'id="reranked-title">Rerankers<' in (run.folder / "report.html").read_text(
        encoding="utf-8"
    )
