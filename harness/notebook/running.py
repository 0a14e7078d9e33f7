"""Experiments that are run from Python: those of files, and those of what is in memory."""

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness import pipeline, records
from harness.console.progress import progress_shown
from harness.experiment import Experiment, load_sets
from harness.measures import parse
from harness.notebook.in_memory import source_of
from harness.notebook.notebook_results import NotebookResults
from harness.notebook.parts import tables_of
from harness.running.options import Options
from retrievers.errors import InputError, Problem
from retrievers.user_objects import OBJECT, NamedObject

WHERE = re.compile(r"retrievers\[(\d+)\]")
"""How an experiment names the table of a retriever."""
BUILT = "experiment: "
"""How messages begin of an experiment that is no file."""


def run(
    experiment: str | Path | Mapping[str, Any] | Experiment,
    options: Options = Options(),  # noqa: B008 - immutable
    *,
    progress: bool | None = None,
) -> NotebookResults:
    """Run an experiment: check, index, replay, score, compare, and write the results folder.

    Args:
        experiment: its file; or its tables as a dict, or an `Experiment`.
        options: where results go, and what to run; a `watch` of one's own sees the progress instead.
        progress: whether it is shown on standard error; left out, in a terminal or a notebook.

    Returns:
        The results, read back from their folder.

    Raises:
        InputError: the experiment, its data or its environment is at fault; nothing was embedded.
        BackendError: every retriever failed; earlier results are untouched.

    >>> with tempfile.TemporaryDirectory() as place:
    ...     run("experiments/japanese.toml", Options(place), progress=False)
    <Results 'japanese': 2 retrievers, 138 queries>
    """
    with _watched(options, progress) as watched:
        return NotebookResults.of(pipeline.run(experiment, watched))


def run_sets(
    experiment: str | Path | Mapping[str, Any],
    options: Options = Options(),  # noqa: B008 - immutable
    *,
    progress: bool | None = None,
) -> dict[str, NotebookResults]:
    """Run an experiment on each of its data sets, as `harness run` does, and write what they say together.

    Args:
        experiment: its file; or its tables as a dict.
        options: as for `run`.
        progress: as for `run`.

    Returns:
        The results of each data set by its name; `data_sets.csv` and the common page lie in the folder above theirs.

    Raises:
        InputError: as for `run`; all sets are checked before anything is embedded.
        BackendError: every retriever failed on a set; what finished before is kept.

    >>> tables = {"name": "two", "retrievers": [{"name": "bm25", "kind": "bm25"}], "primary": "RR", "measures": ["RR"]}
    >>> sets = ["datasets/survey-templates-en", "datasets/survey-templates-ja"]
    >>> with tempfile.TemporaryDirectory() as place:
    ...     list(run_sets({**tables, "dataset": sets}, Options(place), progress=False))
    ['survey-templates-en', 'survey-templates-ja']
    """
    with _watched(options, progress) as watched:
        return {one.manifest.name: NotebookResults.of(one) for one in pipeline.run_sets(load_sets(experiment), watched)}


@contextmanager
def _watched(options: Options, progress: bool | None) -> Iterator[Options]:
    """The options with somebody who watches: their own, or what shows the progress."""
    if options.watch is not Options().watch:
        yield options
        return
    with progress_shown(progress) as watch:
        yield options._replace(watch=watch)


