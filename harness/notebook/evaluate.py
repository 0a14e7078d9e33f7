"""Data in memory, evaluated.

The arguments become the tables of an experiment, which is run in a temporary folder
like one of a file. Problems name the arguments in place of keys and options.
"""

import re
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import pipeline
from harness.build.build import build
from harness.console.progress import progress_display
from harness.experiment import load
from harness.measures import parse_measure
from harness.notebook.argument_types import check_map, check_text, measure_names
from harness.notebook.dataset_in_memory import source_in_memory
from harness.notebook.document_values import Conditions, parse_conditions
from harness.notebook.results import NotebookResults
from harness.notebook.retriever_tables import retriever_tables
from harness.records.staging import TEMPORARY_PREFIX
from harness.running.options import RunOptions
from harness.wording.reading import guessed_column_lines
from retrievers.errors import InputError, Problem
from retrievers.options.user_code import OBJECT_PREFIX, NamedObject
from retrievers.remedy import remedy_as_python

RETRIEVER_INDEX = re.compile(r"retrievers\[(\d+)\]")
"""The name of a retriever's table in messages about an experiment."""
NO_FILE_PREFIX = "experiment: "
"""The start of messages about an experiment without a file."""
DATASET_PREFIX = "dataset."
"""Before `columns` and `where` in messages: here they are arguments."""


def evaluate(
    documents: Any,
    queries: Any,
    qrels: Any,
    retrievers: Mapping[str, Any],
    *,
    primary: str = "nDCG@10",
    measures: str | Sequence[str] = ("R@10", "RR@10"),
    baseline: str | None = None,
    margin: float | None = None,
    name: str = "evaluation",
    columns: Mapping[str, str] | None = None,
    where: Mapping[str, str | Sequence[str]] | None = None,
    progress: bool | None = None,
    **more: Any,
) -> NotebookResults:
    """Compare retrievers on documents and queries in memory.

    The comparison is like that of an experiment on files.

    Args:
        documents: {id: text}, a list of texts (their ids are 0, 1, 2, …), a frame with
            id, text and title, a `Dataset` of Hugging Face, or a path.
        queries: the same; None: those of the path.
        qrels: {query: {document: grade}}, {query: relevant documents}, a frame with
            query_id, doc_id and relevance, or a path; None: the labels in the queries,
            if any.
        retrievers: by name: classes of `retrievers` (`BM25()`, `Dense(model)`,
            `Fused([...])`, `Reranked(..., model)`, `Endpoint`, `Function`, `SavedRun`,
            `Filtered`); a model's name or folder, an object with `encode`, a function
            of texts (or of texts and their role) that returns (n, d); or a table as in
            a file.
        primary: the measure that decides.
        measures: further measures; names, or what `harness.measure` returns.
        baseline: each other retriever is compared with it; without it, all pairs.
        margin: the largest difference that does not matter; needed to call retrievers
            equivalent.
        name: of the results.
        columns: names of columns of frames and tables, such as {"text": "description"}.
        where: column -> the value, or values, of the rows that are labels, such as
            {"action_name": "click"}.
        progress: whether it is shown on standard error; by default in a terminal or a
            notebook.
        more: further keys of an experiment file: depth=10,
            relevance={"dangling": "drop"}, statistics={"alpha": 0.01}.

    Returns:
        The results in a temporary folder; save them to keep them.

    Raises:
        InputError: a problem with an argument, which it names; nothing was embedded.
        BackendError: every retriever failed.

    >>> documents = {"d1": "a red apple", "d2": "a green pear"}
    >>> queries = {"q1": "red", "q2": "pear"}
    >>> labels = {"q1": ["d1"], "q2": ["d2"]}
    >>> evaluate(documents, queries, labels, {"bm25": "bm25"}, primary="RR")
    <Results 'evaluation': 1 retrievers, 2 queries>
    """
    if not isinstance(retrievers, Mapping):
        raise InputError(
            Problem(
                "retrievers",
                f"is of type {type(retrievers).__name__}",
                'give each a name: {"bm25": "bm25"}',
            )
        )
    if "dataset" in more:
        problem = "is not an argument: the data are documents, queries and qrels"
        raise InputError(Problem("dataset", problem, "leave it out"))
    conditions = parse_conditions(where)
    check_map(columns or {}, "columns", '{"text": "description"}')
    check_text(primary, "primary", 'a measure: "nDCG@10"')
    all_measures = _all_measures(primary, measures)
    given_statistics = more.pop("statistics", {})
    check_map(given_statistics, "statistics", '{"alpha": 0.01}')
    statistics = dict(given_statistics)
    if margin is not None:
        statistics["margin"] = margin
    path = _dataset_path(
        documents, queries, qrels, conditions=conditions, declared_kinds=columns or ()
    )
    dataset: dict[str, Any] = {"path": path}
    if columns:
        dataset["columns"] = dict(columns)
    if conditions:
        dataset["where"] = dict(conditions)
    tables: dict[str, Any] = {
        "name": name,
        "dataset": dataset,
        "primary": primary,
        "measures": all_measures,
    }
    if baseline is not None:
        tables["baseline"] = baseline
    tables |= {
        "statistics": statistics,
        "report": False,
        "retrievers": retriever_tables(retrievers),
        **more,
    }
    try:
        return _run_in_temporary_folder(tables, progress)
    except InputError as error:
        raise _with_argument_names(error, list(retrievers)) from None


