import hashlib
import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from harness import records
from harness.cli import main
from harness.labels.pool import Drawing, draw, gather
from harness.pipeline import run
from harness.records import Results, unfinished
from harness.reproduce import reproduce
from harness.running.forecast import Options
from retrievers.errors import BackendError, InputError
from tests.support import layouts, small, tiny
from tests.support.disks import small_disk
from tests.support.recompute import verified
from tests.support.servers import OpenAIProvider, serving
from tests.support.small import BM25


def digests(folder: Path) -> dict[str, str]:
    """The bytes of all that must be the same again."""
    files = [*folder.glob("rankings/*"), *folder.glob("runs/*"), *folder.glob("*.trec"), *folder.glob("*.jsonl")]
    files += [folder / f"{name}.csv" for name in ("scores", "summary", "comparisons", "tests")]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


HEADS = {
    "scores": "retriever,query_id,measure,value",
    "summary": "retriever,measure,count,mean,ci_low,ci_high,std,min,q25,median,q75,max,ci_method",
    "comparisons": "measure,a,b,n,zeros,wins,ties,losses,mean_difference,ci_low,ci_high,w_plus,w_minus,statistic,"
    "p_value,p_adjusted,p_minimum,method,effect_size,verdict,role,p_minimum_adjusted,p_randomization,ci_method",
    "costs": "retriever,stage,calls,texts,cached,tokens,usd,seconds,p50_ms,p95_ms,p99_ms,measured_at",
}
"""Columns that others read."""


def test_everything_is_in_the_folder_and_stands_up_to_recomputation(finished: Results) -> None:
    assert {file.name for file in finished.folder.iterdir()} >= {
        "manifest.json", "labels.jsonl", "documents.jsonl", "rankings", "runs", "qrels.trec", "qrels.gains.trec",
        "scores.csv", "summary.csv", "comparisons.csv", "tests.csv", "costs.csv", "report.html", "report.md",
    }  # fmt: skip
    assert finished.retrievers == ("bm25", "hashing", "hybrid")
    assert (len(finished.scores), len(finished.comparisons)) == (3 * 8 * 6, 3 * 8)
    assert not unfinished(finished.folder).exists()
    verified(finished.folder)
    for name, head in HEADS.items():
        lines = (finished.folder / f"{name}.csv").read_text(encoding="utf-8").splitlines()
        assert f"{lines[0]},".startswith(f"{head},")
    assert finished.queries["q-wheels"].labels.ranked == ("train", "car", "boat")
    assert finished.documents["train"].title == "train"
    assert finished.rankings("bm25")["q-rails"].doc_ids == ("train",)
    assert (finished.folder / "qrels.trec").read_text().splitlines()[:2] == ["q-fruit 0 apple 2", "q-fruit 0 pear 1"]
    assert "q-wheels 0 train 7" in (finished.folder / "qrels.gains.trec").read_text()
    manifest = finished.manifest
    assert (manifest.experiment["name"], manifest.resolved.statistics["correction"]) == ("small", "holm")
    assert (manifest.dataset.documents, len(manifest.dataset.digest)) == (6, 64)
    assert manifest.versions["numpy"]
    said = (finished.folder / "report.md").read_text(encoding="utf-8")
    readings = said.partition("## Other grade rules")[2].partition("\n## ")[0]
    assert [readings.count(f"\n| {rule} | ") for rule in ("linear", "binary", "reciprocal")] == [2, 2, 1]
    means = finished.summary[finished.summary["measure"] == "nDCG@3"]["mean"]
    first = next(line for line in readings.splitlines() if line.startswith("| linear | nDCG@3"))
    assert all(f"{mean:.3f}" in first for mean in means)


@pytest.mark.parametrize(
    "more",
    ['baseline = "bm25"',
     '[relevance]\ngain = "exponential"\nideal = "retrieved"',
     '[relevance]\ngrades = "binary"\n[statistics]\ntest = "t"',
     '[relevance]\ngrades = "reciprocal"\n[statistics]\ncorrection = "bonferroni"',
     "[relevance]\ngrades = [[1, 3], [2, 1]]",
     '[statistics]\ntest = "randomization"',
     "[statistics]\nmargin = 0.2"],
)  # fmt: skip
def test_other_rules_stand_up_to_recomputation(tmp_path: Path, more: str) -> None:
    run(small.experiment(tmp_path, more=more), Options(tmp_path / "out"))
    verified(tmp_path / "out" / "small")


