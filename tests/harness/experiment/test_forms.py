"""Learned sparse retrieval and late interaction as blocks like any other: run, planned, checked, told in the report."""

from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from harness.evaluation.costs import costs_of
from harness.experiment import load
from harness.pipeline import run
from harness.records import Results
from harness.report import write_report
from harness.report.sections.tradeoffs import vector_sizes
from harness.report.text import plain, size
from harness.running.check import check
from harness.running.forecast import Options
from harness.running.plan import RunPlan
from retrievers.errors import InputError
from retrievers.local_models import LocalModel
from tests.support import layouts, tiny
from tests.support.small import BM25, planned

pytestmark = pytest.mark.usefixtures("own_cache")

DOCUMENTS = {
    "d1": ("en", "the cat sits"),
    "d2": ("en", "a dog runs fast"),
    "d3": ("de", "shock wave of the wing"),
    "d4": ("de", "heat of the body flow of the wing slow cat dog wave shock a title runs fast"),
    "d5": ("en", " "),
    "d6": ("en", "cat cat dog"),
}
QUERIES = {"q1": "cat", "q2": "wing heat", "d6": "cat cat dog"}
ENCODERS = {"sparse": "sparse-encoder", "multivector": "multivector-encoder"}
FORMS = tuple(ENCODERS)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    made = {"sparse": tiny.splade, "multivector": tiny.colbert}
    return {form: make(tmp_path_factory.mktemp(form)) for form, make in made.items()}


def data(folder):
    layouts.jsonl(folder / "corpus.jsonl", [
        {"_id": id_, "text": text, "metadata": {"language": language}} for id_, (language, text) in DOCUMENTS.items()
    ])  # fmt: skip
    layouts.jsonl(folder / "queries.jsonl", [{"_id": id_, "text": text} for id_, text in QUERIES.items()])
    rows = [{"query-id": q, "corpus-id": d, "score": 1} for q, d in (("q1", "d1"), ("q2", "d3"), ("d6", "d1"))]
    layouts.table(folder / "qrels" / "test.tsv", rows, delimiter="\t")
    return folder.as_posix()


def written(folder, blocks, dataset="", more=""):
    path = folder / "e.toml"
    place = dataset or f'"{data(folder / "data")}"'
    path.write_text(
        f'name = "e"\ndataset = {place}\nprimary = "RR"\nmeasures = ["RR"]\ndepth = 5\nreport = false\n'
        f"{more}\n{blocks}",
        encoding="utf-8",
    )
    return path


@pytest.fixture
def experiment(tmp_path):
    return partial(written, tmp_path)


class Ran(NamedTuple):
    """One run of a form beside BM25, what was planned of it, and the cache that it filled."""

    form: str
    path: Path
    planned: RunPlan
    results: Results
    cache: Path


@pytest.fixture(scope="module", params=FORMS)
def of_form(request, tmp_path_factory, models):
    folder = tmp_path_factory.mktemp("ran")
    path = written(folder, block(models, request.param) + BM25)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(folder / "cache"))
        return Ran(
            request.param, path, planned(path, results=folder), run(path, Options(folder / "out")), folder / "cache"
        )


