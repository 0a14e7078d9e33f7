"""Results in a notebook.

`NotebookResults` are the results of a folder with more methods: frames, the verdict in
words, charts of the report, which is written when one is first asked for.
"""

from __future__ import annotations

import json
import re
import shutil
import weakref
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from harness import records
from harness.console.output import rendered_text
from harness.console.results_text import results_lines
from harness.evaluation.evaluation_file import read_or_evaluate
from harness.experiment import NAME_PATTERN
from harness.export.trackers import log_to_tracker
from harness.notebook.argument_types import check_path, check_text
from harness.notebook.compare import ComparedRuns, compare_folders
from harness.notebook.python_words import problems_without_options
from harness.records import LabelledQuery, Manifest, Results
from harness.report.page import first_screen_html
from harness.report.write import write_report
from harness.stats.differences import SCORE_TOLERANCE
from harness.wording.conclusion import conclusion_sentences
from harness.wording.failures import failure_lines
from retrievers.errors import InputError, Problem, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

NO_SCORES_PROBLEM = Problem(
    "results", "are rankings without scores", "they have no labels: label them first"
)
INVALID_NAME = "is not a name: letters, digits, '.', '_' and '-', at most 64"


class Chart(str):
    """A chart of the report: SVG text, which notebooks show."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


class LabelledQueries(dict[str, LabelledQuery]):
    """Queries by id.

    A call returns those on which one retriever loses to another, the largest loss
    first.
    """

    def __init__(self, results: Results) -> None:
        """Use the queries of results."""
        super().__init__(results.queries)
        self._scores = results.scores
        self._retrievers = results.retrievers
        self._primary = results.manifest.resolved.primary

    def __call__(self, *, lost_by: str, to: str) -> pd.DataFrame:
        """The queries on which `lost_by` loses to `to`.

        The columns are `query_id`, `text`, one for each of the two with its value of
        the primary measure, and `difference`.

        Raises:
            InputError: there is no such retriever, both are the same, or there are no
                labels.
        """
        if self._scores.empty:
            raise InputError(NO_SCORES_PROBLEM)
        if lost_by == to:
            problem = f"lost_by and to are the same retriever, {to!r}"
            raise InputError(Problem("to", problem, "name two"))
        for argument, retriever in (("lost_by", lost_by), ("to", to)):
            if retriever not in self._retrievers:
                problem = f"there is no retriever {retriever!r}"
                remedy = did_you_mean(str(retriever), self._retrievers)
                raise InputError(Problem(argument, problem, remedy))
        rows = self._scores[self._scores["measure"] == self._primary]
        scores = rows.pivot(index="query_id", columns="retriever", values="value")
        scores = scores[[lost_by, to]]
        largest = float(np.nanmax(np.abs(scores.to_numpy()), initial=1.0))
        scores["difference"] = scores[lost_by] - scores[to]
        lost = scores[scores["difference"] < -SCORE_TOLERANCE * largest]
        lost = lost.sort_values("difference", kind="stable").reset_index()
        texts = [self[query_id].query.text for query_id in lost["query_id"]]
        lost.insert(1, "text", texts)
        return lost.rename_axis(columns=None)


class NotebookResults(Results):
    """The results of a run: frames, sentences, charts, comparison, export.

    If a later run replaces the folder, the frames stay those of this run, and what
    would read other files than this run wrote is refused.

    >>> import harness
    >>> labels = {"q": ["0"]}
    >>> results = harness.evaluate(
    ...     ["red", "green"], {"q": "red"}, labels, {"bm25": "bm25"}, primary="RR"
    ... )
    >>> results.sentences[0]
    'bm25 scores 1.000.'
    """

    queries: LabelledQueries
    column_lines: tuple[str, ...] = ()
    """What columns of frames were read as, where their names were recognised; set by
    `harness.evaluate`."""

    @classmethod
    def from_results(cls, results: Results, temporary: str | None = None) -> Self:
        """Return results of a folder with the methods of this class.

        Args:
            results: as read from their folder.
            temporary: a folder that is deleted when the new object is; None: none.
        """
        values = {field.name: getattr(results, field.name) for field in fields(Results)}
        notebook_results = cls(**{**values, "queries": LabelledQueries(results)})
        # A later run may replace the folder: the tables are read now, so that they stay
        # those of this run. What reads other files then is refused.
        notebook_results.__dict__.update(
            {
                table: getattr(results, table)
                for table in (*records.TABLE_NAMES, "query_properties")
            }
        )
        if temporary is not None:
            weakref.finalize(
                notebook_results, shutil.rmtree, temporary, ignore_errors=True
            )
        return notebook_results

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The verdict in words, most important first; empty without labels."""
        if not self.scored:
            return ()
        return tuple(conclusion_sentences(read_or_evaluate(self)))

    def __str__(self) -> str:
        """The terminal's output at the end of a run, then columns and failures."""
        text = rendered_text(results_lines, self, False).rstrip("\n")
        lines = [*self.column_lines, *failure_lines(self.manifest.failed)]
        return "\n".join([text, *lines])

    def _repr_html_(self) -> str:
        """The verdict, the leaderboard and its paired differences."""
        return first_screen_html(self)

    def report(self, path: str | Path | None = None) -> Path:
        """Write the page, if the run did not; copy it to a path if one is given.

        The page needs no other file; queries without room on it are in queries.html of
        the results folder.

        Returns:
            The path of the page: `path`, or report.html in the results folder.

        Raises:
            InputError: a later run replaced the folder, or it cannot be written to.
        """
        if path is not None:
            check_path(path, "path", 'the path of a page: "report.html"')
        _refuse_replaced(self)
        page = self.folder / records.REPORT_FILE
        if not page.exists():
            write_report(self)
        if path is None:
            return page
        with records.new_text_file(Path(path)) as file:
            file.write(page.read_text(encoding="utf-8"))
        return Path(path)

    def save(self, folder: str | Path) -> Path:
        """Write a results folder with its report, which every command can read.

        The last part of its path is the results' name. What is in its place and would
        be lost (another experiment, other data or scores, a file) is kept as NAME.1,
        NAME.2, …

        Raises:
            InputError: the name is invalid, the folder cannot be written, or a later
                run replaced these results.
        """
        check_path(folder, "folder", 'the path of a new folder: "results/first"')
        _refuse_replaced(self)
        path = Path(folder)
        if not re.fullmatch(NAME_PATTERN, path.name):
            where = f"folder {path.name!r}"
            raise InputError(Problem(where, INVALID_NAME, "choose another name"))
        with problems_without_options(), records.staging_folder(path) as staging_dir:
            shutil.copytree(self.folder, staging_dir, dirs_exist_ok=True)
            (staging_dir / records.REPORT_FILE).unlink(missing_ok=True)
            records.write_manifest(staging_dir, self._renamed_manifest(path.name))
            write_report(records.read_results(staging_dir))
            records.publish(staging_dir, path)
        return path

    def _renamed_manifest(self, name: str) -> Manifest:
        manifest = self.manifest
        return replace(
            manifest,
            name=name,
            experiment=manifest.experiment.with_options(name=name),
            resolved=replace(manifest.resolved, name=name),
        )

    def compare(
        self,
        *others: Results | str | Path,
        baseline: str | None = None,
        **settings: Any,
    ) -> ComparedRuns:
        """Compare these retrievers with those of other results.

        The comparison is on their common queries.

        Args:
            others: results, or their folders.
            baseline: each other retriever is compared with it; without it, all pairs.
            settings: of the statistics, as for `harness.compare`.

        Raises:
            InputError: a folder cannot be read, or a later run replaced results in it;
                there is no such baseline; a setting is unknown or impossible.
        """
        if baseline is not None:
            check_text(baseline, "baseline", 'the name of a retriever: "bm25"')
        folders: list[Path] = []
        for results in (self, *others):
            if isinstance(results, Results):
                _refuse_replaced(results)
                folders.append(results.folder)
            else:
                check_path(results, "others", "results, or the path of their folder")
                folders.append(Path(results))
        return compare_folders(folders, baseline, settings)

    def to_mteb(self) -> dict[str, dict[str, Any]]:
        """A result of each retriever in MTEB's format.

        Raises:
            InputError: there are no labels, or a later run replaced the results.
        """
        if not self.scored:
            raise InputError(NO_SCORES_PROBLEM)
        self.report()  # it writes the tables, too
        results: dict[str, dict[str, Any]] = {}
        for retriever in self.retrievers:
            file = self.folder / "tables" / f"{retriever}.mteb.json"
            results[retriever] = json.loads(file.read_text(encoding="utf-8"))
        return results

    def plot(self, chart: str = "leaderboard") -> Chart:
        """A chart of the report, by the name of its file under figures/.

        By default it is the paired leaderboard, which results without labels, or of
        one retriever, lack.

        Raises:
            InputError: there is no such chart, or a later run replaced the results.
        """
        check_text(chart, "chart", 'the name of a chart: "leaderboard"')
        self.report()
        files = sorted((self.folder / "figures").glob("*.svg"))
        charts = {file.stem: file for file in files}
        if chart not in charts:
            problem = f"there is no chart {chart!r}"
            raise InputError(Problem("chart", problem, did_you_mean(chart, charts)))
        return Chart(charts[chart].read_text(encoding="utf-8"))

    def log_to(self, tracker: str, **options: Any) -> str:
        """Log parameters, means and the page to "mlflow" or "wandb".

        They are logged in the active run, else in a new one.

        Args:
            tracker: "mlflow" or "wandb"; its package must be installed.
            options: of `mlflow.start_run` or `wandb.init`, for a new run.

        Returns:
            The run's id.

        Raises:
            InputError: there is no such tracker, its package is not installed, or a
                later run replaced the results.
            BackendError: the tracker failed, such as for want of a server.
        """
        self.report()
        return log_to_tracker(self, tracker, **options)


def _refuse_replaced(results: Results) -> None:
    """Refuse results whose folder now has those of a later run.

    Their files would be read as if they were those of this run.

    Raises:
        InputError: it has, or it is no results folder any more.
    """
    stored = records.read_manifest(results.folder)
    manifest = results.manifest
    # Runs that start in the same second still differ in their measured times.
    if stored.started == manifest.started and (
        stored.file_digests == manifest.file_digests
    ):
        return
    folder = str(results.folder)
    problem = "a later run replaced these results"
    remedy = f"open its results: harness.open_results({folder!r})"
    raise InputError(Problem(folder, problem, remedy))
