"""Runs whose scores contradict their ranks."""

import pytest

import harness
from retrievers import BM25, Function
from tests.support import small
from tests.support.small import Call

QRELS = "q1 0 d1 1\nq2 0 d2 1\n"
RANKED = {"q1": ("d1", "d2", "d3"), "q2": ("d2", "d1", "d3")}
TIED = "2 of 2 queries tie throughout; their ranks were not used"
RISING = "scores rise with rank in 2 of 2 queries: are they distances?"


def lines(scores, ranks=(1, 2, 3)):
    return "".join(
        f"{query} Q0 {document} {rank} {score} x\n"
        for query, documents in RANKED.items()
        for document, rank, score in zip(documents, ranks, scores, strict=True)
    )


@pytest.fixture
def score(tmp_path, call: Call):
    """Scores the lines of a run, and returns all that is printed."""

    def printed(content):
        (tmp_path / "qrels.txt").write_text(QRELS)
        (tmp_path / "run.trec").write_text(content)
        told = call("score", tmp_path / "qrels.txt", tmp_path / "run.trec", code=0)
        return told.out + told.err

    return printed


@pytest.mark.parametrize(
    ("scores", "sentence"), [((1, 1, 1), TIED), ((0.1, 0.2, 0.3), RISING)]
)
def test_a_run_whose_scores_contradict_its_ranks_is_warned_of(scores, sentence, score):
    assert f"run: {sentence}" in score(lines(scores))


def test_queries_without_labels_are_not_among_those_that_tie(score):
    unlabelled = "".join(f"x{n} Q0 d{m} {m} 1 r\n" for n in range(9) for m in (1, 2))
    printed = score(lines((3, 2, 1)) + unlabelled)
    assert "throughout" not in printed


@pytest.mark.parametrize(
    "content",
    [lines((3, 2, 1)), lines((1, 2, 3), ranks=(3, 2, 1))],
    ids=["falling", "in another order of lines"],
)
def test_a_run_whose_scores_have_the_order_of_its_ranks_is_not_warned_of(
    content, score
):
    printed = score(content)
    assert "tie throughout" not in printed
    assert "distances" not in printed


@pytest.mark.parametrize(
    ("scores", "sentence"), [((1, 1, 1), TIED), ((0.1, 0.2, 0.3), RISING)]
)
def test_a_saved_run_of_an_experiment_is_warned_of(
    scores, sentence, tmp_path, call: Call
):
    data = tmp_path / "data"
    data.mkdir()
    for document in ("d1", "d2", "d3"):
        (data / f"{document}.md").write_text(f"# {document}\n\ntext of {document}")
    (data / "queries.csv").write_text("id,query,gold_id\nq1,a text,d1\nq2,of,d2\n")
    (tmp_path / "run.trec").write_text(lines(scores))
    path = small.experiment(
        tmp_path,
        retrievers='[[retrievers]]\nname = "old"\nkind = "run"\n'
        f'path = "{(tmp_path / "run.trec").as_posix()}"\n',
    )
    told = call("run", path, "--results", tmp_path / "out")
    assert f"old: {sentence}" in " ".join((told.out + told.err).split())


def test_a_saved_run_of_one_query_is_warned_of(tmp_path, call: Call):
    data = tmp_path / "data"
    data.mkdir()
    (data / "d1.md").write_text("# d1\n\na text")
    (data / "d2.md").write_text("# d2\n\nanother text")
    (data / "queries.csv").write_text("id,query,gold_id\nq1,a text,d1\n")
    (tmp_path / "run.trec").write_text("q1 Q0 d1 1 1.0 x\nq1 Q0 d2 2 1.0 x\n")
    path = small.experiment(
        tmp_path,
        retrievers='[[retrievers]]\nname = "old"\nkind = "run"\n'
        f'path = "{(tmp_path / "run.trec").as_posix()}"\n',
    )
    told = call("run", path, "--results", tmp_path / "out")
    words = " ".join((told.out + told.err).split())
    assert "1 of 1 query ties throughout; its ranks were not used" in words


@pytest.mark.parametrize(
    ("scores", "sentence"),
    [((1, 1, 1), TIED), ((0.1, 0.2, 0.3), RISING), ((3, 2, 1), "")],
)
def test_a_function_is_warned_of(scores, sentence):
    documents = {name: f"text of {name}" for name in ("d1", "d2", "d3")}

    def own(text, depth):
        return list(zip(documents, scores, strict=True))

    results = harness.evaluate(
        documents,
        {"q1": "a", "q2": "b"},
        {"q1": ["d1"], "q2": ["d2"]},
        {"own": Function(own)},
    )
    printed = " ".join(str(results).split())
    told = [other for other in (TIED, RISING) if f"own: {other}" in printed]
    assert told == ([sentence] if sentence else [])


def test_queries_for_which_nothing_is_returned_are_named():
    documents = {name: f"text of {name}" for name in ("d1", "d2", "d3")}

    def own(text, depth):
        return ["d1", "d2"] if text == "a" else []

    queries = {"q1": "a", "q2": "b", "q3": "c"}
    labels = {"q1": ["d1"], "q2": ["d2"], "q3": []}
    results = harness.evaluate(documents, queries, labels, {"own": Function(own)})
    printed = " ".join(str(results).split())
    # The third query has no answer: nothing is right for it.
    assert (
        "own returned nothing for 1 of 2 queries (e.g. 'q2'): it scores 0." in printed
    )


def test_a_function_that_returns_nothing_for_all_queries_has_failed():
    documents = {name: f"text of {name}" for name in ("d1", "d2", "d3")}
    queries = {f"q{number}": f"text of d{number % 3 + 1}" for number in range(5)}
    labels = {query: ["d1"] for query in queries}
    nothing = Function(lambda text, depth: [])
    results = harness.evaluate(
        documents, queries, labels, {"bm25": BM25(), "own": nothing}
    )
    printed = " ".join(str(results).split())
    assert "own: returned no document for any of 5 queries" in printed
    assert "Use bm25" not in printed
