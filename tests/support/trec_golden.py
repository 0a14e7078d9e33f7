"""Makes the TREC files in tests/data/trec_eval and what trec_eval says of them: `python
-m tests.support.trec_golden`.

The files are drawn at random from a seed. The values come from trec_eval's own code
(9.0.8, as compiled into pytrec_eval-terrier 0.5.11), in the form in which trec_eval
prints them; means over queries are taken here.
"""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytrec_eval

FOLDER = Path(__file__).parents[1] / "data" / "trec_eval"
QUERIES = 16
UNJUDGED = "q90"
MISSING = "q91"
NONE_RELEVANT = "q92"
"""A query without judgments, one without a ranking, and one without a relevant
document.
"""
CUTOFFS = (1, 3, 5, 10, 20, 100)
CUT = ("P", "recall", "map_cut", "ndcg_cut", "success")
WHOLE = (
    "map",
    "recip_rank",
    "Rprec",
    "bpref",
    "ndcg",
    "set_P",
    "set_recall",
    "set_F",
    "set_map",
)
MEASURES = (*WHOLE, *(f"{name}_{cutoff}" for name in CUT for cutoff in CUTOFFS))
LEVELS = (1, 2)

Qrels = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]


def drawn() -> tuple[Qrels, Run]:
    """Judgments with negative grades, and rankings with many ties, unjudged documents
    and odd queries.
    """
    chance = random.Random(2026)
    qrels: Qrels = {}
    run: Run = {}
    for query in [
        *(f"q{number:02}" for number in range(QUERIES)),
        UNJUDGED,
        MISSING,
        NONE_RELEVANT,
    ]:
        documents = [f"{chance.choice('abz')}{number:02}" for number in range(60)]
        if query != UNJUDGED:
            grades = (
                (-1, 0) if query == NONE_RELEVANT else (-2, -1, 0, 0, 1, 1, 2, 3, 4)
            )
            judged = chance.sample(documents, chance.randrange(3, 25))
            qrels[query] = {document: chance.choice(grades) for document in judged}
            qrels[query][judged[0]] = 0 if query == NONE_RELEVANT else 2
        if query != MISSING:
            digits = chance.choice((0, 1, 6))
            length = chance.choice((1, 7, 30, 45))
            ranked = chance.sample(documents, length)
            run[query] = {
                document: round(chance.uniform(-3, 3), digits) for document in ranked
            }
    return qrels, run


def values(qrels: Qrels, run: Run, level: int) -> dict[str, dict[str, float]]:
    """What trec_eval says, by query and measure."""
    evaluator = pytrec_eval.RelevanceEvaluator(
        qrels,
        {*WHOLE, *(f"{name}.{','.join(map(str, CUTOFFS))}" for name in CUT)},
        relevance_level=level,
    )
    return evaluator.evaluate(run)


def each(rows: dict[str, dict[str, float]]) -> str:
    """The rows as trec_eval prints them."""
    return "".join(
        f"{name}\t{query}\t{rows[query][name]:.4f}\n"
        for query in sorted(rows)
        for name in MEASURES
    )


def mean(rows: dict[str, dict[str, float]], queries: list[str]) -> str:
    """The means over the queries: those without a row count as 0."""
    sums = {
        name: math.fsum(rows[query][name] for query in queries if query in rows)
        for name in MEASURES
    }
    return "".join(
        f"{name}\tall\t{sums[name] / len(queries):.4f}\n" for name in MEASURES
    )


def files() -> dict[str, str]:
    """Every file by its name: `expected.l1.q.txt` is of relevance level 1, `.q` and
    `.c` as by trec_eval's options.
    """
    qrels, run = drawn()
    golden_values = {
        "drawn.qrels": "".join(
            f"{q} 0 {d} {grade}\n"
            for q, grades in qrels.items()
            for d, grade in grades.items()
        ),
        "drawn.run": "".join(
            f"{q} Q0 {d} {rank} {score} drawn\n"
            for q, hits in run.items()
            for rank, (d, score) in enumerate(hits.items(), 1)
        ),
    }
    for level in LEVELS:
        rows = values(qrels, run, level)
        golden_values[f"expected.l{level}.q.txt"] = each(rows) + mean(
            rows, sorted(rows)
        )
        golden_values[f"expected.l{level}.c.txt"] = mean(rows, sorted(qrels))
    return golden_values


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
