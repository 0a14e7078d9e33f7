"""A data set to an experiment file."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.dataset import Dataset, DatasetReference, load_dataset, parse_reference
from harness.english import count_of
from harness.init import spans
from harness.init.find_files import find_files
from harness.init.spans_folder import spans_to_folder
from harness.init.template import experiment_text, labelled_queries_text
from harness.wording.reading import column_lines, reading_line
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import explain_write_errors
from retrievers.texts.languages import load_language_model

LANGUAGE_SAMPLE = 200
"""Documents that are read to tell the language."""
FEW_QUERIES = 25
"""Queries below which most differences stay undecided."""


@dataclass(frozen=True, slots=True)
class NewExperiment:
    """An experiment file that was just written."""

    path: Path
    dataset: Dataset
    repeated_files: Sequence[str] = ()
    """Files of labels ignored, since their queries are there already."""
    dropped_labels: int = 0
    """Labels of what is not there, which the experiment leaves out."""

    def lines(self) -> Iterator[str]:
        """What was found, and what to do next."""
        dataset = self.dataset
        documents, queries = (
            count_of(dataset.document_count, "document"),
            labelled_queries_text(dataset),
        )
        yield f"{dataset.path}: {dataset.format}, {documents}, {queries}"
        if unread := reading_line(dataset):
            yield unread
        yield from column_lines(dataset)
        repeats, blank = (
            len(dataset.data_quality.get(kind, ()))
            for kind in ("repeated-row", "blank-query")
        )
        if repeats or blank:
            yield f"rows of queries that are not used: {repeats:,} that repeat an earlier one, {blank:,} blank"
        if self.dropped_labels:
            what = f"{count_of(self.dropped_labels, 'label')} of what is not there: left out"
            yield f'{what} by dangling = "drop"; without it, each is an error'
        if found := ", ".join(map(repr, dataset.guessed_columns.values())):
            yield f"column {found} is read as the labels, since its values name documents; --columns says otherwise"
        if self.repeated_files:
            yield f"ignored, the same queries again: {', '.join(self.repeated_files)}"
        if dataset.labels and len(dataset.queries) < FEW_QUERIES:
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
    given = given if isinstance(given, DatasetReference) else parse_reference(given)
    folder = given.folder if not given.scheme else Path(given.name)
    own = folder.stem if given.scheme or folder.is_file() else folder.resolve().name
    name = _name_of(output.stem if output else own)
    path = output or Path(f"{name}.toml")
    production, turns = None, False
    if spans.holds_spans(given):
        given, production, turns = spans_to_folder(given, path.with_suffix(""))
    reference, repeated = find_files(given)
    dataset, dropped = _loaded(reference)
    reference = replace(
        reference, columns={**reference.columns, **dataset.guessed_columns}
    )
    with explain_write_errors(path, "remove it, or name another with --output"):
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
        dataset = load_dataset(
            reference, drop_dangling=True, sample_size=LANGUAGE_SAMPLE
        )
        dropped = sum(
            len(dataset.data_quality.get(f"dangling-{kind}", ()))
            for kind in ("document", "query")
        )
        return dataset, dropped
    except InputError:
        if reference.scheme:  # a hub that is out of reach is waited for once
            raise
    return load_dataset(reference), 0  # which tells all that is wrong
