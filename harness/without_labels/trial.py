"""A folder of documents to rankings.

With real questions people judge what is found (`JudgedTrial`); without any, questions
are made from titles, and nothing is claimed (`TitlesTrial`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from harness.build.build import BuiltExperiment, build
from harness.dataset import Dataset, load_dataset
from harness.dataset.choose_reader import find_data_folders
from harness.dataset.listing import list_files
from harness.dataset.load import load_documents
from harness.dataset.readers.text_documents import TEXT_SUFFIXES, list_documents
from harness.experiment import LoadedExperiment, load
from harness.init.template import NamedModel
from harness.init.write_experiment import LANGUAGE_SAMPLE
from harness.labels.merge import MergedJudgments
from harness.pipeline import run_built
from harness.records import Results
from harness.running.options import RunOptions
from harness.without_labels.experiment import (
    refuse_other_documents,
    restored_on_error,
    write_trial_experiment,
)
from harness.without_labels.judging import (
    JudgingState,
    take_labels,
    write_trial_page,
)
from harness.without_labels.layout import (
    TryFolder,
    check_file,
    find_documents,
    find_questions,
)
from harness.without_labels.questions import (
    add_questions,
    have_labels,
    read_questions,
    write_questions,
)
from harness.without_labels.side_by_side import (
    QuestionRankings,
    rankings_by_question,
    write_rankings_page,
)
from harness.without_labels.titles import write_untitled_corpus
from harness.wording.reading import reading_sentence
from retrievers.errors import InputError, Problem
from retrievers.texts.languages import preload_language_model
from retrievers.types import Query

MIN_DOCUMENTS = 2
"""With one document there is nothing to rank."""


@dataclass(frozen=True, slots=True)
class TrialInputs:
    """The arguments of the user."""

    questions: Sequence[Query] = ()
    models: Sequence[NamedModel] = ()
    labels: Path | None = None
    """A file that the judging page exported."""


class JudgedTrial(NamedTuple):
    """Rankings for real questions, with the page for judging."""

    folder: TryFolder
    dataset: Dataset
    questions: int
    """How many questions there are."""
    questions_from: Path | None
    """The file in the documents' folder from which questions came; else None."""
    unused_labels: bool
    """Whether that file has labels, which a trial does not use."""
    merged: MergedJudgments | None
    """The labels that were taken in; None if there were none."""
    results: Results
    judging: JudgingState


class TitlesTrial(NamedTuple):
    """Rankings for questions made from titles, from which nothing is claimed."""

    folder: TryFolder
    dataset: Dataset
    results: Results
    rankings: Sequence[QuestionRankings]
    """The questions whose rankings differ most first."""


def run_trial(
    folder: TryFolder, inputs: TrialInputs, options: RunOptions, next_command: str
) -> JudgedTrial | TitlesTrial:
    """Rank the documents of a folder, and write what to look at.

    Args:
        folder: where documents and results are.
        inputs: what the user gave.
        options: of the run; its results go to the trial's folder.
        next_command: what to type when everything is judged.

    Raises:
        InputError: there are fewer than two documents, the trial is one of other
            documents, or the input has a problem.
    """
    check_folder(folder.documents)
    refuse_other_documents(folder)
    preload_language_model()  # on another core, while the questions are read
    options = options._replace(results=folder.results)
    questions = _gather_questions(folder, inputs)
    if inputs.labels is not None and not questions.stored:
        problem = "has no questions yet, so that no labels belong to it"
        command = f"harness try {quote(folder.documents.as_posix())}"
        remedy = f'{command} -q "a question"'
        raise InputError(Problem(str(folder.path), problem, remedy))
    if inputs.labels is not None:
        check_file(inputs.labels, "the file of labels that the page exported")
    if not questions.all_questions:
        return _run_on_titles(folder, inputs, options)
    # Labels are taken in only for questions that are stored.
    if len(questions.all_questions) > questions.stored:
        write_questions(folder.questions_file, questions.all_questions)
    merged = None
    if inputs.labels is not None:
        merged = take_labels(folder, inputs.labels)
    with restored_on_error(folder.experiment):
        loaded, built = _build_trial(folder, inputs)
        results = run_built(loaded, built, options)
    source_file = questions.source_file
    return JudgedTrial(
        folder,
        built.dataset,
        questions=len(questions.all_questions),
        questions_from=source_file,
        unused_labels=source_file is not None and have_labels(source_file),
        merged=merged,
        results=results,
        judging=write_trial_page(folder, built.dataset, results, next_command),
    )


