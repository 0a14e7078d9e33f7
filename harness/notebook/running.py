"""Runs experiments from Python: from files, or from data and retrievers in memory."""

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness import pipeline, records
from harness.console.progress import progress_shown
from harness.experiment import NAME, Experiment, load_sets
from harness.experiment.option_tables import walk
from harness.measures import parse
from harness.notebook.in_memory import source_of
from harness.notebook.notebook_results import BAD_NAME, NotebookResults
from harness.running.forecast import Options
from retrievers import encoder_class, retriever_kinds
from retrievers.errors import InputError, Problem
from retrievers.options import encoder_table
from retrievers.types import Retriever
from retrievers.user_objects import OBJECT, NamedObject

WHERE = re.compile(r"retrievers\[(\d+)\]")
"""The experiment's name of a retriever's table."""
BUILT = "experiment: "
"""The start of messages about an experiment without a file."""


def run(
    experiment: str | Path | Mapping[str, Any] | Experiment,
    options: Options = Options(),  # noqa: B008 - immutable
    *,
    progress: bool | None = None,
) -> NotebookResults:
    """Run an experiment: check, index, replay, score, compare, and write the results folder.

    Args:
        experiment: its file; or its tables as a dict, or an `Experiment`.
        options: the folder of results, and what to run; your own `watch` replaces the progress display.
        progress: whether it is shown on standard error; by default in a terminal or a notebook.

    Returns:
        The results, read back from their folder.

    Raises:
        InputError: a problem with the experiment, its data or its environment; nothing was embedded.
        BackendError: every retriever failed; earlier results are unchanged.

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
    """Run an experiment on each of its data sets, as `harness run` does, and write the common page.

    Args:
        experiment: its file; or its tables as a dict.
        options: as for `run`.
        progress: as for `run`.

    Returns:
        The results of each data set by its name; `data_sets.csv` and the common page are in the parent folder.

    Raises:
        InputError: as for `run`; all sets are checked before anything is embedded.
        BackendError: every retriever failed on a set; earlier sets are kept.

    >>> tables = {"name": "two", "retrievers": [{"name": "bm25", "kind": "bm25"}], "primary": "RR", "measures": ["RR"]}
    >>> sets = ["datasets/survey-templates-en", "datasets/survey-templates-ja"]
    >>> with tempfile.TemporaryDirectory() as place:
    ...     list(run_sets({**tables, "dataset": sets}, Options(place), progress=False))
    ['survey-templates-en', 'survey-templates-ja']
    """
    with _watched(options, progress) as watched:
        return {
            one.manifest.name: NotebookResults.of(one)
            for one in pipeline.run_sets(load_sets(experiment), watched)
        }


@contextmanager
def _watched(options: Options, progress: bool | None) -> Iterator[Options]:
    """The options with a watcher: the given one, or the progress display."""
    if options.watch is not Options().watch:
        yield options
        return
    with progress_shown(progress) as watch:
        yield options._replace(watch=watch)


def open_results(folder: str | Path) -> NotebookResults:
    """Read a results folder.

    Raises:
        InputError: it is not a results folder, or a part of it is missing or cannot be read.

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
    others = [one for one in beside if str(parse(one)) != str(parse(primary))]
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
        "retrievers": tables_of(retrievers),
        **more,
    }
    place = tempfile.mkdtemp(prefix="harness-")
    try:
        with progress_shown(progress) as watch:
            return NotebookResults.of(
                pipeline.run(tables, Options(place, watch=watch)), place
            )
    except BaseException as error:
        shutil.rmtree(place, ignore_errors=True)
        if isinstance(error, InputError):
            raise _by_name(error, list(retrievers)) from None
        raise


def _by_name(error: InputError, names: Sequence[str]) -> InputError:
    """The same problems with the names of arguments, and of retrievers instead of their numbers."""

    def renamed(where: str) -> str:
        return WHERE.sub(
            lambda place: f"retrievers[{names[int(place[1])]!r}]", where
        ).removeprefix(BUILT)

    return InputError(
        [
            one._replace(where=renamed(one.where), remedy=in_python(one.remedy))
            for one in error.problems
        ]
    )


def in_python(remedy: str) -> str:
    """The fix in terms of Python arguments.

    >>> in_python('say which: columns = { grade = "stars" } (--columns grade=stars)')
    'say which: columns={"grade": "stars"}'
    >>> in_python('set dangling = "drop" under [relevance] (--dangling drop)')
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
    opened = source_of(documents, queries, qrels)
    return {
        "path": NamedObject(f"{OBJECT}documents and queries in memory", opened),
        **named,
    }


RetrieverTable = dict[str, Any]
"""A table of [[retrievers]]."""


def tables_of(retrievers: Mapping[str, Any]) -> list[RetrieverTable]:
    """Return the table of each retriever; a part that is one of the retrievers is given by its name.

    Args:
        retrievers: by name.

    Raises:
        InputError: a name is invalid, or a value is not a retriever.

    >>> from retrievers import BM25, Dense, Fused
    >>> words = BM25()
    >>> tables_of({"words": words, "both": Fused([words, Dense("minilm")])})[1]["of"]
    ['words', {'kind': 'dense', 'encoder': {'kind': 'sentence-transformers', 'model': 'minilm'}}]
    """
    tables = {name: _table(value, name) for name, value in retrievers.items()}
    called: dict[int, str] = {}
    for name, table in tables.items():
        for number, held in enumerate(
            one for _, one in walk(table) if isinstance(one, NamedObject)
        ):
            called.setdefault(
                id(held.value), name if not number else f"{name}-{number + 1}"
            )
    tables = {name: named(table, called) for name, table in tables.items()}
    return [
        {"name": name, **_named_parts(table, tables)} for name, table in tables.items()
    ]


def _named_parts(
    table: RetrieverTable, tables: Mapping[str, RetrieverTable]
) -> RetrieverTable:
    """A table in which parts that are retrievers of the experiment are names."""

    def part(one: Any) -> Any:
        if not isinstance(one, Mapping):
            return one
        return next(
            (name for name, other in tables.items() if other == one), None
        ) or _named_parts(dict(one), tables)

    if "of" not in table:
        return table
    of = table["of"]
    return {**table, "of": list(map(part, of)) if isinstance(of, list) else part(of)}


def _table(value: Any, name: Any) -> RetrieverTable:
    if not isinstance(name, str) or not re.fullmatch(NAME, name):
        raise InputError(
            Problem(f"retrievers[{name!r}]", BAD_NAME, "choose another name")
        )
    if isinstance(value, Retriever):
        return value.written()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str) and value in retriever_kinds():
        return {"kind": value}
    try:
        encoder = encoder_table(value)
    except InputError:
        what = f"an object of type {type(value).__name__} is not a retriever"
        remedy = "a name, an object with encode, a function of texts; retrievers.Function for a function that searches"
        raise InputError(Problem(f"retrievers[{name!r}]", what, remedy)) from None
    form = getattr(encoder_class(encoder["kind"]), "form", "dense")
    return {"kind": form, "encoder": encoder}


def named(value: Any, names: Mapping[int, str]) -> Any:
    """A table whose objects are named after the first retriever that has them."""
    if isinstance(value, NamedObject):
        return NamedObject.of(value.value, names[id(value.value)])
    if isinstance(value, Mapping):
        return {key: named(inner, names) for key, inner in value.items()}
    return (
        [named(one, names) for one in value]
        if isinstance(value, list | tuple)
        else value
    )
