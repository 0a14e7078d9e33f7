"""Learned sparse retrieval and late interaction as retrievers.

They are run, planned, checked and reported like any other.
"""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from harness.console.check_text import check_lines
from harness.evaluation.costs import retriever_costs
from harness.experiment import load
from harness.pipeline import run
from harness.preflight.check import check_target
from harness.report.numbers import byte_size_text, number_text
from harness.report.sections.costs import vector_sizes
from harness.report.write import write_report
from harness.running.options import RunOptions
from retrievers.dense import Dense
from retrievers.encoders.sentence_transformers import LateInteractionEncoder
from retrievers.local.local_model import LocalModel
from retrievers.meter import Meter
from retrievers.types import Document, Query, stored_facts
from tests.support import layouts, tiny
from tests.support.small import BM25, planned, refusal

pytestmark = pytest.mark.usefixtures("own_cache")

DOCUMENTS = {
    "d1": ("en", "the cat sits"),
    "d2": ("en", "a dog runs fast"),
    "d3": ("de", "shock wave of the wing"),
    "d4": (
        "de",
        "heat of the body flow of the wing slow cat dog wave shock a title runs fast",
    ),
    "d5": ("en", " "),
    "d6": ("en", "cat cat dog"),
}
QUERIES = {"q1": "cat", "q2": "wing heat", "d6": "cat cat dog"}
ENCODERS = {"sparse": "sparse-encoder", "multivector": "multivector-encoder"}
FORMS = tuple(ENCODERS)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    model_factories = {"sparse": tiny.splade, "multivector": tiny.colbert}
    return {
        form: make(tmp_path_factory.mktemp(form))
        for form, make in model_factories.items()
    }


def data(folder):
    rows = [
        {"_id": id_, "text": text, "metadata": {"language": language}}
        for id_, (language, text) in DOCUMENTS.items()
    ]
    layouts.jsonl(folder / "corpus.jsonl", rows)
    layouts.jsonl(
        folder / "queries.jsonl",
        [{"_id": id_, "text": text} for id_, text in QUERIES.items()],
    )
    rows = [
        {"query-id": q, "corpus-id": d, "score": 1}
        for q, d in (("q1", "d1"), ("q2", "d3"), ("d6", "d1"))
    ]
    layouts.table(folder / "qrels" / "test.tsv", rows, delimiter="\t")
    return folder.as_posix()


def written(folder, blocks, *, more=""):
    path = folder / "e.toml"
    exclude_self = str("chunk" in blocks).lower()
    data_path = data(folder / "data")
    dataset = f'{{ path = "{data_path}", exclude_self = {exclude_self} }}'
    head = (
        f'name = "e"\ndataset = {dataset}\nprimary = "RR"\nmeasures = ["RR"]\n'
        "depth = 5\nreport = false\n"
    )
    path.write_text(f"{head}{more}\n{blocks}", encoding="utf-8")
    return path


@pytest.fixture
def experiment(tmp_path):
    return partial(written, tmp_path)


@pytest.fixture(scope="module", params=FORMS)
def of_form(request, tmp_path_factory, models):
    """One run of a form beside BM25, with its plan and the cache that it filled."""
    folder = tmp_path_factory.mktemp("ran")
    path = written(folder, block(models, request.param) + BM25)
    cache = folder / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(cache))
        plan = planned(path, results=folder)
        results = run(path, RunOptions(folder / "out"))
    return SimpleNamespace(
        form=request.param, path=path, planned=plan, results=results, cache=cache
    )


