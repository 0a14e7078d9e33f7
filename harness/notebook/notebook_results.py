"""Results in a notebook: scores and comparisons of what is in memory; shown, inspected, saved, logged."""

from __future__ import annotations

import json
import re
import shutil
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from harness import records
from harness.console import tables
from harness.console.progress import progress_shown
from harness.english import counted
from harness.evaluation.conclusions import sentences
from harness.evaluation.csv_views import comparison_rows, summary_rows
from harness.evaluation.evaluate import evaluate, evaluation_of
from harness.evaluation.folders import USUAL, declared_settings, score_folders
from harness.evaluation.readers import primary_of
from harness.evaluation.runs import joined_runs, scored_run
from harness.evaluation.scores import Scores
from harness.experiment import NAME, statistics_of
from harness.measures import parse_all
from harness.notebook.in_memory import judgments_of, run_of
from harness.records import LabelledQuery, Results
from harness.records.atomic_write import log_to
from harness.report.write import first_screen, write_report
from harness.stats.power import at_look
from harness.stats.settings import Settings
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.meter import Meter

if TYPE_CHECKING:
    import pandas as pd

BAD_NAME = "is not a name: letters, digits, '.', '_' and '-', at most 64"


class Picture(str):
    """A chart of the report: SVG text, which notebooks show."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


class QueryTable(dict[str, LabelledQuery]):
    """Queries by id; a call returns those on which one retriever loses to another, the largest loss first."""

    def __init__(self, results: Results) -> None:
        """Use the queries of results."""
        super().__init__(results.queries)
        self._scores, self._names = results.scores, results.retrievers
        self._primary = primary_of(results.manifest.resolved)

    def __call__(self, *, lost_by: str, to: str) -> pd.DataFrame:
        """The queries on which `lost_by` loses to `to`: id, text, both primary values, the difference.

        Raises:
            InputError: there is no such retriever.
        """
        if lost_by == to:
            raise InputError(
                Problem(
                    "to", f"lost_by and to are the same retriever, {to!r}", "name two"
                )
            )
        for where, name in (("lost_by", lost_by), ("to", to)):
            if name not in self._names:
                remedy = did_you_mean(str(name), self._names)
                raise InputError(
                    Problem(where, f"there is no retriever {name!r}", remedy)
                )
        table = self._scores[self._scores["measure"] == self._primary]
        values = table.pivot(index="query_id", columns="retriever", values="value")[
            [lost_by, to]
        ]
        values["difference"] = values[lost_by] - values[to]
        lost = (
            values[values["difference"] < 0]
            .sort_values("difference", kind="stable")
            .reset_index()
        )
        lost.insert(1, "text", [self[query].query.text for query in lost["query_id"]])
        return lost.rename_axis(columns=None)


class NotebookResults(Results):
    """The results of a run: frames, sentences, charts, comparison, export.

    >>> import harness
    >>> found = harness.evaluate(["red", "green"], {"q": "red"}, {"q": ["0"]}, {"bm25": "bm25"}, primary="RR")
    >>> found.sentences[0]
    'bm25 ran alone: there is nothing to compare it with.'
    """

    queries: QueryTable

    @classmethod
    def of(cls, results: Results, place: str | None = None) -> Self:
        """The same results; a temporary folder is deleted with them."""
        table = {field.name: getattr(results, field.name) for field in fields(Results)}
        made = cls(**{**table, "queries": QueryTable(results)})
        made.__dict__.update(
            {name: getattr(results, name) for name in records.TABLES}
        )  # a later run replaces it
        if place is not None:
            weakref.finalize(made, shutil.rmtree, place, ignore_errors=True)
        return made

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The verdict in words, most important first; empty without labels."""
        return tuple(sentences(evaluation_of(self))) if self.scored else ()

    def __str__(self) -> str:
        """The terminal's output at the end of a run."""
        return tables.as_text(tables.results, self, False)

    def _repr_html_(self) -> str:
        """The verdict, the leaderboard and its paired differences."""
        return first_screen(self)

    def report(self, path: str | Path | None = None) -> Path:
        """Write the page; if a path is given, to that self-contained file.

        Returns:
            The path of the page.
        """
        page = self.folder / records.LAST_FILE
        if not page.exists():
            write_report(self)
        if path is None:
            return page
        with records.create(Path(path)) as file:
            file.write(page.read_text(encoding="utf-8"))
        return Path(path)

    def save(self, folder: str | Path) -> Path:
        """Write a results folder with its report, for every command; its last part is the results' name.

        Results of another experiment or other data in that folder are kept as NAME.1.

        Raises:
            InputError: the name is invalid, or the folder cannot be written.
        """
        place = Path(folder)
        if not re.fullmatch(NAME, place.name):
            raise InputError(
                Problem(f"folder {place.name!r}", BAD_NAME, "choose another name")
            )
        with records.unfinished_folder(place) as staging_dir:
            shutil.copytree(self.folder, staging_dir, dirs_exist_ok=True)
            (staging_dir / records.LAST_FILE).unlink(missing_ok=True)
            manifest = self.manifest
            resolved = replace(manifest.resolved, name=place.name)
            written = {**manifest.experiment, "name": place.name}
            records.write_manifest(
                staging_dir,
                replace(
                    manifest, name=place.name, experiment=written, resolved=resolved
                ),
            )
            write_report(records.read(staging_dir))
            records.put_in_place(staging_dir, place)
        return place

    def compare(
        self,
        *others: Results | str | Path,
        baseline: str | None = None,
        **settings: Any,
    ) -> ComparedRuns:
        """Compare these retrievers with those of other results, on their common queries.

        Args:
            others: results, or their folders.
            baseline: each other retriever is compared with it; without it, all pairs.
            settings: of the statistics, as for `harness.compare`.
        """
        folders = [
            one.folder if isinstance(one, Results) else Path(one) for one in others
        ]
        return compare_folders([self.folder, *folders], baseline, settings)

    def to_mteb(self) -> dict[str, dict[str, Any]]:
        """A result of each retriever in MTEB's format."""
        self.report()
        files = {
            name: self.folder / "tables" / f"{name}.mteb.json"
            for name in self.retrievers
        }
        return {
            name: json.loads(file.read_text(encoding="utf-8"))
            for name, file in files.items()
        }

    def plot(self, chart: str = "leaderboard") -> Picture:
        """A chart of the report, by the name of its file under figures/; by default the paired leaderboard."""
        self.report()
        drawn = {
            file.stem: file for file in sorted((self.folder / "figures").glob("*.svg"))
        }
        if chart not in drawn:
            raise InputError(
                Problem(
                    "chart", f"there is no chart {chart!r}", did_you_mean(chart, drawn)
                )
            )
        return Picture(drawn[chart].read_text(encoding="utf-8"))

    def log_to(self, tracker: str, **options: Any) -> str:
        """Log parameters, means and the page to "mlflow" or "wandb", in the active run, else in a new one.

        Args:
            tracker: "mlflow" or "wandb"; its package must be installed.
            options: of `mlflow.start_run` or `wandb.init`, for a new run.

        Returns:
            The run's id.
        """
        self.report()
        return log_to(self, tracker, **options)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ComparedRuns:
    """The comparison of several runs."""

    scores: pd.DataFrame
    """The columns of scores.csv: retriever, query_id, measure, value."""
    summary: pd.DataFrame
    """The columns of summary.csv."""
    comparisons: pd.DataFrame
    """The columns of comparisons.csv."""
    sentences: tuple[str, ...]
    """The verdict in words."""
    notes: tuple[str, ...]
    """Warnings: queries that are missing or have no labels."""

    def __repr__(self) -> str:
        primary = str(self.summary["measure"].iloc[0])
        rows = self.summary[self.summary["measure"] == primary].sort_values(
            "mean", ascending=False, kind="stable"
        )
        means = ", ".join(
            f"{name} {mean:.4f}"
            for name, mean in zip(rows["retriever"], rows["mean"], strict=True)
        )
        return (
            f"<{primary} over {counted(int(rows['count'].iloc[0]), 'query')}: {means}>"
        )

    def _repr_html_(self) -> str:
        """The means and the verdict, for notebooks."""
        from html import escape

        table = self.summary.pivot(index="retriever", columns="measure", values="mean")
        paragraphs = "".join(
            f"<p>{escape(sentence)}</p>" for sentence in self.sentences
        )
        in_order = table[list(dict.fromkeys(self.summary["measure"]))]
        return f"{in_order.to_html(float_format='{:.4f}'.format)}{paragraphs}"


