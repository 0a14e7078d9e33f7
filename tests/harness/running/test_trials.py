"""Retrievers that answer differently each time: trials, or a warning."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import records
from harness.evaluation.evaluation_file import read_or_evaluate
from harness.evaluation.join_folders import score_folders
from harness.pipeline import run
from harness.records import Results
from harness.running.options import RunOptions
from tests.support import small
from tests.support.servers import Answering, running
from tests.support.small import module, refusal, told

TURNS = """
TURNS = {turns}
count = 0


def search(queries, depth):
    global count
    turn = TURNS[min(count, len(TURNS) - 1)]
    count += 1
    return [turn for _ in queries]
"""
"""A function whose calls answer one after the other: one call is one trial."""
APPLE = ["apple", "pear", "car"]
CAR = ["car", "train", "boat"]
FISH = ["fish", "boat", "train"]


@pytest.fixture
def turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The table of a retriever with three answers."""
    name = module(tmp_path, monkeypatch, TURNS.format(turns=[APPLE, CAR, FISH]))
    return f'\n[[retrievers]]\nname = "tool"\nkind = "python"\ncall = "{name}:search"\n'


def ran(folder: Path, retrievers: str, *, more: str = "", **options: object) -> Results:
    """The results of an experiment of BM25 and others."""
    return small.ran(folder, retrievers=small.BM25 + retrievers, more=more, **options)


def scores(results: Results, retriever: str, measure: str) -> dict[str, float]:
    """Query -> score."""
    columns = results.score_columns
    rows = zip(
        columns["retriever"],
        columns["query_id"],
        columns["measure"],
        columns["value"],
        strict=True,
    )
    return {
        query: value
        for name, query, measured, value in rows
        if (name, measured) == (retriever, measure)
    }


def test_scores_are_averaged_within_the_query(tmp_path: Path, turns: str) -> None:
    results = ran(tmp_path, turns + "trials = 3\n")
    labels = {query: set(relevant) for query, _, relevant in small.QUERIES}
    expected = {
        query: sum(len(relevant & set(answer[:2])) / 2 for answer in (APPLE, CAR, FISH))
        / 3
        for query, relevant in labels.items()
    }
    assert scores(results, "tool", "P@2") == pytest.approx(expected, abs=1e-15)


def test_every_trial_is_kept(tmp_path: Path, turns: str) -> None:
    results = ran(tmp_path, turns + "trials = 3\n")
    kept = [trial["q-rails"].doc_ids for trial in results.trials("tool")]
    assert kept == [tuple(APPLE), tuple(CAR), tuple(FISH)]
    assert results.rankings("tool")["q-rails"].doc_ids == tuple(APPLE)
    runs = {path.name for path in (results.folder / "runs").iterdir()}
    assert runs == {"bm25.trec", "tool.trec", "tool~2.trec", "tool~3.trec"}
    assert len(results.run("tool").trials) == 3


def test_stored_trials_score_the_same(
    tmp_path: Path, turns: str, capsys: pytest.CaptureFixture[str]
) -> None:
    results = ran(tmp_path, turns + "trials = 3\n")
    printed = json.loads(
        small.call(capsys, "score", results.folder, "-m", "P@2", "-q", "--json").out
    )
    again = {
        row["query_id"]: row["value"]
        for row in printed["scores"]
        if row["retriever"] == "tool"
    }
    assert again == scores(results, "tool", "P@2")


