"""Results in a notebook."""

from __future__ import annotations

import json
import re
import shutil
import weakref
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from harness import records
from harness.console.output import rendered_text
from harness.console.results_text import results_lines
from harness.evaluation.evaluation_file import read_or_evaluate
from harness.experiment import NAME_PATTERN
from harness.export.trackers import log_to_tracker
from harness.notebook.compare import ComparedRuns, compare_folders
from harness.records import LabelledQuery, Results
from harness.report.page import first_screen_html
from harness.report.write import write_report
from harness.scoring.stored_scores import primary_measure
from harness.wording.conclusion import conclusion_sentences
from retrievers.errors import InputError, Problem, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

INVALID_NAME = "is not a name: letters, digits, '.', '_' and '-', at most 64"


class Chart(str):
    """A chart of the report: SVG text, which notebooks show."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


class LabelledQueries(dict[str, LabelledQuery]):
    """Queries by id; a call returns those on which one retriever loses to another, the largest loss first."""

    def __init__(self, results: Results) -> None:
        """Use the queries of results."""
        super().__init__(results.queries)
        self._scores, self._names = results.scores, results.retrievers
        self._primary = primary_measure(results.manifest.resolved)

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

    queries: LabelledQueries

    @classmethod
    def from_results(cls, results: Results, place: str | None = None) -> Self:
        """The same results; a temporary folder is deleted with them."""
        table = {field.name: getattr(results, field.name) for field in fields(Results)}
        made = cls(**{**table, "queries": LabelledQueries(results)})
        made.__dict__.update(
            {name: getattr(results, name) for name in records.TABLE_NAMES}
        )  # a later run replaces it
        if place is not None:
            weakref.finalize(made, shutil.rmtree, place, ignore_errors=True)
        return made

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The verdict in words, most important first; empty without labels."""
        return (
            tuple(conclusion_sentences(read_or_evaluate(self))) if self.scored else ()
        )

    def __str__(self) -> str:
        """The terminal's output at the end of a run."""
        return rendered_text(results_lines, self, False)

    def _repr_html_(self) -> str:
        """The verdict, the leaderboard and its paired differences."""
        return first_screen_html(self)

    def report(self, path: str | Path | None = None) -> Path:
        """Write the page; if a path is given, to that self-contained file.

        Returns:
            The path of the page.
        """
        page = self.folder / records.REPORT_FILE
        if not page.exists():
            write_report(self)
        if path is None:
            return page
        with records.new_text_file(Path(path)) as file:
            file.write(page.read_text(encoding="utf-8"))
        return Path(path)

    def save(self, folder: str | Path) -> Path:
        """Write a results folder with its report, for every command; its last part is the results' name.

        Results of another experiment or other data in that folder are kept as NAME.1.

        Raises:
            InputError: the name is invalid, or the folder cannot be written.
        """
        place = Path(folder)
        if not re.fullmatch(NAME_PATTERN, place.name):
            raise InputError(
                Problem(f"folder {place.name!r}", INVALID_NAME, "choose another name")
            )
        with records.staging_folder(place) as staging_dir:
            shutil.copytree(self.folder, staging_dir, dirs_exist_ok=True)
            (staging_dir / records.REPORT_FILE).unlink(missing_ok=True)
            manifest = self.manifest
            resolved = replace(manifest.resolved, name=place.name)
            written = {**manifest.experiment, "name": place.name}
            records.write_manifest(
                staging_dir,
                replace(
                    manifest, name=place.name, experiment=written, resolved=resolved
                ),
            )
            write_report(records.read_results(staging_dir))
            records.publish(staging_dir, place)
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

    def plot(self, chart: str = "leaderboard") -> Chart:
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
        return Chart(drawn[chart].read_text(encoding="utf-8"))

    def log_to(self, tracker: str, **options: Any) -> str:
        """Log parameters, means and the page to "mlflow" or "wandb", in the active run, else in a new one.

        Args:
            tracker: "mlflow" or "wandb"; its package must be installed.
            options: of `mlflow.start_run` or `wandb.init`, for a new run.

        Returns:
            The run's id.
        """
        self.report()
        return log_to_tracker(self, tracker, **options)
