"""Prediction-powered inference and bounds: known answers, limits, and coverage, simulated and on Cranfield."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.dataset import load, reference_of
from harness.measures import parse, score
from harness.stats.differences import UNIT, singles, units_of
from harness.stats.prediction import predicted, prediction_powered
from tests.test_outside import BM25, outside, results

PEOPLE = np.array([0.2, 0.0, -0.1, 0.3, 0.1])
MODEL = np.array([0.3, 0.1, 0.0, 0.2, 0.1])
ELSEWHERE = np.array([0.1, 0.2, 0.0, 0.3, 0.1, 0.0, 0.2, 0.1, 0.1, 0.1])


def powered(people, model, elsewhere, clusters=None):
    """Of single queries, or of named clusters."""
    number = len(people) + len(elsewhere)
    return prediction_powered(people, model, elsewhere, singles(number) if clusters is None else units_of(clusters))


def drawn(n, others, seed=0):
    """People's values, a model's that are half as large and biased, and the model's elsewhere."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0.05, 0.2, n + others)
    model = 0.08 + 0.5 * truth + np.sqrt(0.75) * 0.2 * rng.normal(size=n + others)
    return truth[:n], model[:n], model[n:]


@pytest.mark.parametrize("clustered", [False, True])
def test_it_is_the_formula_term_by_term(clustered):
    people, model, elsewhere = drawn(12, 20)
    names = [f"c{place // 3}" if clustered else "" for place in range(32)]  # one cluster is judged in part
    units = units_of(names)
    here = units.members[:12]
    numbers = len(set(here)), len(set(units.members[12:]))
    tuning = []
    for place in range(12):
        rest = here != here[place]
        x, y = model[rest] - model[rest].mean(), people[rest] - people[rest].mean()
        by_cluster = [(x[here[rest] == g].sum(), y[here[rest] == g].sum()) for g in set(here[rest])]
        slope = sum(a * b for a, b in by_cluster) / sum(a * a for a, _ in by_cluster)
        tuning.append(min(max(slope * numbers[1] / sum(numbers), 0), 1))
    tuning = np.array(tuning)
    off = (people - people.mean()) - tuning * (model - model.mean())
    away = tuning.mean() * (elsewhere - elsewhere.mean())
    square = 0.0
    for g in range(len(units)):
        mine, theirs = here == g, units.members[12:] == g
        error = off[mine].sum() / (12 - mine.sum()) * np.sqrt(1 - 1 / numbers[0])
        square += (error + away[theirs].sum() / (20 - theirs.sum()) * np.sqrt(1 - 1 / numbers[1])) ** 2
    found = powered(people, model, elsewhere, names if clustered else None)
    assert found.tuning == pytest.approx(tuning.mean(), rel=1e-12)
    assert found.estimate == pytest.approx((people - tuning * model).mean() + tuning.mean() * elsewhere.mean())
    assert found.standard_error == pytest.approx(math.sqrt(square), rel=1e-12)
    if not clustered:  # as it is written
        written = (off**2).sum() / (12 * 11) + tuning.mean() ** 2 * elsewhere.var(ddof=1) / 20
        assert found.standard_error == pytest.approx(math.sqrt(written), rel=1e-12)


def test_a_model_that_knows_nothing_is_left_out():
    people, model, elsewhere = drawn(40, 100)
    found = predicted(people, -model, elsewhere)
    assert found.powered.tuning == 0.0
    assert found.powered.estimate == pytest.approx(found.people)
    assert found.interval == pytest.approx(found.people_interval)
    assert found.as_narrow_as == pytest.approx(40)
    near_one = np.where(np.arange(40) < 39, 1.0, 0.5)
    ends = [predicted(near_one, model, elsewhere, bounds=one).people_interval.high for one in (None, UNIT)]
    assert ends[0] > 1 > ends[1]


def test_no_interval_leaves_what_a_mean_can_be():
    people = np.where(np.arange(40) < 36, 1.0, 0.2)
    model = np.where(np.arange(40) < 34, 1.0, 0.3)
    free, kept = (predicted(people, model, np.ones(60), bounds=bounds) for bounds in (None, UNIT))
    assert free.powered == kept.powered and free.interval.high > 1 > kept.interval.high > kept.powered.estimate
    assert kept.interval.method == "logit"
    assert free.as_narrow_as == kept.as_narrow_as
    # What the model says elsewhere may lead beyond every possible mean: the end of the range, without an interval.
    free, kept = (predicted(people, 0.5 * model, np.ones(400), bounds=bounds) for bounds in (None, UNIT))
    assert free.powered.estimate > 1 == kept.powered.estimate
    assert kept.interval.low is None and math.isnan(kept.as_narrow_as)
    assert kept.favour_interval.high <= 1


def test_without_other_queries_people_stand_alone():
    people, model, _ = drawn(40, 0)
    found = predicted(people, model, np.array([]))
    assert found.powered.tuning == 0.0
    assert found.interval == pytest.approx(found.people_interval)


