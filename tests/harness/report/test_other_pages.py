"""The pages of rankings without labels, and of several data sets."""

import re
from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import harness
from harness import records
from harness.evaluation.compare_sets import compare_sets_of_folder
from harness.evaluation.judging_effort import judging_effort
from harness.evaluation.pair_diagnostics import ranking_overlap
from harness.evaluation.sets import compare_over_sets
from harness.evaluation.verdict import Verdict
from harness.report.query_evidence import unpack_json
from harness.report.results_listing import list_results
from harness.report.unlabelled_page import (
    read_unlabelled_view,
    unlabelled_evidence,
    unlabelled_page,
)
from harness.report.write import write_report
from harness.scoring.scores import Scores
from harness.stats.settings import Settings
from harness.wording.sets import sets_verdict
from harness.wording.short_verdict import short_sets_verdict
from retrievers import Function
from tests.support import small
from tests.support.browser import axe, complaints, needs_browser, resize, settled
from tests.support.small_texts import TEXTS


@pytest.fixture(scope="module")
def unlabelled(tmp_path_factory):
    """Rankings of three retrievers on queries without labels."""
    folder = tmp_path_factory.mktemp("unlabelled")
    small.dataset(folder / "data", labelled=False)
    return small.ran(folder, report=True)


def read_page(results):
    return (results.folder / "report.html").read_text(encoding="utf-8")


def test_the_query_with_most_documents_to_label_is_first(unlabelled):
    view = read_unlabelled_view(unlabelled, shows_texts=True)
    evidence = unlabelled_evidence(view)
    pools = {
        query_id: len(
            {
                doc
                for name in unlabelled.retrievers
                for doc in unlabelled.rankings(name)[query_id].doc_ids[:10]
            }
        )
        for query_id in unlabelled.queries
    }
    assert [query.amount for query in evidence.queries] == sorted(
        map(str, pools.values()), reverse=True
    )
    assert {query.id: int(query.amount) for query in evidence.queries} == pools


def test_a_box_counts_the_retrievers_that_have_the_document(unlabelled):
    view = read_unlabelled_view(unlabelled, shows_texts=True)
    evidence = unlabelled_evidence(view)
    for query in evidence.queries:
        finders = Counter(document for hits in query.hits for document in hits)
        boxes = {label.document: label.grade for label in query.labelled}
        assert boxes == {doc: count for doc, count in finders.items() if count > 1}


def test_the_pair_that_is_shown_shares_least_but_something(unlabelled):
    evidence = unlabelled_evidence(read_unlabelled_view(unlabelled, shows_texts=True))
    for query in evidence.queries:
        shared = {
            pair: len(set(query.hits[pair[0]]) & set(query.hits[pair[1]]))
            for pair in combinations(range(3), 2)
        }
        positive = [count for count in shared.values() if count]
        assert shared[query.pair] == min(positive, default=0)


def test_groups_count_the_queries_for_which_the_page_has_no_room(
    unlabelled, monkeypatch
):
    view = read_unlabelled_view(unlabelled, shows_texts=True)
    whole = {group.title: group.total for group in unlabelled_evidence(view).groups}
    monkeypatch.setattr("harness.report.unlabelled_page.MAX_PAGE_BYTES", 1)
    evidence = unlabelled_evidence(view)
    assert len(evidence.queries) == 1
    assert {group.title: group.total for group in evidence.groups} == whole
    assert {number for group in evidence.groups for number in group.queries} == {0}


def test_a_query_without_hits_has_no_first_document(unlabelled):
    view = read_unlabelled_view(unlabelled, shows_texts=True)
    query_ids = list(view.first_hits)
    hits = dict(view.first_hits)
    hits[query_ids[0]] = {"bm25": (), "hashing": (), "hybrid": ()}
    hits[query_ids[1]] = {"bm25": (), "hashing": ("a",), "hybrid": ("a",)}
    hits[query_ids[2]] = {"bm25": (), "hashing": ("a",), "hybrid": ("b",)}
    evidence = unlabelled_evidence(replace(view, first_hits=hits))
    groups = {
        group.title: {evidence.queries[number].id for number in group.queries}
        for group in evidence.groups
    }
    shown = groups.get("The same first document in all", set())
    shown |= groups.get("Three different first documents", set())
    assert shown.isdisjoint(query_ids[:3])