@pytest.fixture
def ran(of_form, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE", str(of_form.cache))
    return of_form


def block(models, form, more="", *, name=None):
    encoder = f'encoder = {{ kind = "{ENCODERS[form]}", model = "{models[form].as_posix()}", device = "cpu" }}'
    return f'[[retrievers]]\nname = "{name or form}"\nkind = "{form}"\n{encoder}\n{more}\n'


def expected(models, form, documents, query):
    """The scores by sentence-transformers itself."""
    import sentence_transformers

    cls = {"sparse": "SparseEncoder", "multivector": "MultiVectorEncoder"}[form]
    model = getattr(sentence_transformers, cls)(str(models[form]), device="cpu")
    queries, texts = model.encode_query([query]), model.encode_document([text for _, text in documents.values()])
    if form == "sparse":  # torch warns of its own products of sparse tensors
        queries, texts = queries.to_dense(), texts.to_dense()
    return dict(zip(documents, model.similarity(queries, texts)[0].tolist(), strict=True))


def test_a_run_ranks_as_the_library_scores(ran, models):
    documents = {id_: one for id_, one in DOCUMENTS.items() if one[1].strip()}
    for id_, text in QUERIES.items():
        scores = expected(models, ran.form, documents, text)
        ranking = ran.results.rankings(ran.form)[id_]
        assert set(ranking.doc_ids) == {one for one, score in scores.items() if score > 0 or ran.form == "multivector"}
        theirs = [scores[one] for one in ranking.doc_ids]
        assert theirs == pytest.approx(sorted(theirs, reverse=True), rel=1e-5)  # sums of 32 bits may swap what is equal
        assert ranking.scores.tolist() == pytest.approx(theirs, rel=1e-4)
    ledger = ran.results.manifest.ledger.retrievers[ran.form]
    assert ledger.notes["empty"] == ("d5",)
    assert ledger.notes["truncated"] == ("d4",)


@pytest.mark.parametrize("form", FORMS)
def test_chunks_filters_and_documents_that_ask(experiment, models, form, tmp_path):
    blocks = block(models, form, 'filter = { language = "de" }', name="german")
    blocks += block(models, form, "chunk = { size = 20, overlap = 5 }", name="cut")
    dataset = f'{{ path = "{data(tmp_path / "data")}", exclude_self = true }}'
    results = run(experiment(blocks, dataset), Options(tmp_path / "out"))
    assert {one for ranking in results.rankings("german").values() for one in ranking.doc_ids} <= {"d3", "d4"}
    cut = results.rankings("cut")
    assert all(len(set(ranking.doc_ids)) == len(ranking) <= 5 for ranking in cut.values())
    assert "d6" not in cut["d6"].doc_ids and "d6" in cut["q1"].doc_ids
    assert "truncated" not in results.manifest.ledger.retrievers["cut"].notes
    facts = results.manifest.retrievers["cut"].provenance
    assert int(facts["vectors"]) > 5


def test_they_are_fused_reranked_and_timed_as_any_other(experiment, models, tmp_path):
    blocks = "".join(block(models, form) for form in FORMS)
    blocks += '[[retrievers]]\nname = "hybrid"\nkind = "fusion"\nof = ["sparse", "multivector"]\n'
    model = tiny.bi_encoder(tmp_path / "bi").as_posix()
    rerank = f'{{ kind = "late-interaction", model = "{model}", depth = 3, device = "cpu" }}'
    blocks += f'[[retrievers]]\nname = "again"\nof = "sparse"\nrerank = {rerank}\n'
    results = run(experiment(blocks, more="[latency]\nsample = 2"), Options(tmp_path / "out"))
    for id_ in QUERIES:
        of = [results.rankings(form)[id_].doc_ids for form in FORMS]
        fused = {one: sum(1 / (60 + r.index(one) + 1) for r in of if one in r) for one in {*of[0], *of[1]}}
        ranking = results.rankings("hybrid")[id_]
        assert ranking.scores.tolist() == pytest.approx([fused[one] for one in ranking.doc_ids], rel=1e-5)
        assert set(results.rankings("again")[id_].doc_ids) == set(of[0])
    timed = results.costs[results.costs["p50_ms"].notna()]
    assert {("sparse", "embed-queries"), ("multivector", "search"), ("again", "rerank")} <= set(
        zip(timed["retriever"], timed["stage"], strict=True)
    )


@pytest.mark.parametrize("store", ("", 'store = ":memory:"', 'store = "edge"'))
def test_a_second_run_embeds_nothing_and_says_the_same(ran, experiment, models, store, tmp_path, monkeypatch):
    monkeypatch.setattr(LocalModel, "_load", lambda *_: pytest.fail("a model was loaded"))
    path = experiment(block(models, ran.form, store)) if store else ran.path
    first = run(path, Options(tmp_path / "first")) if store else ran.results
    second = run(path, Options(tmp_path / "second"))
    assert second.rankings(ran.form) == first.rankings(ran.form)
    facts = [one.manifest.retrievers[ran.form].provenance for one in (first, second)]
    assert facts[0] == facts[1]
    rows = planned(path, results=tmp_path / "none").rows
    assert [(row.stage, row.texts, row.cached, row.calls) for row in rows] == [
        ("embed-documents", 5, 5, 0), ("embed-queries", 3, 3, 0),
    ]  # fmt: skip


def test_a_plan_counts_what_the_run_then_reads(ran):
    rows = {row.stage: row for row in ran.planned.rows}
    costs = {row["stage"]: row for row in ran.results.costs.to_dict("records") if row["retriever"] == ran.form}
    for stage in ("embed-documents", "embed-queries"):
        assert rows[stage].exact and rows[stage].usd == 0
        assert (rows[stage].tokens, rows[stage].texts, rows[stage].calls) == (
            costs[stage]["tokens"], costs[stage]["texts"], costs[stage]["calls"],
        )  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_check_says_what_would_not_be_read(experiment, models, form):
    told = list(check(experiment(block(models, form))).lines())
    limit = {"sparse": 12, "multivector": 10}[form]
    assert any(f"1 of 6 documents is longer than the {limit} tokens that it reads" in line for line in told)
    assert any("reads only the start of 1 of 6 documents" in line for line in told)


def test_sizes_stand_in_the_manifest_and_in_the_report(ran, models):
    import sentence_transformers

    form, results = ran.form, ran.results
    facts = results.manifest.retrievers[form].provenance
    texts = [text for _, text in DOCUMENTS.values() if text.strip()]
    if form == "sparse":
        model = sentence_transformers.SparseEncoder(str(models[form]), device="cpu")
        numbers = [int((model.encode_document(text).to_dense() != 0).sum()) for text in texts]
        asked = [int((model.encode_query(text).to_dense() != 0).sum()) for text in QUERIES.values()]
        taken, unit = 12 * sum(numbers), "nonzeros"  # 64 bits and an index of 32
    else:
        model = sentence_transformers.MultiVectorEncoder(str(models[form]), device="cpu")
        numbers = [len(model.encode_document(text)) for text in texts]
        asked = [len(model.encode_query(text)) for text in QUERIES.values()]
        taken, unit = 4 * 16 * sum(numbers), "tokens"
    assert facts["search"] == "exact" and facts["store"] == {"sparse": "csr", "multivector": ":memory:"}[form]
    assert float(facts[f"{unit}_per_text"]) == pytest.approx(np.mean(numbers), rel=1e-3)
    assert float(facts[f"{unit}_per_query"]) == pytest.approx(np.mean(asked), rel=1e-3)
    assert int(facts["vector_bytes"]) == pytest.approx(taken, abs=1)

    write_report(results)
    one = vector_sizes(results)[form]
    assert list(vector_sizes(results)) == [form]
    assert one.bytes_per_document == int(facts["vector_bytes"]) / len(DOCUMENTS)
    assert costs_of(results)[form].vector_bytes == int(facts["vector_bytes"])
    counted = {"sparse": "numbers that are not 0", "multivector": "vectors, one a token"}[form]
    row = [form, counted, *map(plain, (one.per_text, one.per_query)), facts["dimensions"], size(one.bytes_per_document)]
    assert f"| {' | '.join(row)} |" in (results.folder / "report.md").read_text(encoding="utf-8")
    page = (results.folder / "report.html").read_text(encoding="utf-8")
    assert "<caption>Sparse vectors and vectors of tokens</caption>" in page


def test_an_encoder_of_another_form_is_refused_with_the_kind_to_write(experiment, models):
    wrong = block(models, "sparse").replace('kind = "sparse"\n', "")
    with pytest.raises(InputError, match="'sparse-encoder' gives sparse vectors, not dense ones") as error:
        load(experiment(wrong))
    assert 'it belongs to a retriever of kind = "sparse"' in str(error.value)
    with pytest.raises(InputError, match="'hashing' gives dense vectors, not multivector ones"):
        load(experiment('[[retrievers]]\nname = "m"\nkind = "multivector"\nencoder = { kind = "hashing" }\n'))


def test_what_is_cut_and_quantised_are_dense_vectors(experiment, models):
    with pytest.raises(InputError, match="derive"):
        load(experiment(block(models, "sparse", "derive = { dimensions = [4] }")))
