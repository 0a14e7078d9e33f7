"""What is written whole or not at all: a results folder, put in its place at once, and its forms for other programs.

TREC files, MTEB, Parquet, trackers.
"""

import csv
import importlib
import importlib.util
import math
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from harness.dataset.source import parse_json
from harness.identity import run_of
from harness.records.csv_tables import TABLES, read_columns
from harness.records.manifest import Manifest, create, read_manifest
from harness.records.results import UNSCORED, Results
from retrievers.errors import HarnessError, InputError, Problem, did_you_mean, needing
from retrievers.opening import locked

LAST_FILE = "report.html"
"""What a run writes last, after the manifest, where it writes a report: a folder that has it is whole."""
TAKEN = (
    "another run of this experiment is writing here",
    "wait for it, or choose another --results",
)


def unfinished(place: Path) -> Path:
    """Where a run writes until it is whole; a stopped run leaves its finished rankings there, with their qrels."""
    return place.with_name(f"{place.name}.unfinished")


@contextmanager
def unfinished_folder(place: Path) -> Iterator[Path]:
    """An empty folder beside the place of the results, held by this process alone.

    Whole results that a killed run could not put in place any more are put there first.

    Raises:
        InputError: another run writes here, it cannot be written, or an experiment of the name has its results there.
    """
    with ExitStack() as locks:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            locks.enter_context(locked(place, *TAKEN))
            staging_dir = unfinished(place)
            locks.enter_context(
                locked(staging_dir, *TAKEN)
            )  # an experiment of that name would write there
            _recover(place, staging_dir)
            shutil.rmtree(staging_dir, ignore_errors=True)
            staging_dir.mkdir()
        except OSError as error:
            what = f"cannot be written: {error.strerror}"
            raise InputError(
                Problem(str(place.parent), what, "choose another --results")
            ) from None
        try:
            yield staging_dir
        except HarnessError:
            if not (staging_dir / "rankings").exists():
                shutil.rmtree(staging_dir)  # there is nothing in it to be judged
            raise


def put_in_place(staging_dir: Path, place: Path) -> str:
    """Put whole results in their place; an earlier folder is replaced only where nothing that it says is lost.

    One of another experiment, of other data, or with a score that is not among the new ones is moved to
    `<name>.1`, `<name>.2`, …: the first that is free.

    Returns:
        Where an earlier folder was moved, and why, as a sentence; "" where none was.
    """
    old = _old(place)
    shutil.rmtree(old, ignore_errors=True)
    sentence = ""
    if place.exists():
        if reason := _lost(place, staging_dir):
            number = next(
                n
                for n in range(1, 1_000_000)
                if not place.with_name(f"{place.name}.{n}").exists()
            )
            kept = place.with_name(f"{place.name}.{number}")
            sentence = f"{place} held {reason}: kept as {kept}"
            place.rename(kept)
        else:
            place.rename(old)
    staging_dir.rename(place)
    shutil.rmtree(old, ignore_errors=True)
    return sentence


def _lost(earlier: Path, newer: Path) -> str:
    """What an earlier folder holds that a newer one does not; "" where it may be replaced."""
    if experiment_and_data(earlier) != experiment_and_data(newer):
        return "another experiment, or other data"
    before, now = _manifest(earlier), _manifest(newer)
    if before is None or now is None:
        return "what cannot be read"
    if not (before.dataset.scored or now.dataset.scored):
        rankings = {
            name: digest
            for name, digest in before.tables.items()
            if name.startswith("rankings/")
        }
        return "" if rankings.items() <= now.tables.items() else "other rankings"
    if "scores.csv" in before.tables and before.tables["scores.csv"] == now.tables.get(
        "scores.csv"
    ):
        return ""
    try:
        scores = [_scores(folder) for folder in (earlier, newer)]
    except (OSError, ValueError):
        return "scores that cannot be read"
    return "" if scores[0].items() <= scores[1].items() else "other scores"