def test_the_table_has_the_documents_in_common(unlabelled):
    page = read_page(unlabelled)
    rankings = {
        name: {
            query_id: ranking.doc_ids
            for query_id, ranking in unlabelled.rankings(name).items()
        }
        for name in unlabelled.retrievers
    }
    for a, b in combinations(unlabelled.retrievers, 2):
        common = ranking_overlap(a, b, rankings).common
        cell = rf'data-label="with {b}"><span class="heat\d">{common:.1f}<'
        assert re.search(cell, page), (a, b)


def test_markdown_has_the_documents_in_common_as_plain_numbers(unlabelled):
    markdown = (unlabelled.folder / "report.md").read_text(encoding="utf-8")
    a, b, *_ = unlabelled.retrievers
    assert re.search(rf"^\| {a} \| {b} \| \d\.\d \| ", markdown, re.MULTILINE)


def test_the_headline_says_what_labelling_takes(unlabelled):
    page = read_page(unlabelled)
    markdown = (unlabelled.folder / "report.md").read_text(encoding="utf-8")
    sentence = "No query has labels. Labelling 6 queries takes about"
    assert f"<b>No winner yet.</b>{sentence}" in page
    assert f"**No winner yet.** {sentence}" in markdown
    assert "harness pool" in page


def test_the_page_says_what_comes_next(unlabelled):
    page = read_page(unlabelled)
    effort = judging_effort(unlabelled)
    section = page.partition('id="next"')[2].partition("</section>")[0]
    assert "Label a random part of the queries" in section
    assert (
        f"first 10 documents: {effort.pairs} query-document pairs, {effort.time} "
        in section
    )


def test_without_texts_the_page_of_rankings_has_ids(unlabelled):
    page = unlabelled_page(unlabelled, shows_texts=False)
    evidence = unpack_json(re.search(r'id="evidence">([^<]*)<', page)[1])
    written = page + str(evidence)
    assert "fruit that grows" not in written
    assert "apples grow on trees" not in written
    assert "“q-" in page


def test_one_retriever_without_labels_has_a_page(tmp_path):
    small.dataset(tmp_path / "data", labelled=False)
    results = small.ran(tmp_path, retrievers=small.BM25, report=True)
    page = read_page(results)
    assert "Add a second retriever to compare." in page
    assert 'data-side="b"' not in page
    markdown = (results.folder / "report.md").read_text(encoding="utf-8")
    assert "overlap" not in markdown  # of no pair
    assert "Lines join" not in page
    assert "differ alike" not in page


def test_a_run_without_labels_names_its_folder_in_the_next_command(tmp_path, call):
    small.dataset(tmp_path / "data", labelled=False)
    results = small.ran(tmp_path, name="no_labels", report=True)
    command = f"    harness pool {results.folder.as_posix()} --"
    assert command in (results.folder / "report.md").read_text(encoding="utf-8")
    listed = call("report", tmp_path / "out", code=0).out
    assert re.search(r"no_labels .* 6 .* no labels", listed)


SETS = {"hr": None, "it": None, "law": None}


@pytest.fixture(scope="module")
def sets_folder(tmp_path_factory):
    """Three retrievers on three data sets, one of which is smaller."""
    folder = tmp_path_factory.mktemp("sets")
    for name in SETS:
        small.dataset(folder / name)
    path = small.experiment(folder, name="sets", report=True)
    text = path.read_text(encoding="utf-8")
    listed = ", ".join(f'"{(folder / name).as_posix()}"' for name in SETS)
    text = re.sub("(?m)^dataset = .*$", f"dataset = [{listed}]", text)
    path.write_text(text, encoding="utf-8")
    harness.run_sets(path, harness.RunOptions(folder / "results"))
    return folder / "results" / "sets"


def read_sets(folder: Path) -> list[records.Results]:
    return [records.read_results(folder / name) for name in SETS]


def test_the_page_of_sets_has_the_queries_of_each(sets_folder):
    page = (sets_folder / "report.html").read_text(encoding="utf-8")
    evidence = unpack_json(re.search(r'id="evidence">([^<]*)<', page)[1])
    assert [one["set"] for one in evidence["sets"]] == list(SETS)
    for one, results in zip(evidence["sets"], read_sets(sets_folder), strict=True):
        assert set(one["columns"][0]) == set(results.queries)


