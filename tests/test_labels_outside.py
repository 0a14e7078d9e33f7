"""An addition on a real collection: Cranfield's assessors as the person, a noisy copy of them as the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.dataset import load, reference_of
from harness.measures import parse, score
from harness.stats.prediction import predicted
from tests.test_outside import BM25, outside, results

pytestmark = [pytest.mark.outside, pytest.mark.slow]

HASHING = '[[retrievers]]\nname = "hashing"\nencoder = { kind = "hashing" }\n'
SAMPLES, JUDGED = 2_000, 30


def test_the_combined_interval_covers_the_difference_by_all_labels(tmp_path: Path) -> None:
    found = results(tmp_path, f'"{outside("data/cranfield")}"', BM25 + HASHING)
    labels = load(reference_of(outside("data/cranfield"))).labels
    grades = {query: dict(given.grades or {}) for query, given in labels.items() if given.relevant}
    rng = np.random.default_rng(20261121)
    lists = {name: {q: r.doc_ids for q, r in found.rankings(name).items()} for name in ("bm25", "hashing")}
    # The copy forgets a third of the relevant documents, and takes some of what BM25 ranks high for relevant.
    noisy = {
        query: {doc: grade for doc, grade in judged.items() if rng.random() > 1 / 3}
        | {doc: 2 for doc in lists["bm25"][query][:10] if rng.random() < 0.15}
        for query, judged in grades.items()
    }
    measure = parse("nDCG@10")

    def difference(judged):
        first, second = (score([measure], judged, lists[name]).of(measure) for name in ("bm25", "hashing"))
        return np.asarray(first - second)

    people, model = difference(grades), difference(noisy)
    truth = float(people.mean())
    covered, widths = 0, []
    for _ in range(SAMPLES):
        order = rng.permutation(len(people))
        chosen, others = order[:JUDGED], order[JUDGED:]
        one = predicted(people[chosen], model[chosen], model[others])
        covered += one.interval.low <= truth <= one.interval.high
        widths.append((one.interval.high - one.interval.low)
                      / (one.people_interval.high - one.people_interval.low))  # fmt: skip
    # At least as often as it says: the judged queries are a part of the whole, drawn without replacement.
    assert 0.935 <= covered / SAMPLES <= 0.99
    assert np.mean(widths) < 1
    # The model alone is wrong, and sure of it.
    assert abs(model.mean() - truth) > 2 * model.std(ddof=1) / np.sqrt(len(model))