@pytest.fixture
def ran(of_form, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE", str(of_form.cache))
    return of_form


def block(models, form, more="", *, name=None):
    model = models[form].as_posix()
    encoder = (
        f'encoder = {{ kind = "{ENCODERS[form]}", model = "{model}", device = "cpu" }}'
    )
    return (
        f'[[retrievers]]\nname = "{name or form}"\nkind = "{form}"\n{encoder}\n{more}\n'
    )


@pytest.fixture
def library(ran, models):
    """The model of a form, by sentence-transformers itself."""
    import sentence_transformers

    cls = {"sparse": "SparseEncoder", "multivector": "MultiVectorEncoder"}[ran.form]
    return getattr(sentence_transformers, cls)(str(models[ran.form]), device="cpu")


@pytest.mark.parametrize("query_id", QUERIES)
def test_a_run_ranks_as_the_library_scores(ran, library, query_id):
    documents = {id_: text for id_, (_, text) in DOCUMENTS.items() if text.strip()}
    queries = library.encode_query([QUERIES[query_id]])
    texts = library.encode_document([*documents.values()])
    if ran.form == "sparse":  # torch warns of its own products of sparse tensors
        queries = queries.to_dense()
        texts = texts.to_dense()
    similarities = library.similarity(queries, texts)[0].tolist()
    scores = dict(zip(documents, similarities, strict=True))

    ranking = ran.results.rankings(ran.form)[query_id]

    has_all_documents = ran.form == "multivector"
    hits = {id_ for id_, score in scores.items() if score > 0 or has_all_documents}
    assert set(ranking.doc_ids) == hits
    library_scores = [scores[id_] for id_ in ranking.doc_ids]
    # Sums of 32 bits may swap equal scores.
    ordered = sorted(library_scores, reverse=True)
    assert library_scores == pytest.approx(ordered, rel=1e-5)
    assert ranking.scores.tolist() == pytest.approx(library_scores, rel=1e-4)


def test_long_and_empty_documents_are_reported(ran):
    limit = {"sparse": 12, "multivector": 10}[ran.form]

    output = "\n".join(check_lines(check_target(ran.path)))

    assert f"1 of 6 documents is longer than the {limit} tokens that it reads" in output
    assert "reads only the start of 1 of 6 documents" in output
    notes = ran.results.manifest.ledger.retrievers[ran.form].notes
    assert (notes["empty"], notes["truncated"]) == (("d5",), ("d4",))


@pytest.mark.parametrize("stage", ["embed-documents", "embed-queries"])
def test_a_run_reads_what_was_planned(ran, stage):
    rows = {row.stage: row for row in ran.planned.rows}
    costs = {}
    for row in ran.results.costs.to_dict("records"):
        if row["retriever"] == ran.form:
            costs[row["stage"]] = row

    planned_row = rows[stage]

    assert planned_row.exact and planned_row.usd == 0
    assert planned_row.tokens == costs[stage]["tokens"]
    assert planned_row.texts == costs[stage]["texts"]
    assert planned_row.calls == costs[stage]["calls"]


@pytest.mark.parametrize("form", FORMS)
def test_chunks_filters_and_documents_that_ask(experiment, models, form, tmp_path):
    blocks = block(models, form, 'filter = { language = "de" }', name="german")
    blocks += block(models, form, "chunk = { size = 20, overlap = 5 }", name="cut")
    results = run(experiment(blocks), RunOptions(tmp_path / "out"))
    assert {
        document_id
        for ranking in results.rankings("german").values()
        for document_id in ranking.doc_ids
    } <= {"d3", "d4"}
    cut = results.rankings("cut")
    repeating = {
        query
        for query, ranking in cut.items()
        if len(set(ranking.doc_ids)) < len(ranking)
    }
    assert repeating == set()
    assert max(map(len, cut.values())) <= 5
    assert "d6" not in cut["d6"].doc_ids
    assert "d6" in cut["q1"].doc_ids
    assert "truncated" not in results.manifest.ledger.retrievers["cut"].notes
    assert results.manifest.retrievers["cut"].provenance.vectors.texts > 5


@pytest.mark.parametrize("store", ("", 'store = ":memory:"', 'store = "edge"'))
def test_a_second_run_embeds_nothing_and_says_the_same(
    ran, experiment, models, store, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        LocalModel, "_load", lambda *_: pytest.fail("a model was loaded")
    )
    path = experiment(block(models, ran.form, store)) if store else ran.path
    first = run(path, RunOptions(tmp_path / "first")) if store else ran.results
    second = run(path, RunOptions(tmp_path / "second"))
    assert second.rankings(ran.form) == first.rankings(ran.form)
    facts = [
        results.manifest.retrievers[ran.form].provenance for results in (first, second)
    ]
    assert facts[0] == facts[1]
    rows = planned(path, results=tmp_path / "none").rows
    assert [(row.stage, row.texts, row.cached, row.calls) for row in rows] == [
        ("embed-documents", 5, 5, 0),
        ("embed-queries", 3, 3, 0),
    ]


def test_sizes_stand_in_the_manifest_and_in_the_report(ran, library):
    form, results = ran.form, ran.results
    facts = stored_facts(results.manifest.retrievers[form].provenance)

    def numbers(vectors) -> int:
        return (
            int((vectors.to_dense() != 0).sum()) if form == "sparse" else len(vectors)
        )

    of_texts = [
        numbers(library.encode_document(text))
        for _, text in DOCUMENTS.values()
        if text.strip()
    ]
    of_queries = [numbers(library.encode_query(text)) for text in QUERIES.values()]
    # 64 bits and an index of 32; 16 dimensions of 32 bits
    unit_bytes, unit, store, counted = {
        "sparse": (12, "nonzeros", "csr", "numbers that are not 0"),
        "multivector": (4 * 16, "tokens", ":memory:", "vectors, one a token"),
    }[form]
    assert (facts["search"], facts["store"]) == ("exact", store)
    assert float(facts[f"{unit}_per_text"]) == pytest.approx(
        np.mean(of_texts), rel=1e-3
    )
    assert float(facts[f"{unit}_per_query"]) == pytest.approx(
        np.mean(of_queries), rel=1e-3
    )
    vector_bytes = int(facts["vector_bytes"])
    assert vector_bytes == pytest.approx(unit_bytes * sum(of_texts), abs=1)

    write_report(results)
    ((name, sizes),) = vector_sizes(results).items()
    bytes_per_document = sizes.bytes_per_document
    assert (name, bytes_per_document, retriever_costs(results)[form].vector_bytes) == (
        form,
        vector_bytes / len(DOCUMENTS),
        vector_bytes,
    )
    row = [
        form,
        counted,
        *map(number_text, (sizes.per_text, sizes.per_query)),
        facts["dimensions"],
        byte_size_text(bytes_per_document),
    ]
    assert f"| {' | '.join(row)} |" in (results.folder / "report.md").read_text(
        encoding="utf-8"
    )
    page = (results.folder / "report.html").read_text(encoding="utf-8")
    assert "<summary>Sparse vectors and vectors of tokens</summary>" in page


def test_a_sparse_encoder_is_refused_with_the_kind_to_write(experiment, models):
    without_kind = block(models, "sparse").replace('kind = "sparse"\n', "")
    refused = str(refusal(load, experiment(without_kind)))
    assert "'sparse-encoder' gives sparse vectors, not dense ones" in refused
    assert 'it belongs to a retriever of kind = "sparse"' in refused


def test_a_dense_encoder_of_a_late_retriever_is_refused(experiment):
    hashing = (
        '[[retrievers]]\nname = "m"\nkind = "multivector"\n'
        'encoder = { kind = "hashing" }\n'
    )
    refused = str(refusal(load, experiment(hashing)))
    assert "'hashing' gives dense vectors, not multivector ones" in refused


def test_a_derived_form_of_sparse_vectors_is_refused(experiment, models):
    derived = f"{block(models, 'sparse')}derive = {{ dimensions = [4] }}"
    assert "derive: unknown key" in str(refusal(load, experiment(derived)))


def test_facts_are_known_after_a_single_answer(models):
    encoder = LateInteractionEncoder(model=str(models["multivector"]), device="cpu")
    retriever = Dense(encoder)
    texts = [Document(id_, "", text) for id_, (_, text) in DOCUMENTS.items()]
    retriever.index(texts, Meter())
    retriever.answer(Query("q1", QUERIES["q1"]), 3, Meter())
    vectors = retriever.facts.vectors
    assert vectors.dimensions > 0
    # The model reads at most ten tokens of a document.
    assert 0 < vectors.tokens_per_text <= 10