def test_the_index_of_results_lists_each_set(sets_folder):
    index = (sets_folder.parent / "index.html").read_text(encoding="utf-8")
    for results in read_sets(sets_folder):
        assert f"{sets_folder.name}/{results.folder.name}/report.html" in index
    assert not (sets_folder / "index.html").exists()


def test_the_index_of_results_has_a_row_for_the_common_page(sets_folder):
    """The experiment is one, with the verdict of its page; its sets follow."""
    listing = list_results(sets_folder.parent)
    comparison = compare_sets_of_folder(read_sets(sets_folder))
    (entry,) = listing.sets
    leader = comparison.ranked_retrievers[0]
    assert (entry.folder, entry.sets, entry.has_report) == ("sets", 3, True)
    assert entry.verdict.retriever == leader
    assert entry.mean == np.mean([comparison.mean(name, leader) for name in SETS])
    assert entry.queries == sum(len(one.queries) for one in read_sets(sets_folder))
    index = (sets_folder.parent / "index.html").read_text(encoding="utf-8")
    assert "<span>1 experiment</span><span>3 runs</span>" in index
    links = re.findall('<th scope="row"[^>]*><a href="([^"]*)"', index)
    assert links[0] == "sets/report.html"
    assert set(links[1:]) == {f"sets/{name}/report.html" for name in SETS}
    assert "mean of 3 data sets" in index


def test_a_link_to_a_listed_folder_is_no_second_run(tmp_path):
    results = small.ran(tmp_path)
    (tmp_path / "out" / "latest").symlink_to(results.folder)
    (tmp_path / "out" / "around").symlink_to(tmp_path)

    listing = list_results(tmp_path / "out")

    assert [entry.folder for entry in listing.entries] == ["small"]
    assert listing.skipped == ()


def test_a_folder_that_may_not_be_read_is_skipped(tmp_path, monkeypatch):
    small.ran(tmp_path)

    def refuse(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(records, "read_complete_manifest", refuse)
    (skipped,) = list_results(tmp_path / "out").skipped
    assert skipped.reason == "cannot be read: Permission denied"


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ((0.9, 0.5, 0.4), ("use", "beats both others on average")),
        ((0.9, 0.899, 0.4), ("undecided", "leads on average; b may be as good")),
        (
            (0.5, 0.499, 0.498),
            ("undecided", "leads on average; both others may be as good"),
        ),
    ],
)
def test_the_verdict_over_sets_is_one_line(means, expected):
    sets = {name: scores_of(**dict(zip("abc", means, strict=True))) for name in SETS}
    verdict = short_sets_verdict(compare_over_sets(sets, None, Settings()))
    assert (verdict.word, verdict.words) == expected
    assert verdict.retriever == "a"


def test_with_a_baseline_others_are_not_compared_with_the_leader():
    sets = {name: scores_of(a=0.9, b=0.8, c=0.4) for name in SETS}
    comparison = compare_over_sets(sets, "c", Settings())
    verdict = short_sets_verdict(comparison)
    assert verdict.sentence == "a beats c on average"
    headline, reason = sets_verdict(comparison)
    assert headline == "Use a"
    assert reason.startswith(
        "On the average of three sets it scores higher than c. "
        "b is not compared with it."
    )


def test_a_retriever_that_failed_on_a_set_comes_first_on_all_pages(tmp_path, call):
    names = ("x", "y")
    sets = [str(small.dataset(tmp_path / name)) for name in names]
    failing = {"name": "ours", "kind": "python", "call": "math:sqrt"}
    experiment = {
        "name": "sets",
        "dataset": sets,
        "primary": "nDCG@3",
        "retrievers": [{"name": "bm25", "kind": "bm25"}, failing],
    }
    harness.run_sets(experiment, harness.RunOptions(tmp_path / "out"))
    folder = tmp_path / "out" / "sets"
    headline = "No recommendation: ours failed (math:sqrt: TypeError"
    assert headline in (folder / "report.html").read_text(encoding="utf-8")
    assert headline in (folder / "report.md").read_text(encoding="utf-8")
    (entry,) = list_results(tmp_path / "out").sets
    assert entry.verdict.sentence.startswith("failed: ours (")
    assert "Incomplete: without ours" in call("compare", folder).err


