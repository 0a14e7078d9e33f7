"""Recomputes a results folder from its TREC files by other programs than ours, and
lists what differs.

Scores come from pytrec_eval (trec_eval's own code), ranks from SciPy, corrections from
statsmodels; nothing of `harness` or `retrievers` is imported. `python -m
tests.support.recompute FOLDER` does it by hand.
"""

from __future__ import annotations

import ast
import csv
import json
import math
import re
import sys
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import product
from operator import itemgetter
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytrec_eval
from scipy import stats

CORRECTIONS = {
    "holm": "holm",
    "hommel": "hommel",
    "bonferroni": "bonferroni",
    "bh": "fdr_bh",
}
"""Our names of corrections, and those of statsmodels."""
IN_TREC_EVAL = {
    "P": "P",
    "R": "recall",
    "AP": "map_cut",
    "nDCG": "ndcg_cut",
    "Success": "success",
}
MEASURES = {*IN_TREC_EVAL, "RR", "F1", "DCG"}
ENUMERABLE = 12
"""Pairs of scores up to which every change of signs is tried."""

Grades = dict[str, int]
Table = dict[tuple[str, str], dict[str, float]]


def trec(path: Path) -> list[list[str]]:
    """The columns of a TREC file. Lines end at \\n alone; ids are percent-encoded."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [trec_columns(line) for line in lines if line.strip()]


def trec_columns(line: str) -> list[str]:
    return list(map(unquote, re.split(r"[ \t]+", line.strip(" \t\r"))))


def qrels(path: Path) -> dict[str, Grades]:
    """The grades by query and document, of queries with a relevant document."""
    grades_by_query: dict[str, Grades] = defaultdict(dict)
    for query, _, document, grade in trec(path):
        grades_by_query[query][document] = int(grade)
    return {
        query: grades
        for query, grades in grades_by_query.items()
        if max(grades.values()) > 0
    }


def run(path: Path) -> dict[str, list[str]]:
    """The documents by query, in the order in which trec_eval sorts them."""
    hits_by_query: dict[str, list[tuple[np.float32, str, int]]] = defaultdict(list)
    for query, _, document, rank, score, _ in trec(path):
        hits_by_query[query].append((np.float32(score), document, int(rank)))
    for hits in hits_by_query.values():
        assert len({document for _, document, _ in hits}) == len(hits), (
            f"{path.name}: a document is ranked twice"
        )
        hits.sort(reverse=True)
        assert [rank for _, _, rank in hits] == sorted(rank for _, _, rank in hits), (
            f"{path.name}: ranks and scores"
        )
    second = itemgetter(1)
    return {query: list(map(second, hits)) for query, hits in hits_by_query.items()}


def score(measure: str, ranking: list[str], grades: Grades) -> float | None:
    """One query's score of a measure, or None where trec_eval does not have the
    measure.
    """
    measure_match = re.fullmatch(r"([A-Za-z0-9]+)(?:\((.*)\))?(?:@(\d+))?", measure)
    if measure_match is None or measure_match[1] not in MEASURES:
        return None
    base = measure_match[1]
    cutoff = int(measure_match[3] or 0)
    call = ast.parse(f"f({measure_match[2] or ''})", mode="eval").body
    parameters = {
        keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords
    }  # type: ignore[attr-defined]
    if set(parameters) - {"dcg", "ideal", "rel"}:
        return None
    top = ranking[: cutoff or None]
    if parameters.get("dcg") == "exp-log2":
        grades = {
            document: 2**grade - 1 if grade > 0 else 0
            for document, grade in grades.items()
        }
    if parameters.get("ideal") == "retrieved":
        grades = {
            document: grade for document, grade in grades.items() if document in top
        }
    if not top or not grades:
        return 0.0
    if base == "DCG":  # trec_eval prints the normalised value alone
        gains = [max(grades.get(document, 0), 0) for document in top]
        return math.fsum(
            gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1)
        )
    level = parameters.get("rel", 1)
    if base == "F1":
        parts = [trec_eval(name, cutoff, level, top, grades) for name in ("P", "R")]
        return 2 * parts[0] * parts[1] / sum(parts) if sum(parts) else 0.0
    return trec_eval(base, cutoff, level, top, grades)


def trec_eval(
    base: str, cutoff: int, level: int, top: list[str], grades: Grades
) -> float:
    """One query's score by trec_eval; without a cutoff, one at the end of the ranking
    or of all that are graded.
    """
    end = cutoff or max(len(top), len(grades) if base == "nDCG" else 0)
    name = "recip_rank" if base == "RR" else f"{IN_TREC_EVAL[base]}.{end}"
    evaluator = pytrec_eval.RelevanceEvaluator(
        {"q": grades}, {name}, relevance_level=level
    )
    hits = {document: float(len(top) - rank) for rank, document in enumerate(top)}
    (value,) = evaluator.evaluate({"q": hits})["q"].values()
    return float(value)


def ranked_differences(a: list[float], b: list[float]) -> tuple[list[int], list[int]]:
    """Twice the ranks of the differences above and below zero; differences below 1e-9
    are rounding errors.
    """
    differences = np.round(np.subtract(a, b), 9)
    nonzero = differences[differences != 0]
    doubled = (2 * stats.rankdata(np.abs(nonzero))).astype(int)
    return doubled[nonzero > 0].tolist(), doubled[nonzero < 0].tolist()


def signed_rank(a: list[float], b: list[float]) -> tuple[float, float, float]:
    """W+, W- and the exact two-sided p-value of the Wilcoxon signed-rank test, by
    counting every sum of ranks.
    """
    above, below = ranked_differences(a, b)
    sums = Counter({0: 1})
    for rank in above + below:
        sums = sums + Counter({total + rank: ways for total, ways in sums.items()})
    least = min(sum(above), sum(below))
    tail = sum(ways for total, ways in sums.items() if total <= least)
    p_value = min(Fraction(1), Fraction(2 * tail, 2 ** len(above + below)))
    return sum(above) / 2, sum(below) / 2, float(p_value)


def randomization(a: list[float], b: list[float]) -> float:
    """The two-sided p-value of the mean difference: the share of all changes of signs
    that go at least as far.
    """
    differences = np.subtract(a, b)
    means = np.array(list(product((1, -1), repeat=len(a)))) @ differences / len(a)
    return float((np.abs(means) >= abs(differences.mean()) - 1e-12).mean())


def corrected(p_values: list[float], correction: str) -> list[float]:
    """The p-values of a family, corrected by Holm's steps written out, or by
    statsmodels; unchanged by any other name.
    """
    from statsmodels.stats.multitest import multipletests

    if correction != "holm":
        is_corrected = correction in CORRECTIONS and len(p_values) > 1
        return (
            multipletests(p_values, method=CORRECTIONS[correction])[1].tolist()
            if is_corrected
            else p_values
        )
    ordered = sorted(p_values)
    steps = [
        min(1.0, (len(ordered) - step) * p_value)
        for step, p_value in enumerate(ordered)
    ]
    return [
        max(steps[: ordered.index(p_value) + ordered.count(p_value)])
        for p_value in p_values
    ]


def near(left: float, other: float) -> bool:
    """Equal but for the rounding of sums."""
    return math.isclose(left, other, rel_tol=1e-9, abs_tol=1e-12)


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file; an apostrophe that keeps a spreadsheet from running a
    cell is not a part of the text.
    """
    with path.open(encoding="utf-8", newline="") as file:
        return list(map(plain_cells, csv.DictReader(file)))