class _TrialQuestions(NamedTuple):
    """The questions of a trial, stored ones first."""

    all_questions: Sequence[Query]
    stored: int
    """How many of them an earlier command stored."""
    source_file: Path | None
    """The file in the documents' folder that was read, since none were given."""


def _gather_questions(folder: TryFolder, inputs: TrialInputs) -> _TrialQuestions:
    """Return the stored questions and the new ones.

    A file in the documents' folder is read only if there are neither.
    """
    stored: list[Query] = []
    # Without questions the file is there, and empty: see `_run_on_titles`.
    if folder.questions_file.is_file() and folder.questions_file.stat().st_size:
        stored = read_questions(folder.questions_file)
    source_file = None
    new = list(inputs.questions)
    if not new and not stored:
        source_file = find_questions(folder.documents)
        new = [] if source_file is None else read_questions(source_file)
    return _TrialQuestions(add_questions(stored, new), len(stored), source_file)


def _build_trial(
    folder: TryFolder, inputs: TrialInputs
) -> tuple[LoadedExperiment, BuiltExperiment]:
    """Return the experiment, written first if there is none, with the models added."""
    reference = folder.reference
    # An experiment that stays as it is needs no sample.
    if not folder.experiment.is_file() or inputs.models:
        sampled = load_dataset(reference, sample_size=LANGUAGE_SAMPLE)
        write_trial_experiment(folder.experiment, sampled, reference, inputs.models)
    loaded = load(folder.experiment)
    built = build(loaded)
    refuse_single_document(built.dataset.document_count, folder.documents)
    return loaded, built


def check_folder(documents: Path) -> None:
    """Refuse a folder with too few documents before anything is written.

    A table of documents is counted when it is read; a text file is one document.

    Raises:
        InputError: there is no document, or one.
    """
    if documents.is_file() and documents.suffix.lower() in TEXT_SUFFIXES:
        refuse_single_document(1, documents)
    if not documents.is_dir() or find_documents(documents) != documents:
        return
    files = list_files(documents, gitignore=True)
    ids, unread_files = list_documents(files)
    if not ids:
        remedy = reading_sentence(0, unread_files)
        remedy = remedy or "put files such as *.md, *.txt or *.html there"
        data_folders = find_data_folders(documents, files)
        if data_folders:
            remedy = f"{documents / data_folders[0]} may be a data set: name that"
        raise InputError(Problem(str(documents), "holds no documents", remedy))
    refuse_single_document(len(ids), documents)


def refuse_single_document(count: int, documents: Path) -> None:
    """Refuse one document; no document at all is refused when the data are read.

    Raises:
        InputError: there are fewer than two.
    """
    if count < MIN_DOCUMENTS:
        problem = "has one document: there is nothing to rank"
        raise InputError(Problem(str(documents), problem, "name a folder with more"))


def _run_on_titles(
    folder: TryFolder, inputs: TrialInputs, options: RunOptions
) -> TitlesTrial:
    """Rank the documents without their titles for questions: the titles.

    An experiment that is there stays, with the models added.
    """
    # The reference to the documents names this file, so that it has to exist.
    if not folder.questions_file.is_file():
        write_questions(folder.questions_file, [])
    dataset = load_documents(folder.reference)
    refuse_single_document(dataset.document_count, folder.documents)
    corpus = write_untitled_corpus(folder, dataset)
    sampled = load_dataset(corpus.reference, sample_size=LANGUAGE_SAMPLE)
    with restored_on_error(folder.titles_experiment):
        write_trial_experiment(
            folder.titles_experiment, sampled, corpus.reference, inputs.models
        )
        loaded = load(folder.titles_experiment)
        results = run_built(loaded, build(loaded), options)
    rankings = rankings_by_question(results)
    write_rankings_page(folder, results, rankings, corpus.titles)
    return TitlesTrial(folder, dataset, results, rankings)
