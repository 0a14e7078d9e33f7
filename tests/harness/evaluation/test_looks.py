"""Planned looks of a run."""

from dataclasses import replace

import numpy as np
import pytest

import harness
from harness.evaluation.evaluate_run import _next_look
from harness.evaluation.evaluation import PlannedLook
from harness.evaluation.evaluation_file import read_or_evaluate
from harness.stats.looks import current_look, look_levels, settings_at_look
from harness.stats.power import t_power
from harness.stats.settings import Looks, Settings
from retrievers import BM25
from tests.support.scored import compare, concluded, scored

DOCUMENTS = {f"d{i}": f"page {i} about word{i}" for i in range(8)}
QUERIES = {f"q{i}": f"word{i}" for i in range(8)}


def evaluated(scored: int, judged: int):
    """The look of a run on 8 queries: some have labels, some a relevant document."""
    grades = [1 if i < scored else 0 for i in range(judged)]
    qrels = {f"q{i}": {f"d{i}": grade} for i, grade in enumerate(grades)}
    results = harness.evaluate(
        DOCUMENTS,
        QUERIES,
        qrels,
        {"a": BM25(), "b": BM25(k1=0.5)},
        measures=[],
        relevance={"grades": "explicit"},
        statistics={"looks": {"queries": [4, 8]}},
    )
    return read_or_evaluate(results).look


def test_the_last_queries_there_are_spend_what_is_left_of_alpha():
    look = evaluated(scored=6, judged=8)
    assert look.no_more_queries
    assert look.level == pytest.approx(0.05)  # no earlier look has spent any


def test_while_queries_are_without_labels_something_is_left():
    look = evaluated(scored=6, judged=7)
    assert not look.no_more_queries
    assert look.level == pytest.approx(look_levels(0.05, (6,), 8)[-1])


def test_all_looks_together_spend_alpha():
    settings = Settings(looks=Looks((60, 150)), earlier=(60,), no_more_queries=True)
    look = current_look(settings, 140)
    assert look is not None and look.number == 2
    assert look.level > look_levels(0.05, (60, 140), 150)[-1]


def test_the_power_of_the_next_look_counts_clusters_if_these_are_the_units():
    # given 40 queries in 20 clusters, and a look planned at 80
    base = np.random.default_rng(1).random(40)
    scores = {"a": base, "b": base[::-1]}
    clusters = tuple(f"c{i // 2}" for i in range(40))
    declared = Settings(looks=Looks((40, 80)))
    settings = settings_at_look(declared, 40)
    rows = compare(scores, settings=settings, clusters=clusters)
    evaluation = concluded(scores, rows, settings=settings, clusters=clusters)
    # when
    next_look = _next_look(declared, scored(scores, clusters=clusters), evaluation)
    # then it is that of the 40 clusters of 80 queries
    differences = (scores["a"] - scores["b"]).reshape(20, 2).mean(axis=1)
    effect = evaluation.difference / differences.std(ddof=1)
    level = settings_at_look(replace(declared, earlier=(40,)), 80).alpha
    assert next_look == PlannedLook(80, pytest.approx(t_power(effect, 40, level)))


def test_the_next_look_is_beyond_the_queries_that_this_one_has():
    # given 40 queries, the look of 40, of which five have no value by one retriever
    base = np.random.default_rng(1).random(40)
    other = base[::-1].copy()
    other[:5] = np.nan
    scores = {"a": base, "b": other}
    declared = Settings(looks=Looks((40, 80)))
    settings = settings_at_look(declared, 40)
    rows = compare(scores, settings=settings)
    evaluation = concluded(scores, rows, settings=settings)
    # then
    next_look = _next_look(declared, scored(scores), evaluation)
    assert next_look is not None and next_look.queries == 80
