"""How fast are measures scored?

Against pytrec_eval-terrier, ir-measures and, where it is installed, ranx.

    python benchmarks/scoring.py
        27 measures, 2,000 queries x 100 hits, 30 judgments each
    python benchmarks/scoring.py --stream 1000000
        a run file of so many queries x 100 hits, read as a stream
    python benchmarks/scoring.py --files 30000
        files of so many queries x 100 lines each, against ir-measures
    python benchmarks/scoring.py --compare 20 2000
        `compare` of so many retrievers on so many queries x 100 hits, all pairs,
        from run files to page and JSON: processor time, beside that of pandas
        reading the lines. The checkout that is measured is the folder in which it
        is started, which PYTHONPATH must name too.

The same dictionaries go to every program, in one process; conversion is inside the
clock, as is pytrec_eval's RelevanceEvaluator(...). The first call is reported apart
from the median of the others: it shows any warm-up.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from harness.measures import measure_run, parse_measure, parse_measure_list
from harness.scoring.trec_runs import score_trec_runs

QUERIES, HITS, JUDGMENTS, CORPUS = 2_000, 100, 30, 50_000
NAMES = [
    "P@1",
    "P@5",
    "P@10",
    "P@20",
    "P@100",
    "R@5",
    "R@10",
    "R@20",
    "R@100",
    "nDCG@5",
    "nDCG@10",
    "nDCG@20",
    "nDCG@100",
    "nDCG",
    "AP@5",
    "AP@10",
    "AP@100",
    "AP",
    "Success@1",
    "Success@5",
    "Success@10",
    "RR",
    "Rprec",
    "Bpref",
    "SetP",
    "SetR",
    "SetF",
]
"""The 27 measures: all that pytrec_eval, ir-measures, ranx and this project have in
common, at the usual cutoffs.
"""
TREC_EVAL = {
    "P.1,5,10,20,100",
    "recall.5,10,20,100",
    "ndcg_cut.5,10,20,100",
    "ndcg",
    "map_cut.5,10,100",
    "map",
    "success.1,5,10",
    "recip_rank",
    "Rprec",
    "bpref",
    "set_P",
    "set_recall",
    "set_F",
}
RANX = [
    "precision@1",
    "precision@5",
    "precision@10",
    "precision@20",
    "precision@100",
    "recall@5",
    "recall@10",
    "recall@20",
    "recall@100",
    "ndcg@5",
    "ndcg@10",
    "ndcg@20",
    "ndcg@100",
    "ndcg",
    "map@5",
    "map@10",
    "map@100",
    "map",
    "hit_rate@1",
    "hit_rate@5",
    "hit_rate@10",
    "mrr",
    "r-precision",
    "bpref",
    "precision",
    "recall",
    "f1",
]
Qrels = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]


def data() -> tuple[Qrels, Run]:
    """Random dictionaries.

    Half of each query's judgments are on documents that were retrieved.
    """
    random = np.random.default_rng(0)
    names = [f"doc{i:06d}" for i in range(CORPUS)]
    qrels, run = {}, {}
    for q in range(QUERIES):
        drawn = random.choice(CORPUS, HITS + JUDGMENTS // 2, replace=False)
        judged = np.concatenate(
            [random.choice(drawn[:HITS], JUDGMENTS // 2, replace=False), drawn[HITS:]]
        )
        scores, grades = (
            random.random(HITS).tolist(),
            random.integers(0, 4, JUDGMENTS).tolist(),
        )
        run[f"q{q}"] = {
            names[d]: s for d, s in zip(drawn[:HITS].tolist(), scores, strict=True)
        }
        qrels[f"q{q}"] = {
            names[d]: g for d, g in zip(judged.tolist(), grades, strict=True)
        }
    return qrels, run


def ours(qrels: Qrels, run: Run) -> None:
    measure_run([parse_measure(name) for name in NAMES], qrels, run)


def pytrec_eval(qrels: Qrels, run: Run) -> None:
    import pytrec_eval

    pytrec_eval.RelevanceEvaluator(qrels, TREC_EVAL).evaluate(run)


def ir_measures(qrels: Qrels, run: Run) -> None:
    import ir_measures

    for _ in ir_measures.iter_calc(
        [ir_measures.parse_measure(name) for name in NAMES], qrels, run
    ):
        pass


def ranx(qrels: Qrels, run: Run) -> None:
    import ranx

    ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), RANX, return_mean=False)


PROGRAMS: Mapping[str, Callable[[Qrels, Run], None]] = {
    "retriever-harness": ours,
    "pytrec_eval": pytrec_eval,
    "ir_measures": ir_measures,
    "ranx": ranx,
}


def compare(rounds: int) -> None:
    """Print the first call of each program and the median of further calls.

    `rounds` further calls, in turns.
    """
    qrels, run = data()
    present = {
        name: call
        for name, call in PROGRAMS.items()
        if call is ours or importlib.util.find_spec(name) is not None
    }
    times: dict[str, list[float]] = {name: [] for name in present}
    for _ in range(rounds + 1):
        for name, call in present.items():
            start = time.perf_counter()
            call(qrels, run)
            times[name].append(time.perf_counter() - start)
    print(
        f"{len(NAMES)} measures, {QUERIES:,} queries x {HITS} hits, {JUDGMENTS} "
        "judgments each; seconds"
    )
    print(f"{'program':20} {'first call':>10} {'median':>8} {'best':>8}")
    for name, (first, *others) in times.items():
        print(
            f"{name:20} {first:10.3f} {statistics.median(others):8.3f} "
            f"{min(others):8.3f}"
        )
    for name in PROGRAMS.keys() - present.keys():
        print(f"{name:20} not installed")


def stream(queries: int) -> None:
    """Write a run of `queries` x 100 hits, then score it from the file.

    Prints time and peak memory.
    """
    random = np.random.default_rng(0)
    places = [f"{rank} {1 - rank / 128:.6f} bm25\n" for rank in range(1, HITS + 1)]
    with tempfile.TemporaryDirectory() as folder:
        qrels, run = Path(folder) / "qrels", Path(folder) / "run.trec"
        with run.open("w") as rankings, qrels.open("w") as judgments:
            for query in range(queries):
                drawn = random.integers(1, 88_000, HITS).cumsum().tolist()
                rankings.writelines(
                    f"{query} Q0 {d} {end}"
                    for d, end in zip(drawn, places, strict=True)
                )
                judgments.write(f"{query} 0 {drawn[query % HITS]} 1\n")
        print(
            f"{queries:,} queries x {HITS} hits: {run.stat().st_size / 2**30:.2f} GiB"
        )
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.perf_counter()
        (result,) = score_trec_runs(
            qrels, [run], parse_measure_list(["nDCG@10", "RR@10", "R@100", "AP"])
        )
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(
            f"{seconds:.1f} s, {queries * HITS / seconds:,.0f} lines/s; peak "
            f"{before >> 10} -> {peak >> 10} MiB"
        )
        for measure, mean in result.scores.means().items():
            print(f"{measure!s:8} {mean:.6f}")


def files(queries: int) -> None:
    """Score files of `queries` x 100 judgments and as many hits.

    Three times here, then three times with ir-measures.
    """
    import ir_measures

    names, random = ["nDCG@10", "AP", "RR", "P@10", "R@100"], np.random.default_rng(0)
    theirs = [ir_measures.parse_measure(name) for name in names]
    with tempfile.TemporaryDirectory() as folder:
        qrels, run = Path(folder) / "qrels", Path(folder) / "run"
        with qrels.open("w") as judgments, run.open("w") as hits:
            for query in range(queries):
                drawn = random.choice(1_000_000, 150, replace=False).tolist()
                grades, scores = (
                    random.integers(0, 3, 100).tolist(),
                    np.sort(random.random(100))[::-1].tolist(),
                )
                judgments.writelines(
                    f"q{query} 0 d{d} {g}\n"
                    for d, g in zip(drawn[50:], grades, strict=True)
                )
                hits.writelines(
                    f"q{query} Q0 d{d} 1 {s!r} t\n"
                    for d, s in zip(drawn[:100], scores, strict=True)
                )
        for name, work in {
            "retriever-harness": lambda: score_trec_runs(
                qrels, [run], parse_measure_list(names)
            ),
            "ir-measures": lambda: ir_measures.calc_aggregate(
                theirs,
                ir_measures.read_trec_qrels(str(qrels)),
                ir_measures.read_trec_run(str(run)),
            ),
        }.items():
            taken = []
            for _ in range(3):
                start = time.process_time()
                work()
                taken.append(time.process_time() - start)
            print(f"{name:20} {min(taken):.1f} s of processor time, the best of 3")


COMPARED = ["nDCG@10", "P@5", "R@10", "R@100", "RR@10", "AP@10", "Success@10"]
PANDAS = "import sys, pandas; [pandas.read_csv(path, sep=' ') for path in sys.argv[1:]]"


def write_runs(folder: Path, retrievers: int, queries: int) -> list[str]:
    """Write qrels, then runs of retrievers that agree in half of their hits."""
    random = np.random.default_rng(0)
    paths = [folder / "qrels", *(folder / f"r{k}.run" for k in range(retrievers))]
    handles = [path.open("w") for path in paths]
    for query in range(queries):
        pool = random.choice(CORPUS // 2, 2 * HITS, replace=False)
        is_relevant = random.random(2 * HITS) < 0.02
        is_relevant[0] = True
        handles[0].writelines(f"q{query} 0 d{d} 1\n" for d in pool[is_relevant])
        for number, handle in enumerate(handles[1:]):
            merit = random.random(2 * HITS) + is_relevant * (0.1 + number / 100)
            order = np.argsort(-merit)[:HITS]
            handle.writelines(
                f"q{query} Q0 d{d} {rank} {score:.6f} r{number}\n"
                for rank, (d, score) in enumerate(
                    zip(pool[order].tolist(), merit[order].tolist(), strict=True), 1
                )
            )
    for handle in handles:
        handle.close()
    return [str(path) for path in paths]


def processor_time(command: list[str]) -> float:
    """Run a command and return the seconds of its processes, start included."""
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])


def compare_files(retrievers: int, queries: int) -> None:
    """Print the processor time of `compare`, the best of two."""
    with tempfile.TemporaryDirectory() as name:
        paths = write_runs(Path(name), retrievers, queries)
        options = [f"--measure={measure}" for measure in COMPARED]
        page = f"--report={Path(name) / 'page.html'}"
        harness = [sys.executable, "-m", "harness", "compare", *paths]
        commands = {
            "retriever-harness": [*harness, *options, page, "--json"],
            "pandas, lines alone": [sys.executable, "-c", PANDAS, *paths[1:]],
        }
        print(
            f"{retrievers} retrievers x {queries:,} queries x {HITS} hits, "
            f"{len(COMPARED)} measures, {retrievers * (retrievers - 1) // 2:,} pairs"
        )
        for program, command in commands.items():
            seconds = [processor_time(command) for _ in range(2)]
            listed = ", ".join(f"{each:.2f}" for each in seconds)
            print(f"{program:20} {min(seconds):.2f} s of processor time ({listed})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--stream", type=int, metavar="QUERIES")
    parser.add_argument("--files", type=int, metavar="QUERIES")
    parser.add_argument(
        "--compare", type=int, nargs=2, metavar=("RETRIEVERS", "QUERIES")
    )
    given = parser.parse_args()
    if given.compare:
        compare_files(*given.compare)
    elif given.files:
        files(given.files)
    elif given.stream:
        stream(given.stream)
    else:
        compare(given.rounds)