def test_the_same_again_is_the_same_to_the_byte_and_embeds_nothing(tmp_path: Path, finished: Results) -> None:
    path = small.experiment(tmp_path)
    fresh = run(path, Options(tmp_path / "out", fresh=True))
    assert digests(fresh.folder) == digests(finished.folder)
    costs = run(path, Options(tmp_path / "out")).costs
    assert [folder.name for folder in (tmp_path / "out").iterdir() if folder.is_dir()] == ["small"]
    embedding = costs[costs["stage"].str.startswith("embed-")]
    assert (embedding["cached"] == embedding["texts"]).all()
    assert (embedding["calls"] == 0).all()


def test_only_runs_some_and_takes_the_others(tmp_path: Path) -> None:
    path = small.experiment(tmp_path)
    before = digests(run(path, Options(tmp_path / "out")).folder)
    results = run(path, Options(tmp_path / "out", only=("hashing",)))
    assert digests(results.folder) == before
    assert set(results.costs["retriever"]) == {"bm25", "hashing", "hybrid"}
    for only, place, told in (("bm52", "out", "did you mean 'bm25'"),
                              ("bm25", "elsewhere", "holds no results of this experiment")):  # fmt: skip
        assert told in str(small.refusal(run, path, Options(tmp_path / place, only=(only,))))
    run(small.experiment(tmp_path, more="seed = 1"), Options(tmp_path / "out"))  # another question
    assert (tmp_path / "out" / "small.1" / "manifest.json").exists()
    assert records.read_manifest(tmp_path / "out" / "small").resolved.seed == 1


