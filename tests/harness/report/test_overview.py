"""The page of many results: what is listed, with what verdict, and what is not and why."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import harness
from harness import records
from harness.dataset import DatasetReference
from harness.dataset.load import load_dataset
from harness.report.index import list_results, write_index
from retrievers.errors import InputError
from tests.support import small
from tests.support.browser import axe, needs_browser, resize
from tests.support.small import Call

pytestmark = pytest.mark.slow

OTHER = (
    '[[retrievers]]\nname = "bm25"\nencoder = { kind = "hashing", dimensions = 3 }\n'
)
RENAMED = '[[retrievers]]\nname = "words"\nkind = "bm25"\n'
LISTED = ["fewer", "other", "small", "small.1", "third"]
SKIPPED_REASONS = {
    "cut": "rankings/bm25.jsonl: is missing",
    "damaged": "scores.csv: cannot be read whole",
    "notes": "is not a results folder",
    "small.unfinished": "a run that was stopped, or is under way; 1 finished ranking",
}


@pytest.fixture(scope="module")
def results_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one experiment, two with other retrievers, one on fewer queries; and four folders that are none."""
    folder = tmp_path_factory.mktemp("overview")
    results, options = folder / "out", harness.RunOptions(folder / "out")
    harness.run(small.experiment(folder), options)
    shutil.copytree(results / "small", results / "small.1")
    harness.run(
        small.experiment(folder, name="other", retrievers=OTHER + RENAMED), options
    )
    harness.run(small.experiment(folder, name="third", retrievers=OTHER), options)
    path = small.dataset(folder / "fewer" / "data") / "queries.json"
    path.write_text(
        json.dumps(json.loads(path.read_text(encoding="utf-8"))[:4]), encoding="utf-8"
    )
    harness.run(small.experiment(folder / "fewer", name="fewer"), options)
    for month, name in enumerate(reversed(LISTED), 1):
        manifest = records.read_manifest(results / name)
        records.write_manifest(
            results / name,
            replace(manifest, started=f"2026-0{month}-01T08:00:00+00:00"),
        )
    shutil.copytree(results / "small", results / "damaged")
    (
        results / "damaged" / "evaluation.json"
    ).unlink()  # so that it is computed again, which needs the scores
    (results / "damaged" / "scores.csv").write_text("", encoding="utf-8")
    shutil.copytree(results / "small", results / "cut")
    (results / "cut" / "rankings" / "bm25.jsonl").unlink()
    for name in (
        "small",
        "small.1",
        "third",
    ):  # what a link leads to; the others have no report
        (results / name / "report.html").touch()
    (results / "small.unfinished" / "runs").mkdir(parents=True)
    (results / "small.unfinished" / "runs" / "bm25.trec").touch()
    for name in ("notes", ".small.old"):
        (results / name).mkdir()
    write_index(results)
    return results


def test_what_is_whole_is_listed_with_means_and_verdict_and_the_rest_has_its_reason(
    call: Call, results_folder: Path
) -> None:
    listing, page = (
        list_results(results_folder),
        (results_folder / "index.html").read_text(encoding="utf-8"),
    )
    assert [entry.folder for entry in listing.entries] == LISTED
    assert re.findall('href="([^"]*)/report.html"', page) == [
        "small",
        "small.1",
        "third",
    ]
    assert "<bdi>fewer</bdi></th>" in page
    reasons = dict(listing.skipped)
    assert list(reasons) == list(SKIPPED_REASONS)
    assert [
        name for name, reason in SKIPPED_REASONS.items() if reason not in reasons[name]
    ] == []
    assert str(results_folder) not in " ".join(reasons.values())
    for entry in listing.entries:
        results = records.read_results(results_folder / entry.folder)
        means = results.summary[results.summary["measure"] == entry.primary].set_index(
            "retriever"
        )["mean"]
        assert entry.means == means.to_dict()
        assert [*entry.means.values()] == sorted(means, reverse=True)
        leader, table = next(iter(entry.means)), results.comparisons
        rows = table[
            (table["measure"] == entry.primary)
            & ((table["a"] == leader) | (table["b"] == leader))
        ]
        significant = sum(
            verdict in ("better", "worse")
            for verdict in rows["verdict"].str.split(":").str[0]
        )
        assert entry.verdict == (
            ""
            if rows.empty
            else "? undecided"
            if not significant
            else f"▲ better than {significant} of {len(rows)}"
        )
    assert re.findall("<code>(harness compare [^<]*)</code>", page) == [
        f"harness compare out/{before} out/{name}"
        for name, before in (
            ("other", "small"),
            ("small", "small.1"),
            ("small.1", "third"),
        )
    ]
    printed = call("report", results_folder, code=0)
    assert [
        line.split()[0]
        for line in printed.out.splitlines()
        if re.search(" 2026-", line)
    ] == LISTED
    assert printed.out.endswith(f"index: {results_folder / 'index.html'}\n")
    assert "not listed: damaged: scores.csv: cannot be read whole" in printed.err
    output = json.loads(call("report", results_folder, "--json").out)
    assert [run["folder"] for run in output["runs"]] == LISTED
    assert set(output["runs"][2]["means"]) == {"bm25", "hashing", "hybrid"}
    assert [skipped["folder"] for skipped in output["not_listed"]] == list(
        SKIPPED_REASONS
    )