def test_the_spread_stands_below_the_board(
    tmp_path: Path, turns: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = small.experiment(
        tmp_path, retrievers=small.BM25 + turns + "trials = 3\n", report=True
    )
    output = told(capsys, "run", path, "--results", tmp_path / "out")
    folder = tmp_path / "out" / "small"
    means = read_or_evaluate(records.read_results(folder)).trial_means["tool"]
    sentence = f"Means over 3 trials: tool {min(means):.3f} to {max(means):.3f}."
    assert sentence in " ".join(output.split())
    assert sentence in (folder / "report.html").read_text(encoding="utf-8")
    assert "tool" not in json.dumps(
        [w for w in _warnings(folder) if "repeatability" in str(w)]
    )


def _warnings(folder: Path) -> list[dict[str, object]]:
    text = (folder / "evaluation.json").read_text(encoding="utf-8")
    rows: list[dict[str, object]] = json.loads(text)["warnings"]
    return rows


def test_a_missing_evaluation_finds_the_spread_again(
    tmp_path: Path, turns: str
) -> None:
    results = ran(tmp_path, turns + "trials = 3\n")
    before = read_or_evaluate(results).trial_means
    (results.folder / "evaluation.json").unlink()
    after = read_or_evaluate(records.read_results(results.folder))
    assert after.trial_means == before
    assert after.recomputed


def test_a_missing_evaluation_is_computed_alike(tmp_path: Path, turns: str) -> None:
    """Averages of 0 and 1 are neither: Success@1 is no measure of 0 and 1 here."""
    results = ran(tmp_path, turns + "trials = 3\n")
    before = read_or_evaluate(results)
    assert before.summary["Success@1"]["tool"].ci_method != "wilson"
    (results.folder / "evaluation.json").unlink()
    after = read_or_evaluate(records.read_results(results.folder))
    assert after.model_copy(update={"recomputed": False}) == before


def test_averages_stay_averages_beside_another_folder(
    tmp_path: Path, turns: str
) -> None:
    folder = ran(tmp_path, turns + "trials = 3\n").folder
    path = small.experiment(tmp_path, name="words", retrievers=small.BM25)
    words = run(path, RunOptions(tmp_path / "out")).folder
    scores = score_folders([words, folder], ["Success@1"])
    assert not scores.is_binary("Success@1")
    assert list(scores.trial_means) == ["tool"]


def test_a_fusion_has_the_trials_of_its_part(tmp_path: Path, turns: str) -> None:
    fused = '\n[[retrievers]]\nname = "both"\nkind = "fusion"\nof = ["tool", "bm25"]\n'
    results = ran(tmp_path, f"{turns}trials = 3\n{fused}")
    assert len(results.trials("both")) == 3
    assert len(results.trials("bm25")) == 1
    firsts = [trial["q-rails"] for trial in results.trials("both")]
    for answer, ranking in zip((APPLE, CAR, FISH), firsts, strict=True):
        assert set(answer) <= set(ranking.doc_ids)


def test_a_part_without_a_name_has_trials(tmp_path: Path, turns: str) -> None:
    table = turns.split('name = "tool"\n')[1].strip().replace("\n", ", ")
    fused = (
        '\n[[retrievers]]\nname = "both"\nkind = "fusion"\n'
        f'of = ["bm25", {{ {table}, trials = 2 }}]\n'
    )
    assert len(ran(tmp_path, fused).trials("both")) == 2


def test_an_id_is_noted_once_in_all_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = module(tmp_path, monkeypatch, TURNS.format(turns=[["gone", *APPLE]]))
    table = (
        f'\n[[retrievers]]\nname = "tool"\nkind = "python"\ncall = "{name}:search"\n'
        'unknown_hits = "irrelevant"\ntrials = 3\n'
    )
    notes = ran(tmp_path, table).manifest.ledger.retrievers["tool"].notes
    assert notes["not-in-corpus"] == ("gone",)


def test_trials_survive_a_run_of_one_retriever(tmp_path: Path, turns: str) -> None:
    results = ran(tmp_path, turns + "trials = 3\n")
    before = scores(results, "tool", "P@2")
    after = run(tmp_path / "small.toml", RunOptions(tmp_path / "out", only=("bm25",)))
    assert scores(after, "tool", "P@2") == before
    assert len(after.trials("tool")) == 3


def test_a_fusion_run_alone_has_the_same_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turns: str
) -> None:
    """One of its parts has two trials, the other three."""
    folder = tmp_path / "other"
    folder.mkdir()
    name = module(folder, monkeypatch, TURNS.format(turns=[FISH, APPLE, CAR]))
    other = turns.replace('"tool"', '"other"')
    other = re.sub('call = ".*:', f'call = "{name}:', other)
    fused = '\n[[retrievers]]\nname = "both"\nkind = "fusion"\nof = ["tool", "other"]\n'
    ran(tmp_path, f"{turns}trials = 2\n{other}trials = 3\n{fused}")
    rankings_file = tmp_path / "out" / "small" / "rankings" / "both.jsonl"
    before = rankings_file.read_text(encoding="utf-8")
    run(tmp_path / "small.toml", RunOptions(tmp_path / "out", only=("both",)))
    assert rankings_file.read_text(encoding="utf-8") == before


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        ('kind = "bm25"', "bm25"),
        ('encoder = { kind = "hashing" }', "dense"),
        ('kind = "fusion"\nof = ["bm25", "dense"]', "fusion"),
        ('kind = "run"\npath = "a.trec"', "run"),
    ],
)
def test_trials_of_a_retriever_that_repeats_itself_are_refused(
    tmp_path: Path, table: str, kind: str
) -> None:
    dense = '[[retrievers]]\nname = "dense"\nencoder = { kind = "hashing" }\n'
    retrievers = (
        f'{small.BM25}{dense}\n[[retrievers]]\nname = "same"\n{table}\ntrials = 3\n'
    )
    path = small.experiment(tmp_path, retrievers=retrievers)
    error = str(refusal(run, path, RunOptions(tmp_path / "out")))
    assert (
        f"a retriever of kind '{kind}' answers the same each time; leave trials out"
        in error
    )


