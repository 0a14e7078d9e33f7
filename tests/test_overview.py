"""The page of many results: what is listed, what is not and why, the same retriever over time, any two side by side."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import harness
from harness import records
from harness.dataset import DatasetReference
from harness.dataset.load import load
from harness.evaluation.identity import identity
from harness.overview import holds_results, listing, write_index
from harness.overview.listing import EmbeddedScores, Listing
from harness.overview.page import page
from harness.overview.panels import axis_of, groups, marks_of
from retrievers.errors import InputError
from tests import small
from tests.browser import axe, complaints, needs_browser, requests, resize
from tests.small import Call

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
    (results / "damaged" / "summary.csv").write_text("", encoding="utf-8")
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
    reasons = dict(read.unread)
    assert list(reasons) == ["cut", "damaged", "notes", "small.unfinished"]
    assert reasons["cut"].startswith("rankings/bm25.jsonl: is missing")
    assert "summary.csv: cannot be read whole" in reasons["damaged"]
    assert reasons["notes"] == "is not a results folder (it holds no manifest.json)"
    assert reasons["small.unfinished"] == "a run that was stopped, or is under way; 1 finished ranking"
    assert str(place) not in " ".join(reasons.values())


def test_a_link_leads_to_a_report_that_is_there(place: Path) -> None:
    assert [entry.folder for entry in listing(place).entries if entry.reported] == ["small", "small.1", "third"]
    page = (place / "index.html").read_text(encoding="utf-8")
    assert re.findall('href="([^"]*)/report.html"', page) == ["small", "small.1", "third"]
    assert "<bdi>fewer</bdi></th>" in page


def test_means_are_those_of_the_summaries(place: Path) -> None:
    for entry in listing(place).entries:
        summary = records.read(place / entry.folder).summary
        rows = summary[summary["measure"] == entry.primary].set_index("retriever")["mean"]
        assert {one.retriever: one.mean for one in entry.standings} == rows.to_dict()
        means = [one.mean for one in entry.standings]
        assert means == sorted(means, reverse=True)


def test_fingerprint_and_data_digest_decide_what_is_the_same(place: Path) -> None:
    read = listing(place)
    (first, second) = groups(read.entries)
    assert {first.path, second.path} == {(place.parent / name).as_posix() for name in ("fewer/data", "data")}
    (panel,) = second.panels if len(second.panels[0].runs) == 4 else first.panels
    assert [run.folder for run in panel.runs] == ["third", "small.1", "small", "other"]
    series = {one.points[0].standing.retriever: one for one in panel.series}
    # bm25 goes by another name in the third run, where "bm25" is something else.
    names = {tuple(point.standing.retriever for point in one.points) for one in panel.series}
    assert names == {("bm25", "bm25", "words"), ("hashing", "hashing"), ("hybrid", "hybrid"), ("bm25", "bm25")}
    assert series["hashing"].change == 0.0
    drawn = marks_of(read.entries)
    assert len(drawn) == 4
    assert len({(mark.color, mark.shape) for mark in drawn.values()}) == 4


def test_a_retriever_is_known_again_where_its_table_has_more_keys(place: Path) -> None:
    manifest = records.read_manifest(place / "small")
    blocks = tuple({**block, "filter": {}, "proof": True, "color": "#0b6e4f"} for block in manifest.resolved.retrievers)
    bare = tuple({key: value for key, value in block.items() if key != "chunk"} for block in blocks)
    for tables in (blocks, bare):
        newer = replace(manifest, resolved=replace(manifest.resolved, retrievers=tables))
        assert [identity(newer, name) for name in newer.finished] == [identity(manifest, n) for n in manifest.finished]
    cut = tuple({**block, "chunk": {"size": 9, "overlap": 0}} for block in manifest.resolved.retrievers)
    other = replace(manifest, resolved=replace(manifest.resolved, retrievers=cut))
    assert identity(other, "hashing") != identity(manifest, "hashing")


def test_changes_have_a_column_only_where_a_retriever_was_in_an_earlier_run(tmp_path: Path, place: Path) -> None:
    def columns(*folders: str) -> list[list[str]]:
        results = tmp_path / "-".join(folders)
        for folder in folders:
            shutil.copytree(place / folder, results / folder)
        write_index(results)
        page = (results / "index.html").read_text(encoding="utf-8")
        assert ("Change: since the run before." in page) == ("small.1" in folders)
        tables = re.findall(r"The newest mean of every retriever.*?</table>", page, flags=re.DOTALL)
        for table in tables:
            heads, *rows = table.split("<tr>")[1:]
            assert all(len(re.findall("<t[hd]", row)) == len(re.findall("<th ", heads)) for row in rows)
        return [re.findall(r'<th scope="col"[^>]*>([^<]*)<', table) for table in tables]

    plain = ["Retriever", "Mean", "Interval", "Runs"]
    assert columns("small") == [plain]
    assert columns("small", "third") == [plain]  # the other run holds another retriever
    assert columns("small", "small.1", "fewer") == [plain, [*plain, "Change"]]


def test_a_page_that_is_none_of_ours_is_left_alone(tmp_path: Path, call: Call, place: Path) -> None:
    shutil.copytree(place / "small", tmp_path / "small")
    (tmp_path / "index.html").write_text("<p>My own</p>", encoding="utf-8")
    with pytest.raises(InputError, match="is not one of ours"):
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
    assert "not listed: damaged: summary.csv: cannot be read whole" in said.err
    told = json.loads(call("report", place, "--json").out)
    assert [run["folder"] for run in told["runs"]] == ["fewer", "other", "small", "small.1", "third"]
    assert set(told["runs"][2]["means"]) == {"bm25", "hashing", "hybrid"}
    assert [one["folder"] for one in told["not_listed"]] == ["cut", "damaged", "notes", "small.unfinished"]


def test_a_folder_without_any_results_is_a_mistake(call: Call, tmp_path: Path) -> None:
    assert not holds_results(tmp_path)
    said = call("report", tmp_path)
    assert (said.code, said.out) == (2, "")
    assert "is not a results folder" in said.err


def test_a_run_writes_the_page_and_its_own_results_do_not_hang_on_it(tmp_path: Path) -> None:
    lines: list[str] = []
    options = harness.Options(tmp_path / "out", on_message=lines.append)
    harness.run(small.experiment(tmp_path, retrievers=RENAMED, report=True), options)
    assert "small/report.html" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    (tmp_path / "out" / "index.html").write_text("mine", encoding="utf-8")
    harness.run(small.experiment(tmp_path, retrievers=RENAMED), options)
    assert lines == [
        f"the page of all results is not written: {tmp_path / 'out' / 'index.html'}: is not one of ours, "
        "and is not written over (move it elsewhere)"
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
    assert len(re.findall("</script>", page)) == 2
    assert "{{ 7 * 7 }}" in page


def cells(driver, table: str) -> list[list[str]]:  # type: ignore[no-untyped-def]
    return driver.execute_script(
        "return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)]"
        ".map((row) => [...row.cells].map((cell) => cell.textContent))", table
    )  # fmt: skip


@needs_browser
def test_any_two_stand_side_by_side_and_their_counts_are_those_of_compare(driver, call: Call, place: Path) -> None:  # type: ignore[no-untyped-def]
    complaints(driver), requests(driver)
    driver.get((place / "index.html").as_uri() + "#a=small&b=other")
    assert driver.find_element("id", "ground").text == "nDCG@3 on 6 common queries of 6."
    assert driver.find_element("id", "command").text == "harness compare out/small out/other"
    rows = {row[0]: row[1:] for row in cells(driver, "means")}
    assert {name: row[0] for name, row in rows.items()} == {
        "bm25, words": "the same, renamed", "bm25": "only in the second", "hashing": "only in the first",
        "hybrid": "only in the first",
    }  # fmt: skip
    assert rows["bm25, words"][-1] == "0 / 6 / 0"
    # Another retriever under the same name, on the queries that both ask alike.
    driver.get((place / "index.html").as_uri() + "#a=other&b=fewer")
    driver.refresh()
    assert driver.find_element("id", "ground").text == "nDCG@3 on 3 common queries of 6."
    rows = {row[0]: row[1:] for row in cells(driver, "means")}
    assert rows["words, bm25"][0] == "the same, renamed"
    driver.get((place / "index.html").as_uri() + "#a=small&b=third")
    driver.refresh()
    (shown,) = [row for row in cells(driver, "means") if row[1] == "another under this name"]
    told = json.loads(call("compare", place / "third", place / "small", "-m", "nDCG@3", "--json").out)
    (row,) = [row for row in told["comparisons"] if {row["a"], row["b"]} == {"third/bm25", "small/bm25"}]
    means = {row["retriever"]: f"{row['mean']:.3f}" for row in told["summary"]}
    assert row["wins"] != row["losses"]
    counts = (row["wins"], row["ties"], row["losses"]) if row["a"] == "third/bm25" else (
        row["losses"], row["ties"], row["wins"])  # fmt: skip
    assert shown[2:4] == [means["small/bm25"], means["third/bm25"]]
    assert shown[5] == " / ".join(map(str, counts))
    moved = cells(driver, "moved")
    assert len(moved) == counts[0] + counts[2]
    assert (
        driver.find_element("css selector", "#moved a")
        .get_attribute("href")
        .endswith(f"/third/report.html#q={moved[0][0]}")
    )
    assert not complaints(driver)
    assert not requests(driver)


@needs_browser
def test_queries_whose_ids_are_numbers_keep_their_scores_and_weights(driver, place: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (entry,) = [one for one in listing(place).entries if one.folder == "small"]
    ids, weights = {"10": "x", "2": "y"}, (3.0, 1.0)
    sides = tuple(replace(entry, folder=name, scored=EmbeddedScores(ids, {"bm25": [score, 0.5]}, weights))
                  for name, score in (("a", 1.0), ("b", 0.0)))  # fmt: skip
    (tmp_path / "index.html").write_text(page(Listing(sides, ()), "out"), encoding="utf-8")
    driver.get((tmp_path / "index.html").as_uri() + "#a=a&b=b")
    assert [row[0] for row in cells(driver, "moved")] == ["10"]
    assert cells(driver, "means")[0][2:] == ["0.875", "0.125", "\N{MINUS SIGN}0.750", "0 / 1 / 1"]


@needs_browser
def test_a_choice_stands_in_the_address_and_is_restored(driver, place: Path) -> None:  # type: ignore[no-untyped-def]
    driver.get((place / "index.html").as_uri())
    driver.execute_script("""
        const a = document.getElementById("a");
        a.value = "small.1";
        a.dispatchEvent(new Event("change"));
    """)
    address = driver.current_url
    assert address.endswith("#a=small.1&b=fewer")
    driver.get("about:blank")
    driver.get(address)
    assert driver.find_element("id", "command").text == "harness compare out/small.1 out/fewer"
    facts = {row[0]: row[1:] for row in cells(driver, "facts")}
    assert facts["data, queries scored"] == ["6", "4"]
    assert "started" in facts
    assert "version of python" not in facts


@needs_browser
def test_runs_are_sorted_filtered_and_compared(driver, place: Path) -> None:  # type: ignore[no-untyped-def]
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
    (link,) = driver.execute_script(
        "return [...document.querySelectorAll('.runs tr:not([hidden]) a[href^=\"#a=\"]')].map((x) => x.textContent)"
    )
    before = link.removeprefix("with ")
    driver.execute_script("document.querySelector('.runs tr:not([hidden]) a[href^=\"#a=\"]').click()")
    assert driver.find_element("id", "command").text == f"harness compare out/{before} out/other"


@needs_browser
@pytest.mark.parametrize("width", [320, 400, 1280, 1920])
def test_the_page_fits_every_width(driver, place: Path, width: int) -> None:  # type: ignore[no-untyped-def]
    resize(driver, width)
    driver.get((place / "index.html").as_uri())
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    dates = "return [...document.querySelectorAll('.runs time')].map((time) => time.getClientRects().length)"
    assert width < 721 or set(driver.execute_script(dates)) == {1}


@needs_browser
def test_a_command_that_scrolls_is_reached_by_keyboard(driver, place: Path) -> None:  # type: ignore[no-untyped-def]
    for width, stop in ((320, True), (1920, False)):
        resize(driver, width)
        driver.get((place / "index.html").as_uri())
        scrolls, focused = driver.execute_script("""
            const command = document.querySelector("#command").parentElement;
            return [command.scrollWidth > command.clientWidth, command.tabIndex === 0];
        """)
        assert scrolls == focused == stop


@needs_browser
@pytest.mark.parametrize("width", [400, 1280])
def test_everyone_can_read_it(driver, place: Path, width: int) -> None:  # type: ignore[no-untyped-def]
    resize(driver, width)
    driver.get((place / "index.html").as_uri())
    assert axe(driver) == []


def test_a_folder_of_before_says_how_many_queries_have_scores(place, tmp_path):
    shutil.copytree(place / "fewer", tmp_path / "old")
    manifest = records.read_manifest(tmp_path / "old")
    dataset = replace(manifest.dataset, scored=None)
    records.write_manifest(tmp_path / "old", replace(manifest, dataset=dataset, tables={}))
    (entry,) = listing(tmp_path).entries
    assert entry.queries == manifest.dataset.scored == 4
    assert entry.scored is not None
    assert len(entry.scored.queries) == 4


@pytest.mark.parametrize(
    ("days", "shown"),
    [(("2026-01-01", "2026-01-03"), ["2026-01-01", "2026-01-03"]), (("2026-01-02", "2026-01-02"), ["01-02 08:00"] * 2)],
)
def test_two_runs_of_one_day_are_dated_by_their_times(tmp_path: Path, days: tuple[str, str], shown: list[str]) -> None:
    harness.run(small.experiment(tmp_path), harness.Options(tmp_path / "out"))
    shutil.copytree(tmp_path / "out" / "small", tmp_path / "out" / "small.1")
    for folder, day in zip(("small.1", "small"), days, strict=True):
        dated(tmp_path / "out" / folder, day)
    write_index(tmp_path / "out")
    text = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'<text class="date"[^>]*>([^<]+)<', text) == shown


@pytest.mark.parametrize(
    ("ends", "axis"),
    [((0.02, 0.5, 0.98), (0.0, 1.0)), ((0.4, 0.5, 0.6), (0.384, 0.616)), ((0.1, 3.0, 6.1), (0.0, 6.58)),
     ((None, 1.0, None), (0.95, 1.0))],
)  # fmt: skip
def test_an_axis_has_no_room_where_no_mean_can_be(ends, axis):
    low, mean, high = ends
    point = SimpleNamespace(standing=SimpleNamespace(low=low, mean=mean, high=high))
    panel = SimpleNamespace(series=[SimpleNamespace(points=[point])])
    assert axis_of([panel]) == pytest.approx(axis)
