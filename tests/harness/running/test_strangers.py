"""Hits that are not documents of the data set, as another system may give them: kept, counted, and never asked for."""

from __future__ import annotations

import json

from harness import records
from harness.labels.pool import Drawing, draw, gather
from harness.pipeline import run
from harness.running.forecast import Options
from tests.support import layouts, small
from tests.support.small import BM25


def theirs(folder) -> str:
    """A saved run whose first hit of every query is not a document."""
    rows = [{"query_id": id_, "doc_id": doc, "score": score} for id_, _, docs in small.QUERIES
            for doc, score in (("ghost", 9.0), (docs[0], 1.0))]  # fmt: skip
    layouts.jsonl(folder / "run.jsonl", rows)
    return f'[[retrievers]]\nname = "theirs"\nkind = "run"\npath = "{(folder / "run.jsonl").as_posix()}"\n'


def test_they_are_not_given_to_a_judge(tmp_path):
    results = run(small.experiment(tmp_path, retrievers=BM25 + theirs(tmp_path)), Options(tmp_path / "out"))
    drawn = draw(gather([results.folder], 5), Drawing())
    asked = {document.id for query in drawn.queries for document in query.documents}
    assert asked == set(small.TEXTS)


def test_their_claims_are_not_judged(tmp_path):
    queries = small.dataset(tmp_path / "data") / "queries.json"
    rows = json.loads(queries.read_text())
    queries.write_text(json.dumps([{**row, "claims": ["apples grow on trees"]} for row in rows]))
    path = small.experiment(tmp_path, retrievers=BM25 + theirs(tmp_path), more='[judge]\nkind = "lexical"')
    text = path.read_text().replace('measures = ["nDCG@3",', 'measures = ["nDCG@3", "ClaimRecall@3",')
    path.write_text(text)
    results = run(path, Options(tmp_path / "out"))
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
