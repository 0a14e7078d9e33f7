"""Other forms of a results folder."""

import csv
import importlib.util
import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from harness.dataset.written_values import parse_json
from harness.export.trackers import TRACKERS, unreadable_report_file
from harness.records.csv_table import TABLE_NAMES
from harness.records.jsonl import new_text_file
from harness.records.results import NO_SCORES, Results
from retrievers.errors import InputError, Problem, did_you_mean, require_package


def export_results(
    results: Results, format_name: str, output: Path | None = None
) -> tuple[Path, ...]:
    """Write a results folder in another form.

    Args:
        results: the folder, read.
        format_name: one of `FORMS`.
        output: a folder for the files, made where absent; `<results>/export/<form>` if left out.

    Returns:
        The files that were written.

    Raises:
        InputError: the form is unknown, or a file is there already.
    """
    if format_name not in EXPORT_FORMATS:
        raise InputError(
            Problem(
                "--as",
                f"unknown form {format_name!r}",
                did_you_mean(format_name, {**EXPORT_FORMATS, **TRACKERS}),
            )
        )
    place = output or results.folder / "export" / format_name
    if place.exists() and any(place.iterdir()):
        raise InputError(
            Problem(
                str(place),
                "is there already and not empty",
                "name another with --output",
            )
        )
    staging_dir = place.with_name(f"{place.name}.unfinished")
    shutil.rmtree(staging_dir, ignore_errors=True)
    try:
        staging_dir.mkdir(parents=True)
        EXPORT_FORMATS[format_name](results, staging_dir)
        if place.exists():
            place.rmdir()
        staging_dir.rename(place)
    except OSError as error:
        raise InputError(
            Problem(
                str(place),
                f"cannot be written: {error.strerror}",
                "name another folder",
            )
        ) from None
    finally:
        shutil.rmtree(staging_dir, ignore_errors=True)
    return tuple(sorted(file for file in place.rglob("*") if file.is_file()))


def export_sets(
    folder: Path, sets: Sequence[Results], format_name: str, output: Path | None = None
) -> tuple[Path, ...]:
    """Write the results of several data sets in another form, a folder each; as mteb, their table beside these.

    Args:
        folder: the folder that holds theirs.
        sets: one for each data set.
        format_name: one of `FORMS`.
        output: a folder for the files; `<place>/export/<form>` if left out.

    Raises:
        InputError: as `export`.
    """
    folder = output or folder / "export" / format_name
    files = [
        file
        for one in sets
        for file in export_results(one, format_name, folder / one.manifest.name)
    ]
    if format_name == "mteb":
        tasks = {
            one.manifest.name: {name: score for name, _, score in _mteb_results(one)}
            for one in sets
        }
        models = [
            name
            for name in sets[0].retrievers
            if all(name in scores for scores in tasks.values())
        ]
        with new_text_file(folder / "table.csv") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["Model", "Mean (Task)", *tasks])
            for name in models:
                own = [scores[name] for scores in tasks.values()]
                writer.writerow(
                    [name, repr(math.fsum(own) / len(own)), *map(repr, own)]
                )
        files.append(folder / "table.csv")
    return tuple(files)


def _trec(results: Results, place: Path) -> None:
    """Judgments after the grade rule, and a run of each retriever: what trec_eval, ir_measures and ranx read."""
    shutil.copyfile(results.folder / "qrels.trec", place / "qrels.trec")
    (place / "runs").mkdir()
    for name in results.retrievers:
        shutil.copyfile(
            results.folder / "runs" / f"{name}.trec", place / "runs" / f"{name}.trec"
        )


def _mteb(results: Results, place: Path) -> None:
    """A result of each retriever in the shape of MTEB, as the report wrote it."""
    for name, text, _ in _mteb_results(results):
        with new_text_file(place / f"{name}.json") as file:
            file.write(text)


def _parquet(results: Results, place: Path) -> None:
    """Every table, the labels and the rankings as Parquet."""
    with require_package("--as parquet", "pyarrow", "formats"):
        importlib.import_module("pyarrow")
    import pandas as pd

    for name in TABLE_NAMES:
        getattr(results, name).to_parquet(place / f"{name}.parquet", index=False)
    rows = [
        (name, query, rank, hit.doc_id, hit.score)
        for name in results.retrievers
        for query, ranking in results.iter_rankings(name)
        for rank, hit in enumerate(ranking, 1)
    ]
    labels = [
        (query, document, grade)
        for query, some in results.grades().items()
        for document, grade in some.items()
    ]
    for name, table, columns in (
        ("rankings", rows, ["retriever", "query_id", "rank", "doc_id", "score"]),
        ("qrels", labels, ["query_id", "doc_id", "relevance"]),
    ):
        pd.DataFrame(table, columns=columns).to_parquet(
            place / f"{name}.parquet", index=False
        )


EXPORT_FORMATS: Mapping[str, Callable[[Results, Path], None]] = {
    "trec": _trec,
    "mteb": _mteb,
    "parquet": _parquet,
}


def _mteb_results(results: Results) -> Iterator[tuple[str, str, float]]:
    """Each retriever, its result in MTEB's shape as the report wrote it, and the score in that."""
    if not results.scored:
        raise InputError(Problem(str(results.folder), *NO_SCORES))
    for name in results.retrievers:
        path = results.folder / "tables" / f"{name}.mteb.json"
        try:
            text = path.read_text(encoding="utf-8")
            yield name, text, float(parse_json(text)["scores"]["test"][0]["main_score"])
        except (OSError, ValueError, KeyError, IndexError, TypeError):
            raise unreadable_report_file(results, path) from None
