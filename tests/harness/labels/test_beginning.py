"""Questions without labels: found by init, answered by run, and judged from there."""

import json
import re

import pytest

import harness
from harness.dataset import load, reference_of
from harness.evaluation.conclusions import first_lines
from harness.evaluation.evaluate import evaluation_of
from harness.experiment.init import write_experiment
from harness.labels.pool import read_pool
from harness.report import write_report
from retrievers.errors import InputError
from tests.support import small
from tests.support.labels_small import as_person, judged, write


@pytest.fixture
def folder(tmp_path):
    """The small data set without its labels."""
    data = small.dataset(tmp_path / "data")
    (data / "queries.json").unlink()
    return data


TEXTS = [text for _, text, _ in small.QUERIES]
ROWS = [{"id": id_, "query": text} for id_, text, _ in small.QUERIES]
FORMS = {"txt": "\n".join(TEXTS) + "\n\n", "csv": "\n".join(["query", *TEXTS]) + "\n",
         "jsonl": "\n".join(map(json.dumps, ROWS)), "json": json.dumps(ROWS)}  # fmt: skip


def questions(folder, form):
    (folder / f"queries.{form}").write_text(FORMS[form], encoding="utf-8")


@pytest.mark.parametrize("form", FORMS)
def test_questions_without_labels_are_a_beginning(folder, tmp_path, form):
    questions(folder, form)
    written = write_experiment(folder, tmp_path / "begun.toml")
    said = "\n".join(written.lines())
    assert "6 queries without labels" in said
    assert "harness pool results/begun" in said
    assert len(written.dataset.queries) == 6
    assert written.dataset.count == len(small.TEXTS)
    assert written.dataset.labels == {}


def test_beir_without_qrels_is_a_beginning(tmp_path):
    folder = tmp_path / "beir"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text('{"_id": "d", "text": "one"}\n', encoding="utf-8")
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "which"}\n', encoding="utf-8")
    assert [query.id for query in load(reference_of(folder)).queries] == ["q"]


@pytest.fixture
def answered(folder, tmp_path):
    questions(folder, "json")
    path = small.experiment(tmp_path, report=True)
    return path, harness.run(path, harness.Options(results=tmp_path / "results"))


def test_a_run_without_labels_has_rankings_and_no_scores(answered, capsys):
    from harness.console.printing import print_results

    _, results = answered
    assert not results.scored
    assert len(results.queries) == 6
    assert all(len(results.rankings(name)) == 6 for name in results.retrievers)
    for name in ("scores", "summary", "comparisons", "tests"):
        assert len((results.folder / f"{name}.csv").read_text(encoding="utf-8").splitlines()) == 1
    assert (results.folder / "qrels.trec").read_text() == ""
    page = (results.folder / "report.html").read_text(encoding="utf-8")
    assert "No query has labels" in page
    assert "harness pool" in page
    assert re.search(r"about \d+ minutes at 20 seconds each", page)
    assert "shown" not in page.partition("</style>")[2]
    assert "rank-biased overlap" in (results.folder / "report.md").read_text(encoding="utf-8")
    print_results(results, quiet=False, as_json=False)
    said = capsys.readouterr().out
    assert "bm25 and hashing:" in said
    assert "next: harness pool" in said
    print_results(results, quiet=False, as_json=True)
    assert json.loads(capsys.readouterr().out)["scores"] == []


def test_judgments_beside_the_queries_are_the_labels(answered, folder, tmp_path):
    path, _ = answered
    people = judged(folder, ["q-fruit", "q-wheels", "q-swim"], inclusion=0.5)
    model = judged(folder, [id_ for id_, _, _ in small.QUERIES], "m", "llm")
    write(folder / "judgments.jsonl", [*people, *model])
    dataset = load(reference_of(folder))
    assert len(dataset.queries) == 6
    assert {id_: labels.source for id_, labels in dataset.labels.items()} == {
        "q-fruit": "people", "q-wheels": "people", "q-swim": "people",
        "q-rails": "model", "q-green": "model", "q-drive": "model",
    }  # fmt: skip
    after = harness.run(path, harness.Options(results=tmp_path / "results"))
    # Scores rest on people's queries; the model's were answered, and wait in labels.jsonl.
    assert set(after.scores["query_id"]) == {"q-fruit", "q-wheels", "q-swim"}
    assert all(len(after.rankings(name)) == 6 for name in after.retrievers)
    assert after.queries["q-rails"].labels.source == "model"
    assert after.queries["q-fruit"].labels.inclusion == 0.5
    write_report(after)


def test_a_changed_document_and_an_absent_one(answered, folder):
    said = judged(folder, ["q-fruit"])
    write(folder / "judgments.jsonl", said)
    (folder / "apple.md").write_text("# apple\n\nanother text", encoding="utf-8")
    assert load(reference_of(folder)).ledger["changed-text"] == ("q-fruit apple",)
    (folder / "apple.md").unlink()
    with pytest.raises(InputError, match="judges document 'apple' for query 'q-fruit', which does not exist"):
        load(reference_of(folder))


def test_the_next_look_draws_what_it_lacks_and_the_looks_nest(folder, tmp_path, call):
    questions(folder, "json")
    path = small.experiment(tmp_path, more="[statistics]\nlooks = { queries = [2, 4] }\n")
    drawn, said = [], []
    for look in (2, 4):
        found = harness.run(path, harness.Options(results=tmp_path / "results"))
        said += [first_lines(evaluation_of(found)).step] if found.scored else []
        pool = tmp_path / f"pool-{look}.jsonl"
        call("pool", tmp_path / "results" / "small", "--next-look", "--output", pool, code=0)
        made = read_pool(pool)
        drawn.append({query.query_id for query in made.queries})
        with (folder / "judgments.jsonl").open("a", encoding="utf-8") as file:
            file.writelines(one.line() for one in as_person(made))
    assert list(map(len, drawn)) == [2, 2] and not drawn[0] & drawn[1]
    found = harness.run(path, harness.Options(results=tmp_path / "results"))
    said.append(first_lines(evaluation_of(found)).step)
    assert re.fullmatch(r"Go on to 4 queries \(\d+ % power\): harness pool RESULTS --next-look\.", said[0])
    assert re.fullmatch(r"Undecided at the last look, with \d+ labels of 4 queries\.", said[1])
    told = call("pool", tmp_path / "results" / "small", "--next-look", "--output", tmp_path / "p.jsonl", code=2)
    assert "4 queries are labelled, and the last look is planned at 4" in told.err