def test_wrong_input_and_failures_of_every_retriever_leave_earlier_results_untouched(tmp_path, finished):
    shutil.copytree(finished.folder, tmp_path / "out" / "small")
    before = digests(finished.folder)
    far = '[[retrievers]]\nname = "far"\nencoder = { kind = "hashing" }\nstore = "http://127.0.0.1:9"\n'
    with pytest.raises(BackendError, match="far: "):
        run(small.experiment(tmp_path, retrievers=far), Options(tmp_path / "out"))
    assert not unfinished(tmp_path / "out" / "small").exists()  # nothing is in it to be judged
    assert digests(tmp_path / "out" / "small") == before
    path = small.experiment(tmp_path)
    path.write_text(path.read_text().replace('"Success@1"', "\"R(groups='first')@3\""))
    with pytest.raises(InputError, match="groups"):  # before anything is embedded
        run(path, Options(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
    absent = '[[retrievers]]\nname = "m"\nencoder = { kind = "sentence-transformers", model = "./no/such/folder" }\n'
    with pytest.raises(InputError, match="retriever 'm'"):
        run(small.experiment(tmp_path, retrievers=absent), Options(tmp_path / "out"))
    (tmp_path / "data" / "queries.json").write_text("[", encoding="utf-8")
    with pytest.raises(InputError, match=r"queries\.json:1: is not JSON"):
        run(small.experiment(tmp_path), Options(tmp_path / "out"))
    assert digests(tmp_path / "out" / "small") == before


def test_a_reranked_retriever_has_its_uplift_with_a_ceiling(tmp_path: Path) -> None:
    model = tiny.cross_encoder(tmp_path / "model").as_posix()
    reranked = '[[retrievers]]\nname = "bm25"\nkind = "bm25"\n[[retrievers]]\nname = "better"\nof = "bm25"\n'
    reranked += f'rerank = {{ kind = "cross-encoder", model = "{model}", depth = 3 }}\n'
    path = small.experiment(tmp_path, retrievers=reranked, more="[latency]\nsample = 2")
    results = run(path, Options(tmp_path / "out"))
    for query, ranking in results.rankings("bm25").items():
        assert set(results.rankings("better")[query].doc_ids[:3]) == set(ranking.doc_ids[:3])
        assert results.rankings("better")[query].doc_ids[3:] == ranking.doc_ids[3:]
    uplift = results.tests[results.tests["family"] == "rerank uplift"].iloc[0]
    assert (uplift["a"], uplift["b"]) == ("better", "bm25")
    best = float(uplift["note"].removeprefix("ceiling "))
    means = results.summary[results.summary["measure"] == "nDCG@3"].set_index("retriever")["mean"]
    assert best >= max(means) - 5e-5
    timed = results.costs[results.costs["p50_ms"].notna()]
    assert set(zip(timed["retriever"], timed["stage"], strict=True)) == {("bm25", "search"), ("better", "rerank")}
    again = run(path, Options(tmp_path / "out"))
    assert list(again.costs["p50_ms"].dropna()) == list(timed["p50_ms"])
    assert not (again.costs["stage"] == "latency").any()


ODD = ["a b", "100%", "日本語", 'say "hi"', "a,b", "=1+1", "NA", "1", "01", "1.0", "é", "🙂"]


def test_odd_ids_pass_through_every_file(tmp_path: Path) -> None:
    words = {id_: f"word{number}" for number, id_ in enumerate(ODD)}
    documents = {id_: f"{word} common" for id_, word in words.items()}
    layouts.beir(tmp_path / "data", layouts.Collection(documents, words, {id_: {id_: 1} for id_ in ODD}))
    judged = "".join(f"{id_}\t{id_}\t1\n" for id_ in ODD)  # as they are, where a table would quote one
    (tmp_path / "data" / "qrels" / "test.tsv").write_text(judged, encoding="utf-8")
    results = run(small.experiment(tmp_path), Options(tmp_path / "out"))
    right = results.scores[(results.scores["retriever"] == "bm25") & (results.scores["measure"] == "RR")]
    assert sorted(right["query_id"]) == sorted(ODD)
    assert (right["value"] == 1).all()
    assert set(results.rankings("bm25")) == set(right["query_id"])
    verified(results.folder)


def asked(folder: Path, *queries: tuple[str, list[str]]) -> None:
    """Replace the queries of the small data set."""
    said = [{"query": text, "relevant_documents": docs} for text, docs in queries]
    (small.dataset(folder / "data") / "queries.json").write_text(json.dumps(said), encoding="utf-8")


def test_one_query_is_undefined_rather_than_made_up(tmp_path: Path) -> None:
    asked(tmp_path, ("rails", ["train"]))
    results = run(small.experiment(tmp_path, report=True), Options(tmp_path / "out"))
    assert (results.comparisons["p_value"] == 1).all()
    assert results.comparisons["verdict"].str.startswith("undecided").all()
    assert "not estimable" in (results.folder / "report.html").read_text(encoding="utf-8")
    assert (results.folder / "report.md").read_text(encoding="utf-8").count("| not estimable |") >= 3
    verified(results.folder)


def test_empty_documents_and_queries_without_answers_score_zero_and_stay(tmp_path: Path) -> None:
    asked(tmp_path, ("rails", ["empty"]), ("zzz", ["train"]), ("x", []))
    (tmp_path / "data" / "empty.md").write_text("", encoding="utf-8")
    results = run(small.experiment(tmp_path), Options(tmp_path / "out"))
    bm25 = results.scores[results.scores["retriever"] == "bm25"]
    assert set(bm25["query_id"]) == {"q0", "q1"}
    assert (bm25["value"] == 0).all()
    assert results.rankings("bm25")["q1"].doc_ids == ()
    assert results.manifest.ledger.dataset["no-relevant-document"] == ("q2",)
    assert results.manifest.ledger.retrievers["hashing"].notes["empty"] == ("empty",)
    verified(results.folder)


@pytest.mark.parametrize(("name", "column"), [("scores", "value"), ("summary", "mean"), ("comparisons", "p_adjusted")])
def test_a_folder_that_was_changed_is_not_reproduced(tmp_path: Path, finished: Results, name: str, column: str) -> None:
    folder = shutil.copytree(finished.folder, tmp_path / "small")
    assert name != "scores" or reproduce(folder).differing == ()
    table = pd.read_csv(folder / f"{name}.csv", dtype={"query_id": str})
    records.write_table(folder, name, table.assign(**{column: 0.77}))
    with pytest.raises(InputError, match="changed or cut since it was written"):
        reproduce(folder)


@pytest.mark.parametrize("size", ["8k", "24k", "60k"])
def test_a_disk_that_is_full_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str], size: str) -> None:
    """It is a file of the results that cannot be written, and not standard output."""
    path = small.experiment(tmp_path)
    with small_disk(tmp_path / "disk", size) as disk, pytest.raises(SystemExit) as stopped:
        main(["run", str(path), "--results", str(disk), "--quiet"])
    assert stopped.value.code == 2
    assert re.search(r"error: \S*/disk/small\S*: cannot be written: No space left on device", capfd.readouterr().err)