def _scores(folder: Path) -> dict[tuple[str, ...], str]:
    """(retriever, query, measure) -> the score as text: so that one that is undefined equals itself."""
    table = read_columns(folder / "scores.csv")
    names = zip(table["retriever"], table["query_id"], table["measure"], strict=True)
    return dict(zip(names, map(repr, table["value"]), strict=True))


def experiment_and_data(folder: Path) -> tuple[Any, Any] | None:
    """What a results folder answers: what its experiment asks, and the data; None where that cannot be read."""
    manifest = _manifest(folder)
    return (
        None
        if manifest is None
        else run_of(manifest.experiment, manifest.dataset.digest)
    )


def _recover(place: Path, staging_dir: Path) -> None:
    """Finish what a killed run left undone between writing its last file and putting its folder in place."""
    written = _manifest(staging_dir)
    if (staging_dir / "manifest.json").is_file() and (
        written is None or written.name != place.name
    ):
        raise InputError(
            Problem(
                str(staging_dir),
                "holds other results",
                "move them, or choose another --results",
            )
        )
    if written is not None and (
        not written.resolved.report or (staging_dir / LAST_FILE).is_file()
    ):
        put_in_place(staging_dir, place)
    elif not place.exists() and _old(place).is_dir():
        _old(place).rename(place)


def _old(place: Path) -> Path:
    """Where earlier results are for the moment in which new ones take their place."""
    return place.with_name(f".{place.name}.old")


def _manifest(folder: Path) -> Manifest | None:
    try:
        return read_manifest(folder)
    except InputError:
        return None


def export(results: Results, form: str, output: Path | None = None) -> tuple[Path, ...]:
    """Write a results folder in another form.

    Args:
        results: the folder, read.
        form: one of `FORMS`.
        output: a folder for the files, made where absent; `<results>/export/<form>` if left out.

    Returns:
        The files that were written.

    Raises:
        InputError: the form is unknown, or a file is there already.
    """
    if form not in FORMS:
        raise InputError(
            Problem(
                "--as",
                f"unknown form {form!r}",
                did_you_mean(form, {**FORMS, **TRACKERS}),
            )
        )
    place = output or results.folder / "export" / form
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
        FORMS[form](results, staging_dir)
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
    place: Path, sets: Sequence[Results], form: str, output: Path | None = None
) -> tuple[Path, ...]:
    """Write the results of several data sets in another form, a folder each; as mteb, their table beside these.

    Args:
        place: the folder that holds theirs.
        sets: one for each data set.
        form: one of `FORMS`.
        output: a folder for the files; `<place>/export/<form>` if left out.

    Raises:
        InputError: as `export`.
    """
    folder = output or place / "export" / form
    files = [
        file for one in sets for file in export(one, form, folder / one.manifest.name)
    ]
    if form == "mteb":
        tasks = {
            one.manifest.name: {name: score for name, _, score in _mteb_results(one)}
            for one in sets
        }
        models = [
            name
            for name in sets[0].retrievers
            if all(name in scores for scores in tasks.values())
        ]
        with create(folder / "table.csv") as file:
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
        with create(place / f"{name}.json") as file:
            file.write(text)


