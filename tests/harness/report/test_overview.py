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
from harness.dataset.load import load
from harness.report.index import listing, write_index
from retrievers.errors import InputError
from tests.support import small
from tests.support.browser import axe, needs_browser, resize
from tests.support.small import Call

pytestmark = pytest.mark.slow

OTHER = '[[retrievers]]\nname = "bm25"\nencoder = { kind = "hashing", dimensions = 3 }\n'
RENAMED = '[[retrievers]]\nname = "words"\nkind = "bm25"\n'


def dated(folder: Path, day: str) -> Path:
    """A results folder as if it had been made on another day."""
    manifest = records.read_manifest(folder)
    records.write_manifest(folder, replace(manifest, started=f"{day}T08:00:00+00:00"))
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one experiment, two with other retrievers, one on fewer queries; and four folders that are none."""
    folder = tmp_path_factory.mktemp("overview")
    results, options = folder / "out", harness.Options(folder / "out")
    harness.run(small.experiment(folder), options)
    shutil.copytree(dated(results / "small", "2026-01-02"), results / "small.1")
    dated(results / "small.1", "2026-01-01")
    harness.run(small.experiment(folder, name="other", retrievers=OTHER + RENAMED), options)
    dated(results / "other", "2026-01-03")
    harness.run(small.experiment(folder, name="third", retrievers=OTHER), options)
    dated(results / "third", "2025-12-31")
    small.dataset(folder / "fewer" / "data")
    path = folder / "fewer" / "data" / "queries.json"
    rows = json.loads(path.read_text(encoding="utf-8"))[:4]
    rows[0]["query"] = "fruit of trees"
    path.write_text(json.dumps(rows), encoding="utf-8")
    harness.run(small.experiment(folder / "fewer", name="fewer"), options)
    dated(results / "fewer", "2026-01-04")
    shutil.copytree(results / "small", results / "damaged")
    (results / "damaged" / "evaluation.json").unlink()  # so that it is computed again, which needs the scores
    (results / "damaged" / "scores.csv").write_text("", encoding="utf-8")
    shutil.copytree(results / "small", results / "cut")
    (results / "cut" / "rankings" / "bm25.jsonl").unlink()
    for name in ("small", "small.1", "third"):  # what a link leads to; the others have no report
        (results / name / "report.html").touch()
    (results / "notes").mkdir()
    (results / "small.unfinished" / "runs").mkdir(parents=True)
    (results / "small.unfinished" / "runs" / "bm25.trec").touch()
    (results / ".small.old").mkdir()
    write_index(results)
    return results


def test_what_is_whole_is_listed_and_the_rest_has_its_reason(place: Path) -> None:
    read = listing(place)
    assert [entry.folder for entry in read.entries] == ["fewer", "other", "small", "small.1", "third"]
    page = (place / "index.html").read_text(encoding="utf-8")
    linked = re.findall('href="([^"]*)/report.html"', page)
    assert linked == [entry.folder for entry in read.entries if entry.reported] == ["small", "small.1", "third"]
    assert "<bdi>fewer</bdi></th>" in page
    reasons = dict(read.unread)
    assert list(reasons) == ["cut", "damaged", "notes", "small.unfinished"]
    assert reasons["cut"].startswith("rankings/bm25.jsonl: is missing")
    assert "scores.csv: cannot be read whole" in reasons["damaged"]
    assert reasons["notes"] == "is not a results folder (it holds no manifest.json)"
    assert reasons["small.unfinished"] == "a run that was stopped, or is under way; 1 finished ranking"
    assert str(place) not in " ".join(reasons.values())


def test_means_are_those_of_the_summaries(place: Path) -> None:
    for entry in listing(place).entries:
        summary = records.read(place / entry.folder).summary
        rows = summary[summary["measure"] == entry.primary].set_index("retriever")["mean"]
        assert {one.retriever: one.mean for one in entry.standings} == rows.to_dict()
        means = [one.mean for one in entry.standings]
        assert means == sorted(means, reverse=True)


def test_each_run_has_its_verdict_and_the_command_that_compares_it_with_the_run_before(place: Path) -> None:
    entries = {entry.folder: entry for entry in listing(place).entries}
    for entry in entries.values():
        leader = entry.standings[0].retriever
        table = records.read(place / entry.folder).comparisons
        rows = table[(table["measure"] == entry.primary) & ((table["a"] == leader) | (table["b"] == leader))]
        shown = sum(verdict in ("better", "worse") for verdict in rows["verdict"].str.split(":").str[0])
        assert entry.verdict == (
            "" if rows.empty else "? undecided" if not shown else f"▲ better than {shown} of {len(rows)}"
        )
    page = (place / "index.html").read_text(encoding="utf-8")
    assert re.findall("<code>(harness compare [^<]*)</code>", page) == [
        "harness compare out/small out/other", "harness compare out/small.1 out/small",
        "harness compare out/third out/small.1",
    ]  # fmt: skip


def test_a_retriever_is_known_again_where_its_table_has_more_keys(place: Path) -> None:
    manifest = records.read_manifest(place / "small")
    blocks = tuple({**block, "filter": {}, "proof": True, "color": "#0b6e4f"} for block in manifest.resolved.retrievers)
    bare = tuple({key: value for key, value in block.items() if key != "chunk"} for block in blocks)
    for tables in (blocks, bare):
        newer = replace(manifest, resolved=replace(manifest.resolved, retrievers=tables))
        assert [newer.identity(name) for name in newer.finished] == [manifest.identity(n) for n in manifest.finished]
    cut = tuple({**block, "chunk": {"size": 9, "overlap": 0}} for block in manifest.resolved.retrievers)
    other = replace(manifest, resolved=replace(manifest.resolved, retrievers=cut))
    assert other.identity("hashing") != manifest.identity("hashing")


def test_a_page_that_is_none_of_ours_is_left_alone(tmp_path: Path, call: Call, place: Path) -> None:
    shutil.copytree(place / "small", tmp_path / "small")
    (tmp_path / "index.html").write_text("<p>My own</p>", encoding="utf-8")
    with pytest.raises(InputError, match="is not a page of harness"):
        write_index(tmp_path)
    assert (tmp_path / "index.html").read_text(encoding="utf-8") == "<p>My own</p>"
    assert [path.name for path in tmp_path.iterdir()] != [".index.html"]
    said = call("report", tmp_path)
    assert (said.code, said.out) == (2, "")


def test_the_page_is_no_document_of_a_data_set(tmp_path: Path, place: Path) -> None:
    folder = small.dataset(tmp_path / "data")
    before = load(DatasetReference(folder))
    shutil.copytree(place / "small", folder / "results" / "small")
    write_index(folder / "results")
    (folder / "index.html").write_text("<p>a page of the data set itself</p>", encoding="utf-8")
    after = load(DatasetReference(folder))
    assert after.count == before.count + 1


def test_a_link_in_the_place_of_the_page_is_replaced_and_never_followed(tmp_path: Path, place: Path) -> None:
    shutil.copytree(place / "small", tmp_path / "out" / "small")
    target = tmp_path / "target"
    shutil.copy(place / "index.html", target)
    before = target.read_bytes()
    (tmp_path / "out" / "index.html").symlink_to(target)
    write_index(tmp_path / "out")
    assert target.read_bytes() == before
    assert not (tmp_path / "out" / "index.html").is_symlink()


def test_the_command_line_lists_and_says_what_is_not_listed(call: Call, place: Path) -> None:
    said = call("report", place, code=0)
    assert [line.split()[0] for line in said.out.splitlines() if re.search(" 202[56]-", line)] == [
        "fewer", "other", "small", "small.1", "third",
    ]  # fmt: skip
    assert said.out.endswith(f"index: {place / 'index.html'}\n")
    assert "not listed: damaged: scores.csv: cannot be read whole" in said.err
    told = json.loads(call("report", place, "--json").out)
    assert [run["folder"] for run in told["runs"]] == ["fewer", "other", "small", "small.1", "third"]
    assert set(told["runs"][2]["means"]) == {"bm25", "hashing", "hybrid"}
    assert [one["folder"] for one in told["not_listed"]] == ["cut", "damaged", "notes", "small.unfinished"]


def test_a_run_writes_the_page_and_its_own_results_do_not_hang_on_it(tmp_path: Path) -> None:
    lines: list[str] = []
    options = harness.Options(tmp_path / "out", on_message=lines.append)
    harness.run(small.experiment(tmp_path, retrievers=RENAMED, report=True), options)
    assert "small/report.html" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    (tmp_path / "out" / "index.html").write_text("mine", encoding="utf-8")
    harness.run(small.experiment(tmp_path, retrievers=RENAMED), options)
    assert lines == [
        f"the page of all results is not written: {tmp_path / 'out' / 'index.html'}: is not a page of harness "
        "(move it elsewhere)"
    ]


def test_hostile_names_stay_text(tmp_path: Path, place: Path) -> None:
    shutil.copytree(place / "small", tmp_path / "small")
    manifest = records.read_manifest(tmp_path / "small")
    hostile = "</script><img src=x onerror=alert(1)>{{ 7 * 7 }}"
    dataset = replace(manifest.dataset, path=hostile)
    records.write_manifest(tmp_path / "small", replace(manifest, dataset=dataset, started=hostile))
    (tmp_path / "<b>x").mkdir()
    write_index(tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "<img" not in page
    assert "<b>x" not in page
    assert len(re.findall("</script>", page)) == 1
    assert "{{ 7 * 7 }}" in page


@needs_browser
def test_runs_are_sorted_and_filtered(driver, place: Path) -> None:  # type: ignore[no-untyped-def]
    driver.get((place / "index.html").as_uri())
    driver.refresh()
    column = "return [...document.querySelectorAll('.runs tbody tr:not([hidden])')].map((x) => x.cells[1].textContent)"
    dated = driver.execute_script(column)
    press = "document.querySelector('.runs thead th:nth-child(2) button').click()"
    driver.execute_script(f"{press}; {press}")
    assert driver.execute_script(column) == sorted(dated, reverse=True) != dated
    driver.execute_script(
        "const box = document.querySelector('#wanted'); box.value = 'OTHER words';box.dispatchEvent(new Event('input'))"
    )
    assert driver.execute_script(column) == ["other"]
    assert driver.find_element("id", "listed").text == f"1 of {len(dated)}"


@needs_browser
@pytest.mark.parametrize("width", [320, 400, 1280, 1920])
def test_the_page_fits_every_width_and_everyone_can_read_it(driver, place: Path, width: int) -> None:  # type: ignore[no-untyped-def]
    resize(driver, width)
    driver.get((place / "index.html").as_uri())
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    dates = "return [...document.querySelectorAll('.runs time')].map((time) => time.getClientRects().length)"
    assert width < 721 or set(driver.execute_script(dates)) == {1}
    assert axe(driver) == []