PAID = 'encoder = {{ kind = "openai", model = "m", base_url = "{}", price = 1000, batch_size = 2 }}\n'


@pytest.mark.usefixtures("own_cache")
def test_costs_are_the_retrievers_own_where_blocks_share_an_encoder(tmp_path: Path) -> None:
    with serving(OpenAIProvider(["500"])) as provider:
        blocks = '[[retrievers]]\nname = "whole"\n' + PAID.format(provider.url)
        blocks += '[[retrievers]]\nname = "cut"\nchunk = { size = 20 }\n' + PAID.format(provider.url)
        results = small.ran(tmp_path, retrievers=blocks)
        requests = len(provider.requests)
    costs = {(row["retriever"], row["stage"]): row for row in results.costs.to_dict("records")}
    whole, cut = costs["whole", "embed-documents"], costs["cut", "embed-documents"]
    assert (whole["texts"], whole["calls"]) == (6, 3)
    assert cut["texts"] > 6
    assert cut["calls"] == -(-(cut["texts"] - cut["cached"]) // 2)
    for row in (whole, cut):
        assert row["tokens"] > 0
        assert row["usd"] == pytest.approx(row["tokens"] * 1e-3)
    assert costs["cut", "embed-queries"]["calls"] == 0  # the queries are those of the first
    assert sum(row["calls"] for row in costs.values()) + 1 == requests  # one was tried again
    counts = {name: ledger.counts["embed-documents"] for name, ledger in results.manifest.ledger.retrievers.items()}
    assert (counts["whole"].get("retries"), counts["cut"].get("retries")) == (1, None)


# Hits that are not documents of the data set, as another system may give them


def theirs(folder) -> str:
    """A saved run whose first hit of every query is not a document."""
    rows = [{"query_id": id_, "doc_id": doc, "score": score} for id_, _, docs in small.QUERIES
            for doc, score in (("ghost", 9.0), (docs[0], 1.0))]  # fmt: skip
    layouts.jsonl(folder / "run.jsonl", rows)
    return f'[[retrievers]]\nname = "theirs"\nkind = "run"\npath = "{(folder / "run.jsonl").as_posix()}"\n'


def test_they_are_not_given_to_a_judge_nor_are_their_claims(tmp_path):
    queries = small.dataset(tmp_path / "data") / "queries.json"
    rows = json.loads(queries.read_text())
    queries.write_text(json.dumps([{**row, "claims": ["apples grow on trees"]} for row in rows]))
    path = small.experiment(tmp_path, retrievers=BM25 + theirs(tmp_path), more='[judge]\nkind = "lexical"')
    text = path.read_text().replace('measures = ["nDCG@3",', 'measures = ["nDCG@3", "ClaimRecall@3",')
    path.write_text(text)
    results = run(path, Options(tmp_path / "out"))
    drawn = draw(gather([results.folder], 5), Drawing())
    assert {document.id for query in drawn.queries for document in query.documents} == set(small.TEXTS)
    judged = records.readings.read_passages(results.folder / records.readings.FOLDER)
    assert judged
    assert judged.keys() <= small.TEXTS.keys()


def test_a_data_set_of_several_files_of_queries_is_found_again(tmp_path):
    queries = small.dataset(tmp_path / "data") / "queries.json"
    rows = json.loads(queries.read_text())
    queries.write_text(json.dumps(rows[:3]))
    (tmp_path / "data" / "more.json").write_text(json.dumps(rows[3:]))
    path = small.experiment(tmp_path, retrievers=BM25)
    place = (tmp_path / "data").as_posix()
    table = f'dataset = {{ path = "{place}", queries = ["queries.json", "more.json"] }}'
    path.write_text(path.read_text().replace(f'dataset = "{place}"', table))
    results = run(path, Options(tmp_path / "out"))
    assert len(gather([results.folder], 5).queries) == len(small.QUERIES)