def test_the_page_takes_no_place_of_a_file_of_anybody_else_and_follows_no_link(
    tmp_path: Path, call: Call, results_folder: Path
) -> None:
    out, target = tmp_path / "out", tmp_path / "target"
    shutil.copytree(results_folder / "small", out / "small")
    shutil.copy(results_folder / "index.html", target)
    (out / "index.html").symlink_to(target)
    write_index(out)
    assert target.read_bytes() == (results_folder / "index.html").read_bytes()
    assert not (out / "index.html").is_symlink()
    (out / "index.html").write_text("<p>My own</p>", encoding="utf-8")
    with pytest.raises(InputError, match="is not a page of harness"):
        write_index(out)
    assert call("report", out, code=2).out == ""
    lines: list[str] = []  # a run is done all the same, and says so
    harness.run(
        small.experiment(tmp_path, retrievers=RENAMED),
        harness.RunOptions(out, on_message=lines.append),
    )
    assert lines[-1].startswith("the page of all results is not written: ")
    assert (out / "index.html").read_text(encoding="utf-8") == "<p>My own</p>"
    assert not list(out.glob(".index.html*"))


def test_a_run_writes_the_page_which_is_no_document_of_a_data_set(
    tmp_path: Path,
) -> None:
    folder = small.dataset(tmp_path / "data")
    before = load_dataset(DatasetReference(folder))
    harness.run(
        small.experiment(tmp_path, retrievers=RENAMED, report=True),
        harness.RunOptions(folder / "results"),
    )
    assert "small/report.html" in (folder / "results" / "index.html").read_text(
        encoding="utf-8"
    )
    (folder / "index.html").write_text(
        "<p>a page of the data set itself</p>", encoding="utf-8"
    )
    assert (
        load_dataset(DatasetReference(folder)).document_count
        == before.document_count + 1
    )


def test_hostile_names_stay_text(tmp_path: Path, results_folder: Path) -> None:
    shutil.copytree(results_folder / "small", tmp_path / "small")
    manifest = records.read_manifest(tmp_path / "small")
    hostile = "</script><img src=x onerror=alert(1)>{{ 7 * 7 }}"
    dataset = replace(manifest.dataset, path=hostile)
    records.write_manifest(
        tmp_path / "small", replace(manifest, dataset=dataset, started=hostile)
    )
    (tmp_path / "<b>x").mkdir()
    write_index(tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "<img" not in page and "<b>x" not in page and "{{ 7 * 7 }}" in page
    assert len(re.findall("</script>", page)) == 1


@needs_browser
def test_runs_are_sorted_and_filtered_and_the_page_fits_every_width(
    driver, results_folder
):
    driver.get((results_folder / "index.html").as_uri())
    driver.refresh()
    column = "return [...document.querySelectorAll('.runs tbody tr:not([hidden])')].map((x) => x.cells[1].textContent)"
    folders_by_date = driver.execute_script(column)
    click_heading = (
        "document.querySelector('.runs thead th:nth-child(2) button').click()"
    )
    driver.execute_script(f"{click_heading}; {click_heading}")
    assert (
        driver.execute_script(column)
        == sorted(folders_by_date, reverse=True)
        != folders_by_date
    )
    driver.execute_script(
        "const box = document.querySelector('#wanted'); box.value = 'OTHER words';box.dispatchEvent(new Event('input'))"
    )
    assert driver.execute_script(column) == ["other"]
    assert driver.find_element("id", "listed").text == f"1 of {len(folders_by_date)}"
    for width in (320, 400, 1280, 1920):
        resize(driver, width)
        driver.refresh()
        assert (
            driver.execute_script("return document.documentElement.scrollWidth")
            <= width
        )
        dates = "return [...document.querySelectorAll('.runs time')].map((time) => time.getClientRects().length)"
        assert width < 721 or set(driver.execute_script(dates)) == {1}
        assert axe(driver) == []