def plain_cells(row: dict[str, str]) -> dict[str, str]:
    return {
        key: cell[1:] if cell.startswith("'=") else cell for key, cell in row.items()
    }


def differing(where: str, row: dict[str, str], expected: dict[str, float]) -> list[str]:
    """The columns of a row that are not what was recomputed."""
    return [
        f"{where}: {column} {row[column]!r}, recomputed {value!r}"
        for column, value in expected.items()
        if not row[column] or not near(float(row[column]), value)
    ]


def score_faults(folder: Path, scores: Table) -> list[str]:
    """What of scores.csv does not follow from the rankings and the grades."""
    judged = qrels(folder / "qrels.trec")
    runs = {path.stem: run(path) for path in folder.glob("runs/*.trec")}
    scored = {name for name, _ in scores}
    faults = [
        f"scores.csv: {name}: a run or its scores are missing"
        for name in scored ^ set(runs)
    ]
    for (name, measure), values in scores.items():
        if set(values) != set(judged):
            faults.append(
                f"scores.csv: {name} {measure}: other queries than those with a "
                "relevant document"
            )
            continue
        for query, value in values.items():
            expected = score(measure, runs[name].get(query, []), judged[query])
            if expected is not None and not near(value, expected):
                faults.append(
                    f"scores.csv: {name} {measure} {query}: {value!r}, recomputed "
                    f"{expected!r}"
                )
    return faults