@pytest.mark.parametrize("qrels", [None, {"q": [next(iter(TEXTS))]}])
def test_a_page_names_retrievers_that_may_answer_otherwise(tmp_path, qrels):
    own = Function(lambda query, depth: [*TEXTS][:1])
    retrievers = {"bm25": "bm25", "ours": own}
    results = harness.evaluate(TEXTS, {"q": "x"}, qrels, retrievers)
    page = results.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "settings give the same rankings; ours may answer otherwise." in page


def test_the_board_of_sets_has_the_mean_of_the_means(sets_folder):
    page = (sets_folder / "report.html").read_text(encoding="utf-8")
    comparison = compare_sets_of_folder(read_sets(sets_folder))
    board = page.partition('id="board"')[2].partition("</table>")[0]
    for name in comparison.ranked_retrievers:
        means = [comparison.mean(set_name, name) for set_name in comparison.sets]
        assert f'<bdi class="name">{name}</bdi>' in board
        assert f">{np.mean(means):.3f}</td>" in board


def scores_of(**means: float) -> Scores:
    """Twenty queries with these means and little noise."""
    noise = np.linspace(-0.05, 0.05, 20)
    rng = np.random.default_rng(7)
    values = {name: mean + rng.permutation(noise) for name, mean in means.items()}
    ids = tuple(f"{i:03}" for i in range(20))
    return Scores(ids=ids, values={"RR": values})


def test_the_headline_names_the_leader_on_the_average_not_on_one_set():
    """potion leads on one set, bm25 on two, and on their average."""
    sets = {
        "s": scores_of(bm25=0.8, potion=0.5, hashing=0.2),
        "t": scores_of(bm25=0.8, potion=0.5, hashing=0.2),
        "u": scores_of(bm25=0.4, potion=0.5, hashing=0.2),
    }
    comparison = compare_over_sets(sets, None, Settings())
    assert all(pair.verdict is not Verdict.UNDECIDED for pair in comparison.pairs)
    verdict = sets_verdict(comparison)
    assert verdict.headline == "Use bm25"
    assert verdict.reason == (
        "On the average of three sets it scores higher than potion and hashing. "
        "bm25 leads on 2 of 3 data sets, potion on 1."
    )


def test_a_leader_on_most_sets_that_is_not_shown_better_only_leads():
    sets = {
        "s": scores_of(bm25=0.61, potion=0.6, hashing=0.2),
        "t": scores_of(bm25=0.6, potion=0.61, hashing=0.2),
        "u": scores_of(bm25=0.601, potion=0.6, hashing=0.2),
    }
    verdict = sets_verdict(compare_over_sets(sets, None, Settings()))
    assert verdict.headline == "bm25 leads"  # by 0.0003 on the average
    assert verdict.reason.startswith(
        "hashing scores lower on the average of three sets; "
    )


@needs_browser
def test_another_set_is_chosen_and_kept_in_the_link(driver, sets_folder):
    page = (sets_folder / "report.html").as_uri()
    driver.get(page)
    settled(driver)
    driver.execute_script(
        "const select = document.querySelector('#set'); select.selectedIndex = 1;"
        "select.dispatchEvent(new Event('change'))"
    )
    asked = "return document.querySelector('#asked').textContent"
    assert driver.execute_script(asked)
    link = driver.current_url
    assert "set=it" in link
    driver.get("about:blank")
    driver.get(link)
    settled(driver)
    chosen = "return document.querySelector('#set').selectedIndex"
    assert driver.execute_script(chosen) == 1
    assert complaints(driver) == []


@needs_browser
@pytest.mark.parametrize("kind", ["unlabelled", "sets"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_no_violation_and_nothing_scrolls_sideways(
    driver, unlabelled, sets_folder, kind, width
):
    folder = unlabelled.folder if kind == "unlabelled" else sets_folder
    resize(driver, width)
    driver.get((folder / "report.html").as_uri())
    settled(driver)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    assert axe(driver) == []


def test_a_report_is_written_anew_with_texts(unlabelled):
    write_report(unlabelled, shows_texts=False)
    assert "fruit that grows" not in read_page(unlabelled)
    write_report(unlabelled)
    assert "fruit that grows" in read_page(unlabelled)
