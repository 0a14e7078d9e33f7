"""Other formats of a results folder.

Nothing is scored: what the run and its report wrote is copied or converted.
`trackers` logs results to a service.
"""

import csv
import importlib.util
import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harness import records
from harness.dataset.written_values import parse_json
from harness.export.trackers import TRACKERS, unreadable_report_file
from harness.records.jsonl import new_text_file
from harness.records.results import NO_SCORES, Results
from retrievers.errors import InputError, Problem, did_you_mean, require_package


class MtebResult(NamedTuple):
    """A retriever's result in MTEB's shape."""

    retriever: str
    text: str
    """The file as the report wrote it."""
    main_score: float


def export_results(
    results: Results, format_name: str, output: Path | None = None
) -> tuple[Path, ...]:
    """Write a results folder in another format.

    Args:
        results: of one folder.
        format_name: one of `EXPORT_FORMATS`.
        output: a folder for the files, created if necessary; None:
            `<results>/export/<format>`.

    Returns:
        The files that were written.

    Raises:
        InputError: the format is unknown; the folder is a file or not empty, or cannot
            be written; a file of the results is missing or damaged; mteb has nothing
            without labels; a package that the format needs is not installed.
    """
    if format_name not in EXPORT_FORMATS:
        problem = f"unknown form {format_name!r}"
        remedy = did_you_mean(format_name, {**EXPORT_FORMATS, **TRACKERS})
        raise InputError(Problem("--as", problem, remedy))
    folder = output or results.folder / "export" / format_name
    _refuse_used_folder(folder)
    staging_dir = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(staging_dir, ignore_errors=True)
    try:
        staging_dir.mkdir(parents=True)
        EXPORT_FORMATS[format_name](results, staging_dir)
        if folder.exists():
            folder.rmdir()
        staging_dir.rename(folder)
    except OSError as error:
        problem = f"cannot be written: {error.strerror}"
        raise InputError(Problem(str(folder), problem, "name another folder")) from None
    finally:
        shutil.rmtree(staging_dir, ignore_errors=True)
    return tuple(sorted(path for path in folder.rglob("*") if path.is_file()))


def _refuse_used_folder(folder: Path) -> None:
    """Refuse a path at which there is a file, or a folder with files."""
    if not folder.exists():
        return
    problem = "is there already and not empty"
    if not folder.is_dir():
        problem = "is a file"
    elif not any(folder.iterdir()):
        return
    raise InputError(Problem(str(folder), problem, "name another with --output"))


def export_sets(
    folder: Path, sets: Sequence[Results], format_name: str, output: Path | None = None
) -> tuple[Path, ...]:
    """Write the results of several data sets in another format, each in a folder.

    As mteb, also with a table of all of them.

    Args:
        folder: the folder of all data sets.
        sets: one for each data set.
        format_name: one of `EXPORT_FORMATS`.
        output: a folder for the files; None: `<folder>/export/<format>`.

    Raises:
        InputError: as `export_results`; the data sets before remain written.
    """
    export_folder = output or folder / "export" / format_name
    files: list[Path] = []
    for results in sets:
        set_folder = export_folder / results.manifest.name
        files += export_results(results, format_name, set_folder)
    if format_name == "mteb":
        files.append(_write_mteb_table(export_folder, sets))
    return tuple(files)


def _write_mteb_table(folder: Path, sets: Sequence[Results]) -> Path:
    """Write the table of the retrievers that have a score on every data set."""
    scores_by_task: dict[str, dict[str, float]] = {}
    for results in sets:
        scores_by_task[results.manifest.name] = {
            result.retriever: result.main_score for result in _mteb_results(results)
        }
    path = folder / "table.csv"
    with new_text_file(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["Model", "Mean (Task)", *scores_by_task])
        for retriever in sets[0].retrievers:
            scores = [
                task_scores[retriever]
                for task_scores in scores_by_task.values()
                if retriever in task_scores
            ]
            if len(scores) == len(scores_by_task):
                mean = math.fsum(scores) / len(scores)
                writer.writerow([retriever, repr(mean), *map(repr, scores)])
    return path


def _write_trec(results: Results, folder: Path) -> None:
    """Write qrels after the grade rule, and a run of each retriever.

    As trec_eval, ir_measures and ranx read them.

    Raises:
        InputError: a file is missing.
    """
    (folder / "runs").mkdir()
    runs = [f"runs/{retriever}.trec" for retriever in results.retrievers]
    for name in ("qrels.trec", *runs):
        try:
            shutil.copyfile(results.folder / name, folder / name)
        except FileNotFoundError as error:
            raise records.unreadable_file(results.folder / name, error) from None


def _write_mteb(results: Results, folder: Path) -> None:
    """Write a result of each retriever in MTEB's shape, as the report wrote it."""
    for result in _mteb_results(results):
        with new_text_file(folder / f"{result.retriever}.json") as file:
            file.write(result.text)


def _write_parquet(results: Results, folder: Path) -> None:
    """Write every table, the labels and the rankings as Parquet."""
    with require_package("--as parquet", "pyarrow", "formats"):
        importlib.import_module("pyarrow")
    import pandas as pd

    for name in records.TABLE_NAMES:
        getattr(results, name).to_parquet(folder / f"{name}.parquet", index=False)
    hits: list[tuple[str, str, int, str, float]] = []
    for retriever in results.retrievers:
        for query_id, ranking in results.iter_rankings(retriever):
            for rank, hit in enumerate(ranking, start=1):
                hits.append((retriever, query_id, rank, hit.doc_id, hit.score))
    labels: list[tuple[str, str, int]] = []
    for query_id, judged in results.grades().items():
        for document, grade in judged.items():
            labels.append((query_id, document, grade))
    rankings_frame = pd.DataFrame(
        hits, columns=["retriever", "query_id", "rank", "doc_id", "score"]
    )
    rankings_frame.to_parquet(folder / "rankings.parquet", index=False)
    qrels_frame = pd.DataFrame(labels, columns=["query_id", "doc_id", "relevance"])
    qrels_frame.to_parquet(folder / "qrels.parquet", index=False)


EXPORT_FORMATS: Mapping[str, Callable[[Results, Path], None]] = {
    "trec": _write_trec,
    "mteb": _write_mteb,
    "parquet": _write_parquet,
}


def _mteb_results(results: Results) -> Iterator[MtebResult]:
    """Yield the result of each retriever in MTEB's shape, as the report wrote it.

    Raises:
        InputError: there are no scores, or a file is missing or damaged.
    """
    if not results.scored:
        raise InputError(Problem(str(results.folder), *NO_SCORES))
    for retriever in results.retrievers:
        path = results.folder / "tables" / f"{retriever}.mteb.json"
        try:
            text = path.read_text(encoding="utf-8")
            score = float(parse_json(text)["scores"]["test"][0]["main_score"])
        except (OSError, ValueError, KeyError, IndexError, TypeError):
            raise unreadable_report_file(results, path) from None
        yield MtebResult(retriever, text, score)
