"""The same queries on a changed corpus: what changed, which queries are left out, each retriever against itself."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from harness import records
from harness.evaluation.gate import corpus_change
from harness.pipeline import run
from harness.running.forecast import Options
from tests.support.small import refusal

TEXTS = {f"d{n}": f"topic{n} is described here in general words" for n in range(12)}
QUERIES = [{"id": f"q{n}", "query": f"topic{n} described", "relevant": [f"d{n}"]} for n in range(12)]


def ran(folder: Path, name: str, texts: dict[str, str]):
    data = folder / name
    data.mkdir()
    (data / "documents.jsonl").write_text("".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in texts.items()))
    (data / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in QUERIES))
    experiment = {"name": name, "dataset": str(data), "primary": "RR@2", "report": False,
                  "relevance": {"dangling": "drop"}, "statistics": {"test": "t"},
                  "retrievers": [{"name": "words", "kind": "bm25", "stemming": ""}]}  # fmt: skip
    return run(experiment, Options(folder / "out"))


@pytest.fixture
def runs(tmp_path):
    """d0 goes; d1 is rewritten; two new documents push d2 and d3 below the cutoff of their queries."""
    after = {id_: text for id_, text in TEXTS.items() if id_ != "d0"} | {"d1": "something else entirely"}
    after |= {f"n{n}{k}": f"topic{n} topic{n} described described" for n in (2, 3) for k in range(2)}
    return ran(tmp_path, "old", TEXTS), ran(tmp_path, "new", after)


def test_each_retriever_is_compared_with_itself_on_the_queries_that_kept_their_documents(runs):
    old, new = runs
    found = corpus_change(old, new)
    assert (found.added, found.removed, found.changed) == (("n20", "n21", "n30", "n31"), ("d0",), ("d1",))
    assert found.left_out == ("q0",) and len(found.queries) == 11
    (words,) = found.retrievers
    values = [one.scores.set_index("query_id")["value"].loc[list(found.queries)].to_numpy() for one in runs]
    assert (words.before, words.after) == pytest.approx((values[0].mean(), values[1].mean()))
    assert words.comparison.p_value == pytest.approx(stats.ttest_rel(*values).pvalue)
    assert words.comparison.mean_difference == pytest.approx(np.mean(values[1] - values[0]))
    assert words.displaced == 3  # those of q2 and q3, and the rewritten one of q1
    told = "3 of 11 queries lost a relevant document from the top 2 to documents that are new"
    assert told in "\n".join(found.lines())


def test_compare_and_gate_take_a_changed_corpus(runs, call):
    old, new = runs
    told = call("compare", old.folder, new.folder, "--corpus-changed", code=0)
    assert told.out.splitlines()[0] == "documents: 4 added, 1 removed, 1 changed"
    options = ("--challenger", "words", "--baseline", "words", "--margin", "0.9", "--from", old.folder)
    assert "other documents" in call("gate", new.folder, *options, code=2).err
    assert call("gate", new.folder, *options, "--corpus-changed", code=0).code == 0


def test_a_run_without_digests_of_its_documents_is_one_clear_error(runs):
    old, new = runs
    (old.folder / "corpus.csv").unlink()
    assert "has no corpus.csv" in str(refusal(corpus_change, records.read(old.folder), new))