def summary_faults(folder: Path, scores: Table) -> list[str]:
    """What of summary.csv does not follow from the scores."""
    summary = rows(folder / "summary.csv")
    faults = []
    if {(row["retriever"], row["measure"]) for row in summary} != set(scores):
        faults.append("summary.csv: other retrievers or measures than in scores.csv")
    for row in summary:
        where = f"summary.csv: {row['retriever']} {row['measure']}"
        values = list(scores[row["retriever"], row["measure"]].values())
        mean = math.fsum(values) / len(values)
        faults += differing(
            where,
            row,
            {
                "count": len(values),
                "mean": mean,
                "min": min(values),
                "max": max(values),
                "median": float(np.median(values)),
            },
        )
        if (
            row["ci_low"]
            and not float(row["ci_low"]) - 1e-9 <= mean <= float(row["ci_high"]) + 1e-9
        ):
            faults.append(f"{where}: the interval leaves the mean out")
    return faults


def expected_comparison(
    a: list[float], b: list[float], test: str = "wilcoxon"
) -> dict[str, float]:
    """The columns of one comparison that follow from two lists of scores."""
    plus, minus, p_value = signed_rank(a, b)
    differences = np.round(np.subtract(a, b), 9)
    nonzero = int((differences != 0).sum())
    recomputed = {
        "n": len(a),
        "wins": int((differences > 0).sum()),
        "losses": int((differences < 0).sum()),
        "ties": len(a) - nonzero,
        "mean_difference": math.fsum(a) / len(a) - math.fsum(b) / len(b),
        "w_plus": plus,
        "w_minus": minus,
        "statistic": min(plus, minus),
    }
    if test != "t":
        recomputed["p_minimum"] = min(1.0, 2.0 ** (1 - nonzero))
    if plus + minus:
        recomputed["effect_size"] = (plus - minus) / (plus + minus)
    recomputed["p_value" if test == "wilcoxon" else "p_wilcoxon"] = p_value
    if len(a) <= ENUMERABLE:
        recomputed["p_randomization"] = randomization(a, b)
        if test not in ("wilcoxon", "t"):
            recomputed["p_value"] = recomputed["p_randomization"]
    return recomputed


def comparison_faults(
    folder: Path, scores: Table, statistics: dict[str, str]
) -> list[str]:
    """What of comparisons.csv does not follow from the scores."""
    faults = []
    families = defaultdict(list)
    for row in rows(folder / "comparisons.csv"):
        families[row["measure"]].append(row)
    for measure, family in families.items():
        adjusted = corrected(
            [float(row["p_value"]) for row in family], statistics["correction"]
        )
        for row, p_adjusted in zip(family, adjusted, strict=True):
            pair = [scores[name, measure] for name in (row["a"], row["b"])]
            queries = sorted(
                query
                for query in pair[0]
                if not math.isnan(pair[0][query] + pair[1][query])
            )
            a = [pair[0][query] for query in queries]
            b = [pair[1][query] for query in queries]
            expected = expected_comparison(a, b, statistics["test"])
            if statistics["correction"] in CORRECTIONS:
                expected["p_adjusted"] = p_adjusted
            faults += differing(
                f"comparisons.csv: {measure} {row['a']} against {row['b']}",
                row,
                expected,
            )
    return faults


def differences(folder: Path) -> list[str]:
    """Everything in a results folder that differs from what other programs compute from
    its TREC files.
    """
    statistics = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))[
        "resolved"
    ]["statistics"]
    scores: Table = defaultdict(dict)
    for row in rows(folder / "scores.csv"):
        scores[row["retriever"], row["measure"]][row["query_id"]] = float(
            row["value"] or math.nan
        )
    faults = [*score_faults(folder, scores), *summary_faults(folder, scores)]
    return faults + comparison_faults(folder, scores, statistics)


if __name__ == "__main__":
    sys.exit("\n".join(differences(Path(sys.argv[1]))))