def open_results(folder: str | Path) -> NotebookResults:
    """Read a results folder.

    Raises:
        InputError: it is none, or a part of it is missing or cannot be read.

    >>> found = evaluate(["red", "green"], {"q": "red"}, {"q": ["0"]}, {"bm25": "bm25"}, primary="RR")
    >>> open_results(found.folder)
    <Results 'evaluation': 1 retrievers, 1 queries>
    """
    return NotebookResults.of(records.read(folder))


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
    progress: bool | None = None,
    **more: Any,
) -> NotebookResults:
    """Compare retrievers on documents and queries that are in memory, as an experiment file does on files.

    Args:
        documents: {id: text}, a list of texts (their ids are 0, 1, 2, …), a frame with id, text and title, a `Dataset`
            of Hugging Face, or a path.
        queries: the same; None: those of the path.
        qrels: {query: {document: grade}}, {query: relevant documents}, a frame with query_id, doc_id and relevance, or
            a path; None: what the queries say, else nobody has labelled anything yet.
        retrievers: by name: what `retrievers` has (`BM25()`, `Dense(model)`, `Fused([...])`, `Reranked(..., model)`,
            `Endpoint`, `Function`, `SavedRun`, `Filtered`); a model's name or folder, an object with `encode`, a
            function of texts (or of texts and their role) that returns (n, d); or a table as in a file.
        primary: the measure that decides.
        measures: what is measured beside it; names, or what `harness.measure` returns.
        baseline: the retriever with which each other one is compared; left out, all pairs.
        margin: a difference that does not matter; nothing is called equivalent without it.
        name: of the results.
        columns: what columns of frames and tables are called, such as {"text": "description"}.
        progress: whether it is shown on standard error; left out, in a terminal or a notebook.
        more: further keys of an experiment file: depth=10, relevance={"dangling": "drop"}, statistics={"alpha": 0.01}.

    Returns:
        The results, kept until they are no longer used, or saved.

    Raises:
        InputError: an argument is at fault: with the argument's name; nothing was embedded.
        BackendError: every retriever failed.

    >>> documents = {"d1": "a red apple", "d2": "a green pear"}
    >>> evaluate(documents, {"q1": "red", "q2": "pear"}, {"q1": ["d1"], "q2": ["d2"]}, {"bm25": "bm25"}, primary="RR")
    <Results 'evaluation': 1 retrievers, 2 queries>
    """
    if not isinstance(retrievers, Mapping):
        raise InputError(
            Problem("retrievers", f"is of type {type(retrievers).__name__}", 'give each a name: {"bm25": "bm25"}')
        )
    beside = [measures] if isinstance(measures, str) else measures
    others = [one for one in beside if str(parse(one)) != str(parse(primary))]
    statistics = {**more.pop("statistics", {}), **({} if margin is None else {"margin": margin})}
    tables: dict[str, Any] = {
        "name": name,
        "dataset": _dataset(documents, queries, qrels, dict(columns or {})),
        "primary": primary,
        "measures": [primary, *others],
        **({} if baseline is None else {"baseline": baseline}),
        "statistics": statistics,
        "report": False,
        "retrievers": tables_of(retrievers),
        **more,
    }
    place = tempfile.mkdtemp(prefix="harness-")
    try:
        with progress_shown(progress) as watch:
            return NotebookResults.of(pipeline.run(tables, Options(place, watch=watch)), place)
    except BaseException as error:
        shutil.rmtree(place, ignore_errors=True)
        if isinstance(error, InputError):
            raise _by_name(error, list(retrievers)) from None
        raise


def _by_name(error: InputError, names: Sequence[str]) -> InputError:
    """The same problems, each with the argument's name: a retriever's, where an experiment has a number."""

    def renamed(where: str) -> str:
        return WHERE.sub(lambda place: f"retrievers[{names[int(place[1])]!r}]", where).removeprefix(BUILT)

    return InputError([
        one._replace(where=renamed(one.where), remedy=in_python(one.remedy)) for one in error.problems
    ])  # fmt: skip


def in_python(remedy: str) -> str:
    """What to do in the words of Python, not of a file or the command line.

    >>> in_python('say which: columns = { grade = "stars" } (--columns grade=stars)')
    'say which: columns={"grade": "stars"}'
    >>> in_python('set dangling = "drop" under [relevance] (--dangling drop)')
    'set relevance={"dangling": "drop"}'
    """
    plain = re.sub(r" \(--[\w-]+ ?(?:'[^']*'|[^()'])*\)", "", remedy)
    plain = re.sub(r'columns = \{ (\w+) = ("[^"]*") \}', r'columns={"\1": \2}', plain)
    plain = re.sub(r'(\w+) = ("[^"]*"|\w+) under \[(\w+)\]', r'\3={"\1": \2}', plain)
    return re.sub(r"(\w+) = (?=[\"\[{…])", r"\1=", plain)


def _dataset(documents: Any, queries: Any, qrels: Any, columns: dict[str, str]) -> dict[str, Any]:
    """The data set's table: a path alone is what it is in a file."""
    named = {"columns": columns} if columns else {}
    if queries is None and qrels is None and isinstance(documents, str | Path):
        return {"path": str(documents), **named}
    opened = source_of(documents, queries, qrels)
    return {"path": NamedObject(f"{OBJECT}documents and queries in memory", opened), **named}