def _parquet(results: Results, place: Path) -> None:
    """Every table, the labels and the rankings as Parquet."""
    with needing("--as parquet", "pyarrow", "formats"):
        importlib.import_module("pyarrow")
    import pandas as pd

    for name in TABLES:
        getattr(results, name).to_parquet(place / f"{name}.parquet", index=False)
    rows = [
        (name, query, rank, hit.doc_id, hit.score)
        for name in results.retrievers
        for query, ranking in results.answers(name)
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


FORMS: Mapping[str, Callable[[Results, Path], None]] = {
    "trec": _trec,
    "mteb": _mteb,
    "parquet": _parquet,
}


def _mteb_results(results: Results) -> Iterator[tuple[str, str, float]]:
    """Each retriever, its result in MTEB's shape as the report wrote it, and the score in that."""
    if not results.scored:
        raise InputError(Problem(str(results.folder), *UNSCORED))
    for name in results.retrievers:
        path = results.folder / "tables" / f"{name}.mteb.json"
        try:
            text = path.read_text(encoding="utf-8")
            yield name, text, float(parse_json(text)["scores"]["test"][0]["main_score"])
        except (OSError, ValueError, KeyError, IndexError, TypeError):
            raise _unusable(results, path) from None


def _unusable(results: Results, path: Path) -> InputError:
    remedy = f"harness report {shlex.quote(str(results.folder))} writes it anew"
    return InputError(Problem(str(path), "is missing or damaged", remedy))


REFUSED = re.compile(r"[^\w./ -]")
"""Characters that no name of a figure has in MLflow."""


def log_to(results: Results, tracker: str, **options: Any) -> str:
    """Log results, whose page has to be written, into the run that is active, else a new one.

    Args:
        results: of one folder.
        tracker: one of `TRACKERS`.
        options: of a new run.

    Returns:
        The id of the run.

    Raises:
        InputError: there is no such tracker, or its package is not installed, or not whole.
    """
    if tracker not in TRACKERS:
        raise InputError(
            Problem(
                "tracker",
                f"unknown tracker {tracker!r}",
                did_you_mean(tracker, TRACKERS),
            )
        )
    with needing("--as", tracker):
        package = importlib.import_module(tracker)
    if not (results.folder / LAST_FILE).is_file():
        raise _unusable(results, results.folder / LAST_FILE)
    try:
        return TRACKERS[tracker](package, results, options)
    except (
        ModuleNotFoundError
    ) as error:  # mlflow-skinny leaves out what some of its stores need
        what = f"{tracker} needs the package {error.name}"
        raise InputError(Problem("--as", what, f"pip install {tracker}")) from None


def _parameters(results: Results) -> dict[str, str]:
    """What was asked of what: the same for every tracker."""
    manifest = results.manifest
    models = {
        f"{name}.model": str(
            facts.provenance.get("model") or facts.provenance.get("call") or name
        )
        for name, facts in manifest.retrievers.items()
    }
    asked = {
        "primary": manifest.resolved.primary,
        "baseline": manifest.resolved.baseline or "",
    }
    size = {
        "documents": str(manifest.dataset.documents),
        "queries": str(manifest.dataset.queries),
    }
    return {**asked, **size, "dataset_digest": manifest.dataset.digest, **models}


def _means(results: Results) -> dict[str, float]:
    """retriever/measure -> mean, in characters that every tracker takes."""
    rows = results.summary[["retriever", "measure", "mean"]].itertuples(
        index=False, name=None
    )
    return {
        REFUSED.sub("_", f"{name}/{measure.replace('@', '_at_')}"): mean
        for name, measure, mean in rows
    }


def _mlflow(mlflow: Any, results: Results, options: Mapping[str, Any]) -> str:
    active = mlflow.active_run()
    with (
        nullcontext(active)
        if active
        else mlflow.start_run(**{"run_name": results.manifest.name, **options}) as run
    ):
        mlflow.log_params(_parameters(results))
        mlflow.log_metrics(_means(results))
        mlflow.log_artifact(str(results.folder / LAST_FILE))
        return str(run.info.run_id)


def _wandb(wandb: Any, results: Results, options: Mapping[str, Any]) -> str:
    page = (results.folder / LAST_FILE).read_text(encoding="utf-8")
    with (
        nullcontext(wandb.run)
        if wandb.run
        else wandb.init(**{"name": results.manifest.name, **options}) as run
    ):
        run.config.update(_parameters(results))
        run.log({**_means(results), "report": wandb.Html(page, inject=False)})
        return str(run.id)


TRACKERS: Mapping[str, Callable[[Any, Results, Mapping[str, Any]], str]] = {
    "mlflow": _mlflow,
    "wandb": _wandb,
}