def _run_in_temporary_folder(
    tables: Mapping[str, Any], progress: bool | None
) -> NotebookResults:
    """Run an experiment in a folder that is deleted with its results, or on an error.

    Args:
        tables: of the experiment.
        progress: whether it is shown; None: in a terminal or a notebook.
    """
    folder = tempfile.mkdtemp(prefix=TEMPORARY_PREFIX)
    try:
        with progress_display(progress) as watch:
            options = RunOptions(folder, on_progress=watch)
            loaded = load(tables, allow_code=options.allow_code)
            built = build(loaded)
            results = NotebookResults.from_results(
                pipeline.run_built(loaded, built, options), folder
            )
            results.column_lines = tuple(guessed_column_lines(built.dataset))
            return results
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _all_measures(primary: str, measures: str | Sequence[str]) -> list[str]:
    """Return the primary measure, then the others without the primary one.

    Raises:
        InputError: there is no such measure.
    """
    names = measure_names(measures)
    try:
        primary_name = str(parse_measure(primary))
    except InputError as error:
        where = f"primary: {primary!r}"
        problems = [problem._replace(where=where) for problem in error.problems]
        raise InputError(problems) from None
    others = [name for name in names if str(parse_measure(name)) != primary_name]
    return [primary, *others]


def _with_argument_names(error: InputError, retrievers: Sequence[str]) -> InputError:
    """Return the error with the names of arguments in its problems.

    Retrievers are named instead of numbered.
    """

    def name_retriever(match: re.Match[str]) -> str:
        return f"retrievers[{retrievers[int(match[1])]!r}]"

    problems: list[Problem] = []
    for problem in error.problems:
        where = RETRIEVER_INDEX.sub(name_retriever, problem.where)
        for prefix in (NO_FILE_PREFIX, DATASET_PREFIX, OBJECT_PREFIX):
            where = where.removeprefix(prefix)
        remedy = remedy_as_python(problem.remedy)
        problems.append(problem._replace(where=where, remedy=remedy))
    return InputError(problems)


def _dataset_path(
    documents: Any,
    queries: Any,
    qrels: Any,
    *,
    conditions: Conditions,
    declared_kinds: Collection[str],
) -> str | NamedObject:
    """Return the `path` of the data set: that of a file, if one path is all there is.

    Else a text that carries the data in memory.
    """
    if queries is None and qrels is None and isinstance(documents, str | Path):
        return str(documents)
    source = source_in_memory(
        documents, queries, qrels, conditions=conditions, declared_kinds=declared_kinds
    )
    return NamedObject(f"{OBJECT_PREFIX}documents and queries in memory", source)