def compare(
    runs: Mapping[str, Any],
    qrels: Any,
    measures: str | Sequence[str] = USUAL,
    *,
    baseline: str | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> ComparedRuns:
    """Score runs and compare them query by query, with exact tests and a verdict.

    Args:
        runs: by name: {query: {document: score}}, {query: [documents, best first]}, a frame with the columns query_id,
            doc_id and score (or qid and docno), or a TREC file.
        qrels: {query: {document: grade}}, {query: relevant documents}, a frame with query_id, doc_id and relevance, or
            a TREC file.
        measures: one name or several; the first one decides.
        baseline: each other run is compared with it; without it, all pairs.
        progress: whether it is shown on standard error; by default in a terminal or a notebook.
        settings: of the statistics: test, correction, alpha, margin, seed.

    Returns:
        Frames as in a results folder, and the verdict in words.

    Raises:
        InputError: fewer than two runs, another type of input, an unknown measure or setting.

    >>> qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
    >>> compare({"x": {"q1": ["a"], "q2": ["b"]}, "y": {"q1": ["b", "a"], "q2": ["b"]}}, qrels, ["RR"])
    <RR over 2 queries: x 1.0000, y 0.7500>
    """
    if not isinstance(runs, Mapping):
        raise InputError(
            Problem(
                "runs",
                f"is a {type(runs).__name__}",
                'give each run its name: {"bm25": run, …}',
            )
        )
    if len(runs) < 2:
        raise InputError(
            Problem(
                "runs",
                "there is only one run" if runs else "there is no run",
                "give two or more",
            )
        )
    judgments = judgments_of(qrels)
    parsed = parse_all([measures] if isinstance(measures, str) else measures)
    chosen = _settings(settings)
    with progress_shown(progress) as watch:
        meter, scored = Meter(watch=lambda meter: watch("", meter)), []
        with meter.stage("scoring", total=len(runs)):
            for name, run in runs.items():
                scored.append(
                    scored_run(name, run_of(run, f"runs[{name!r}]"), judgments, parsed)
                )
                meter.step()
        return _compared(
            joined_runs(scored, judgments, parsed), baseline, chosen, meter
        )


def compare_folders(
    folders: Sequence[Path], baseline: str | None, settings: Mapping[str, Any]
) -> ComparedRuns:
    """Compare the retrievers of several results folders on their common queries, as `harness compare` does."""
    scores, declared = score_folders(folders, ()), declared_settings(folders)
    chosen = at_look(_settings(settings, declared.settings), scores.n)
    scores = replace(scores, notes=(*filter(None, [declared.note]), *scores.notes))
    return _compared(scores, baseline, chosen, Meter())


def _compared(
    scores: Scores, baseline: str | None, settings: Settings, meter: Meter
) -> ComparedRuns:
    import pandas as pd

    with meter.stage("comparing"):
        evaluation = evaluate(scores, baseline=baseline, settings=settings)
    return ComparedRuns(
        pd.DataFrame(list(scores.rows())),
        pd.DataFrame(summary_rows(evaluation.summary)),
        pd.DataFrame(comparison_rows(evaluation)),
        tuple(sentences(evaluation)),
        scores.notes,
    )


def _settings(given: Mapping[str, Any], declared: Settings = Settings()) -> Settings:  # noqa: B008 - frozen
    try:
        statistics_of(
            {key: value for key, value in given.items() if key == "alpha"}, "settings"
        )
        return replace(declared, **given)
    except TypeError as error:
        message = str(error).partition(") ")[2] or str(error)
        raise InputError(
            Problem("settings", message, "test, correction, alpha, margin, seed")
        ) from None
