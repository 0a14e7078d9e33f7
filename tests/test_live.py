"""The page of a run under way: written at every finished retriever, and it says that it is unfinished."""

import shutil
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

import harness
from harness import records
from harness.overview import listing
from retrievers.encoders.hashing import HashingEncoder
from retrievers.errors import BackendError
from retrievers.meter import Meter
from tests import small

pytestmark = pytest.mark.slow

RECOMMENDS = ("is the best of", "Cheapest within", "Use ")


class Page:
    """What stands in a folder when one page was written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = records.read(folder).manifest
        self.html = (folder / "report.html").read_text(encoding="utf-8").split("<script")[0]
        self.text = (folder / "report.md").read_text(encoding="utf-8")
        self.listed = listing(folder.parent)


class Pages(list[Page]):
    """Every page of a live run, read when its stage is over; `start` is called when one is about to be written."""

    def __init__(self, out: Path, start: Callable[[Path], object] = lambda folder: None, name: str = "small") -> None:
        self.options = harness.Options(out, live=True, watch=self._see)
        self._folder, self._start, self._read = out / f"{name}.unfinished", start, weakref.WeakSet[Meter]()

    def _see(self, name: str, meter: Meter) -> None:
        if meter.current == "reporting":
            self._start(self._folder)
        elif not name and "reporting" in meter.stages() and meter not in self._read:
            self._read.add(meter)
            if (self._folder / "report.html").is_file():
                self.append(Page(self._folder))


def test_a_live_run_writes_the_page_at_every_finished_retriever(tmp_path: Path) -> None:
    lines: list[str] = []
    pages = Pages(tmp_path / "out")
    path = small.experiment(tmp_path, more="[statistics]\nmargin = 0.9", report=True)
    results = harness.run(path, pages.options._replace(on_message=lines.append))
    assert [page.manifest.waiting for page in pages] == [("hashing", "hybrid"), ("hybrid",), ()]
    assert [page.manifest.finished for page in pages] == [
        ("bm25",), ("bm25", "hashing"), ("bm25", "hashing", "hybrid"),
    ]  # fmt: skip
    for number, page in enumerate(pages[:-1], 1):
        leads = "; among those that ran, bm25 leads" if number > 1 else ""
        head = f"Unfinished: {number} of 3 retrievers answered so far{leads}"
        assert f'<h1 id="decision-title">{head}.' in page.html
        assert page.text.startswith(f"# {head}\n")
        assert "Load this page again to see what came since." in page.html
        assert ('class="forest"' in page.html) == (number > 1)  # one mean has no difference
        assert "Nothing is recommended before every retriever has answered." in page.text
        assert not [words for words in RECOMMENDS if words in page.html or words in page.text]
        assert page.folder.name == "small.unfinished"
        (unread,) = page.listed.unread
        assert unread.reason.startswith("a run that was stopped, or is under way, without ")
    assert [page.html.count("has not answered yet</td>") for page in pages] == [2, 1, 0]
    assert "Load this page again" not in pages[-1].html
    assert lines == [f"live: {tmp_path / 'out' / 'small.unfinished' / 'report.html'}"]
    assert not (tmp_path / "out" / "small.unfinished").exists()
    assert results.manifest.waiting == ()


def test_a_live_run_comes_to_the_same_as_any_other(tmp_path: Path) -> None:
    path = small.experiment(tmp_path, report=True)
    plain = harness.run(path, harness.Options(tmp_path / "plain")).folder
    live = harness.run(path, harness.Options(tmp_path / "live", live=True)).folder
    for name in ("scores.csv", "summary.csv", "comparisons.csv", "tests.csv", "qrels.trec", "labels.jsonl"):
        assert (live / name).read_bytes() == (plain / name).read_bytes()


class Killed(KeyboardInterrupt):
    """A process that was killed here."""


def test_a_killed_live_run_is_never_taken_for_a_whole_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, options = small.experiment(tmp_path, report=True), harness.Options(tmp_path / "out", live=True, fresh=True)
    with monkeypatch.context() as patch:
        patch.setattr(HashingEncoder, "embed", _killed)
        with pytest.raises(Killed):
            harness.run(path, options)
    aside = tmp_path / "out" / "small.unfinished"
    assert (aside / "report.html").is_file()
    assert records.read(aside).manifest.waiting == ("hashing", "hybrid")
    # Another run that cannot finish puts nothing in place.
    left = shutil.copytree(aside, tmp_path / "copy")
    monkeypatch.setattr(HashingEncoder, "embed", _refused)
    monkeypatch.setattr("retrievers.bm25.BM25Retriever.index", _refused)
    with pytest.raises(BackendError):
        harness.run(path, options)
    assert not (tmp_path / "out" / "small").exists()
    assert records.read(left).rankings("bm25")


def _killed(*_: object) -> None:
    raise Killed


def _refused(*_: object) -> None:
    raise BackendError("refused")


def test_a_retriever_that_failed_is_told_beside_those_that_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = Pages(tmp_path / "out")
    monkeypatch.setattr(HashingEncoder, "embed", _refused)
    blocks = small.RETRIEVERS.replace('name = "hybrid"\nkind = "fusion"\nof = ["bm25", "hashing"]', (
        'name = "soft"\nkind = "bm25"\nk1 = 0.1'))  # fmt: skip
    harness.run(small.experiment(tmp_path, retrievers=blocks, report=True), pages.options._replace(fresh=True))
    assert pages[1].manifest.failed == {"hashing": "refused"}
    assert pages[1].text.startswith("# Unfinished: 2 of 3 retrievers answered so far\n")
    assert "failed and is not compared" in pages[1].text
    assert pages[-1].text.startswith("# Incomplete: 1 of 3 retrievers failed")


def test_a_page_that_cannot_be_written_ends_no_run(tmp_path: Path) -> None:
    lines: list[str] = []

    def block(folder: Path) -> None:
        """A folder stands where the text goes, until the last page is written."""
        text = folder / "report.md"
        if records.read_manifest(folder).waiting:
            text.mkdir(exist_ok=True)
        elif text.is_dir():
            text.rmdir()

    pages = Pages(tmp_path / "out", block)
    results = harness.run(small.experiment(tmp_path, report=True), pages.options._replace(on_message=lines.append))
    assert results.retrievers == ("bm25", "hashing", "hybrid")
    assert [line.partition(":")[0] for line in lines] == [
        "the page of bm25 is not written", "the page of bm25, hashing is not written",
    ]  # fmt: skip
    assert all("report.md: cannot be written" in line for line in lines)


def test_measures_by_claims_come_when_all_have_answered(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    text = (project / "experiments" / "quickstart.toml").read_text(encoding="utf-8")
    head = text.partition("[[retrievers]]")[0].replace('"datasets/', f'"{project.as_posix()}/datasets/')
    (tmp_path / "claims.toml").write_text(head + small.RETRIEVERS, encoding="utf-8")
    pages = Pages(tmp_path / "out", name="quickstart")
    harness.run(tmp_path / "claims.toml", pages.options)
    claimed = [[name for name in page.manifest.resolved.measures if "Claim" in name] for page in pages]
    assert claimed == [[], [], ["ClaimRecall@5"]]


def test_the_page_stays_while_the_next_one_is_made(tmp_path: Path) -> None:
    """Whoever loads it again meanwhile still finds it; a whole folder has no page of a part of its retrievers."""
    there: list[bool] = []
    pages = Pages(tmp_path / "out", lambda folder: there.append((folder / "report.html").is_file()))
    harness.run(small.experiment(tmp_path, report=True), pages.options)
    assert there == [False, True, False]
    assert len(pages) == 3