@pytest.mark.parametrize("trials", [0, 101, '"three"'])
def test_other_numbers_of_trials_are_refused(
    tmp_path: Path, turns: str, trials: object
) -> None:
    path = small.experiment(
        tmp_path, retrievers=f"{small.BM25}{turns}trials = {trials}\n"
    )
    assert "trials" in str(refusal(run, path, RunOptions(tmp_path / "out")))


def test_one_trial_leaves_repeatability_unknown(
    tmp_path: Path, turns: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = small.experiment(tmp_path, retrievers=small.BM25 + turns)
    output = told(capsys, "run", path, "--results", tmp_path / "out")
    assert "tool: repeatability unknown: set trials." in " ".join(output.split())
    assert "bm25: repeatability" not in output


def test_a_latency_sample_shows_changed_answers(
    tmp_path: Path, turns: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = small.experiment(
        tmp_path, retrievers=small.BM25 + turns, more="[latency]\nsample = 4"
    )
    output = told(capsys, "run", path, "--results", tmp_path / "out")
    text = " ".join(output.split())
    assert "tool answers 4 of 4 queries differently when asked again: set" in text
    again = told(capsys, "run", path, "--results", tmp_path / "out")
    text = " ".join(again.split())
    assert "tool answers 4 of 4 queries differently when asked again: set" in text


def test_a_latency_sample_of_equal_answers_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = module(tmp_path, monkeypatch, TURNS.format(turns=[APPLE]))
    table = (
        f'\n[[retrievers]]\nname = "tool"\nkind = "python"\ncall = "{name}:search"\n'
    )
    results = ran(tmp_path, table, more="[latency]\nsample = 4")
    kinds = {warning["kind"] for warning in _warnings(results.folder)}
    assert not kinds & {"changed answers", "unknown repeatability"}


def test_an_answer_made_of_stored_ones_is_not_compared(
    tmp_path: Path, turns: str
) -> None:
    """Only the time of its part is measured again: the function answers otherwise."""
    call = re.search(r'call = ".*"', turns)
    assert call
    part = f'{{ kind = "python", {call[0]} }}'
    table = f'[[retrievers]]\nname = "mix"\nkind = "fusion"\nof = [{part}, "bm25"]\n'
    results = ran(tmp_path, table, more="[latency]\nsample = 4")
    assert results.manifest.retrievers["mix"].provenance.answers.compared is None


ALWAYS = """
def search(queries, depth):
    return [["apple", "pear", "car", "train", "boat", "fish"][:depth] for _ in queries]
"""


@pytest.mark.parametrize("in_rows", [False, True])
def test_documents_that_are_left_out_are_no_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_rows: bool
) -> None:
    data = small.dataset(tmp_path / "data")
    rows = json.loads((data / "queries.json").read_text(encoding="utf-8"))
    for row, document in zip(rows, small.TEXTS, strict=True):
        others = [other for other in small.TEXTS if other != document]
        row.update(id=document, relevant_documents=others[:1])
        if in_rows:
            row["excluded_ids"] = [document]
    (data / "queries.json").write_text(json.dumps(rows), encoding="utf-8")
    name = module(tmp_path, monkeypatch, ALWAYS)
    table = f'[[retrievers]]\nname = "tool"\nkind = "python"\ncall = "{name}:search"\n'
    path = small.experiment(
        tmp_path, retrievers=small.BM25 + table, more="[latency]\nsample = 6"
    )
    text = path.read_text(encoding="utf-8")
    source = f'"{data.as_posix()}"'
    exclude_self = str(not in_rows).lower()
    with_self = f"{{ path = {source}, exclude_self = {exclude_self} }}"
    path.write_text(text.replace(source, with_self), encoding="utf-8")
    results = run(path, RunOptions(tmp_path / "out"))
    answers = results.manifest.retrievers["tool"].provenance.answers
    assert results.rankings("tool")["fish"].doc_ids[-1] == "boat"
    assert (answers.compared, answers.changed) == (6, 0)


class Counting(Answering):
    """A search service that answers each request with other documents."""

    asked = 0

    def do_POST(self) -> None:
        """Answer with the documents in another order."""
        self.rfile.read(int(self.headers["Content-Length"]))
        type(self).asked += 1
        # Every six requests, one a query, the documents move by one.
        position = type(self).asked + type(self).asked // 7
        first = list(small.TEXTS)[position % len(small.TEXTS)]
        self.send(200, json.dumps({"hits": [{"id": first, "score": 1.0}]}).encode())


@contextmanager
def search_service() -> Iterator[str]:
    """The address of such a service."""
    Counting.asked = 0
    with running(Counting) as server:
        yield f"http://127.0.0.1:{server.server_port}/search"


def test_an_endpoint_is_asked_in_every_trial_and_once_only(tmp_path: Path) -> None:
    with search_service() as url:
        table = f"""
[[retrievers]]
name = "service"
kind = "http"
url = "{url}"
body = {{ q = "{{query}}" }}
ids = "hits[*].id"
trials = 3
concurrency = 1
"""
        results = ran(tmp_path, table)
        assert Counting.asked == 3 * len(small.QUERIES)
        again = run(tmp_path / "small.toml", RunOptions(tmp_path / "out"))
        assert Counting.asked == 3 * len(small.QUERIES)
    assert scores(again, "service", "RR") == scores(results, "service", "RR")
    distinct = {
        tuple(ranking.doc_ids for ranking in trial.values())
        for trial in again.trials("service")
    }
    assert len(distinct) > 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"trial": 2', '"trial": "two"', "trial"),
        ('"trial": 2', '"trial": 0', "trial"),
    ],
)
def test_an_edited_trial_is_one_sentence(
    tmp_path: Path,
    turns: str,
    capsys: pytest.CaptureFixture[str],
    old: str,
    new: str,
    message: str,
) -> None:
    folder = ran(tmp_path, turns + "trials = 2\n").folder
    path = folder / "rankings" / "tool.jsonl"
    path.write_text(path.read_text().replace(old, new, 1))
    small.signed_anew(folder)
    output = told(capsys, "score", folder, "-m", "P@2", code=2)
    assert "tool.jsonl" in output
    assert message in output
