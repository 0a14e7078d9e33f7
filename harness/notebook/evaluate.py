"""Data in memory, evaluated."""

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import pipeline
from harness.console.progress import progress_display
from harness.measures import parse_measure
from harness.notebook.dataset_in_memory import source_in_memory
from harness.notebook.results import NotebookResults
from harness.notebook.retriever_tables import retriever_tables
from harness.running.context import RunOptions
from retrievers.errors import InputError, Problem
from retrievers.options.user_code import OBJECT_PREFIX, NamedObject

RETRIEVER_INDEX = re.compile(r"retrievers\[(\d+)\]")
"""The experiment's name of a retriever's table."""
NO_FILE_PREFIX = "experiment: "
"""The start of messages about an experiment without a file."""


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
    """Compare retrievers on documents and queries in memory, like an experiment on files.

    Args:
        documents: {id: text}, a list of texts (their ids are 0, 1, 2, …), a frame with id, text and title, a `Dataset`
            of Hugging Face, or a path.
        queries: the same; None: those of the path.
        qrels: {query: {document: grade}}, {query: relevant documents}, a frame with query_id, doc_id and relevance, or
            a path; None: the labels in the queries, if any.
        retrievers: by name: classes of `retrievers` (`BM25()`, `Dense(model)`, `Fused([...])`, `Reranked(..., model)`,
            `Endpoint`, `Function`, `SavedRun`, `Filtered`); a model's name or folder, an object with `encode`, a
            function of texts (or of texts and their role) that returns (n, d); or a table as in a file.
        primary: the measure that decides.
        measures: further measures; names, or what `harness.measure` returns.
        baseline: each other retriever is compared with it; without it, all pairs.
        margin: the largest difference that does not matter; needed to call retrievers equivalent.
        name: of the results.
        columns: names of columns of frames and tables, such as {"text": "description"}.
        progress: whether it is shown on standard error; by default in a terminal or a notebook.
        more: further keys of an experiment file: depth=10, relevance={"dangling": "drop"}, statistics={"alpha": 0.01}.

    Returns:
        The results in a temporary folder; save them to keep them.

    Raises:
        InputError: a problem with an argument, which it names; nothing was embedded.
        BackendError: every retriever failed.

    >>> documents = {"d1": "a red apple", "d2": "a green pear"}
    >>> evaluate(documents, {"q1": "red", "q2": "pear"}, {"q1": ["d1"], "q2": ["d2"]}, {"bm25": "bm25"}, primary="RR")
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
    beside = [measures] if isinstance(measures, str) else measures
    others = [
        one for one in beside if str(parse_measure(one)) != str(parse_measure(primary))
    ]
    statistics = {
        **more.pop("statistics", {}),
        **({} if margin is None else {"margin": margin}),
    }
    tables: dict[str, Any] = {
        "name": name,
        "dataset": _dataset(documents, queries, qrels, dict(columns or {})),
        "primary": primary,
        "measures": [primary, *others],
        **({} if baseline is None else {"baseline": baseline}),
        "statistics": statistics,
        "report": False,
        "retrievers": retriever_tables(retrievers),
        **more,
    }
    place = tempfile.mkdtemp(prefix="harness-")
    try:
        with progress_display(progress) as watch:
            return NotebookResults.from_results(
                pipeline.run(tables, RunOptions(place, on_progress=watch)), place
            )
    except BaseException as error:
        shutil.rmtree(place, ignore_errors=True)
        if isinstance(error, InputError):
            raise _by_name(error, list(retrievers)) from None
        raise


def _by_name(error: InputError, names: Sequence[str]) -> InputError:
    """The same problems with the names of arguments, and of retrievers instead of their numbers."""

    def renamed(where: str) -> str:
        return RETRIEVER_INDEX.sub(
            lambda place: f"retrievers[{names[int(place[1])]!r}]", where
        ).removeprefix(NO_FILE_PREFIX)

    return InputError(
        [
            one._replace(where=renamed(one.where), remedy=remedy_as_python(one.remedy))
            for one in error.problems
        ]
    )


def remedy_as_python(remedy: str) -> str:
    """The fix in terms of Python arguments.

    >>> remedy_as_python('say which: columns = { grade = "stars" } (--columns grade=stars)')
    'say which: columns={"grade": "stars"}'
    >>> remedy_as_python('set dangling = "drop" under [relevance] (--dangling drop)')
    'set relevance={"dangling": "drop"}'
    """
    plain = re.sub(r" \(--[\w-]+ ?(?:'[^']*'|[^()'])*\)", "", remedy)
    plain = re.sub(r'columns = \{ (\w+) = ("[^"]*") \}', r'columns={"\1": \2}', plain)
    plain = re.sub(r'(\w+) = ("[^"]*"|\w+) under \[(\w+)\]', r'\3={"\1": \2}', plain)
    return re.sub(r"(\w+) = (?=[\"\[{…])", r"\1=", plain)


def _dataset(
    documents: Any, queries: Any, qrels: Any, columns: dict[str, str]
) -> dict[str, Any]:
    """The data set's table; a single path as in a file."""
    named = {"columns": columns} if columns else {}
    if queries is None and qrels is None and isinstance(documents, str | Path):
        return {"path": str(documents), **named}
    opened = source_in_memory(documents, queries, qrels)
    return {
        "path": NamedObject(f"{OBJECT_PREFIX}documents and queries in memory", opened),
        **named,
    }