def test_where_the_others_tell_no_slope_the_model_is_left_out():
    constant, but_for_one = np.full(40, 0.1), 0.1 + np.eye(40)[0]
    assert powered(drawn(40, 0)[0], constant, np.zeros(80)).tuning == 0.0
    # Without the first query nothing is left to go by; with it the slope is 1, times 80 / (40 + 80).
    assert powered(but_for_one, but_for_one, np.zeros(80)).tuning == pytest.approx(39 / 40 * 2 / 3)


@pytest.mark.parametrize(("judged", "differing", "there"), [(30, 5, True), (29, 29, False), (30, 4, False)])
def test_an_estimate_from_both_needs_thirty_judged_queries_and_five_that_differ(judged, differing, there):
    people, _, elsewhere = drawn(judged, 50)
    found = predicted(people, people + 0.1 * (np.arange(judged) < differing), elsewhere)
    assert (found.units, found.differing) == (judged, differing)
    assert (found.powered is not None) == there
    assert (found.interval.low is not None) == (not math.isnan(found.as_narrow_as)) == there
    assert found.people_interval.low is not None and found.favour == pytest.approx(-0.1 * differing / judged)


def test_clusters_are_counted_where_they_are_declared():
    people, model, elsewhere = drawn(60, 60)
    few, enough = (units_of([f"c{place // size}" for place in range(120)]) for size in (3, 2))
    assert predicted(people, model, elsewhere, units=few).powered is None
    found = predicted(people, model, elsewhere, units=enough)
    assert found.units == 30 and found.powered is not None
    # Student's t with 60^2 / (30 x 2^2) - 1 = 29 degrees of freedom: 2.045230 (any table).
    assert found.interval.high - found.powered.estimate == pytest.approx(2.04523 * found.powered.standard_error, 1e-6)


def test_as_narrow_as_is_the_number_of_judged_queries_with_that_standard_error():
    people, model, elsewhere = drawn(40, 400)
    found = predicted(people, 0.9 * people + 0.1 * model, elsewhere)
    assert found.as_narrow_as == pytest.approx(people.var(ddof=1) / found.powered.standard_error**2)
    assert found.as_narrow_as > 40


def test_values_that_do_not_belong_together_are_refused():
    with pytest.raises(ValueError, match="5 values by people, 4 and 10 by the model"):
        predicted(PEOPLE, MODEL[:4], ELSEWHERE)
    with pytest.raises(ValueError, match="0 values by people"):
        predicted(PEOPLE[:0], MODEL[:0], ELSEWHERE)


@given(st.floats(-1, 1), st.floats(0.01, 10))
def test_the_estimate_moves_and_stretches_with_the_values(shift, scale):
    plain = powered(PEOPLE, MODEL, ELSEWHERE)
    moved = powered(PEOPLE * scale + shift, MODEL * scale + shift, ELSEWHERE * scale + shift)
    assert moved.tuning == pytest.approx(plain.tuning, abs=1e-9)
    assert moved.estimate == pytest.approx(plain.estimate * scale + shift, abs=1e-9)


EXPERIMENTS = 2_000
OTHERS = 150


def biased(rng, number):
    """A judge that is biased and correlated at 0.5."""
    truth, noise = rng.normal(0.05, 0.2, number), rng.normal(0, 0.2, number)
    return truth, 0.08 + 0.5 * truth + np.sqrt(0.75) * noise


def near_perfect(rng, number):
    """Differences in tenths, which the judge has but for a tenth of the queries, where it favours the first."""
    truth = 0.05 + rng.integers(-3, 4, number) / 10
    return truth, truth + rng.choice([0.2, 0.5], number) * (rng.random(number) < 0.1)


def of_five(rng, number):
    """Paraphrases, five of a need: half of each value is the need's."""
    truth, noise = np.sqrt(0.5) * (
        np.repeat(rng.normal(0, 0.2, (2, number // 5)), 5, axis=1) + rng.normal(0, 0.2, (2, number))
    )
    return 0.05 + truth, 0.08 + 0.8 * truth + 0.6 * noise


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "n", "size"), [(biased, 30, 1), (near_perfect, 30, 1), (near_perfect, 60, 1), (of_five, 150, 5)]
)
def test_what_is_given_covers_as_often_as_it_says(draw, n, size):
    """benchmarks/prediction.py repeats it 20,000 times, with more shapes; what was replaced had 72 % of clusters."""
    rng = np.random.default_rng([20261123, n, size])
    units = units_of([str(place // size) for place in range(n + OTHERS)])
    given, covered = 0, 0
    for _ in range(EXPERIMENTS):
        people, model = draw(rng, n + OTHERS)
        found = predicted(people[:n], model[:n], model[n:], units=units)
        if found.powered is not None:
            given += 1
            covered += found.interval.low <= 0.05 <= found.interval.high
    assert given > EXPERIMENTS / 10
    assert covered / given >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / given)
    assert covered / given <= 0.985


HASHING = '[[retrievers]]\nname = "hashing"\nencoder = { kind = "hashing" }\n'
SAMPLES, JUDGED = 2_000, 30


@pytest.mark.outside
@pytest.mark.slow
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
