"""The files of a trial.

`FOLDER-try/` in the working directory has the experiments, the questions with their
labels, the results, the page for judging.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from harness.dataset import DatasetReference
from harness.dataset.choose_reader import suggest_path
from harness.dataset.file import Files
from harness.dataset.judgment import JUDGMENTS_FILE
from harness.dataset.listing import list_files
from harness.dataset.query_tables import DOCUMENT_TABLE_STEMS
from harness.dataset.readers.dataset_folder import (
    QUERY_TABLE_STEMS,
    find_table,
    top_files,
)
from harness.dataset.rows import PLAIN_TEXT_SUFFIXES
from harness.dataset.try_folder import TRY_EXPERIMENTS, is_try_folder
from harness.init.write_experiment import valid_name
from retrievers.errors import InputError, Problem

TRY_SUFFIX = "-try"
QUESTIONS_FILE = "queries.jsonl"
"""The name that the readers of data sets expect."""


def check_file(path: Path, remedy: str) -> None:
    """Raise InputError if a file that the user names is not there, or is a folder."""
    if path.is_dir():
        raise InputError(Problem(str(path), "is a folder", remedy))
    if not path.is_file():
        raise InputError(Problem(str(path), "no such file", remedy))


@dataclass(frozen=True, slots=True)
class TryFolder:
    """Where the documents of a trial are, and where its own files are."""

    documents: Path
    """The folder, archive or table that the user named."""
    name: str
    """Name of the experiment: that of the documents' folder or file, made valid."""
    path: Path
    """The folder that the trial writes."""

    @property
    def experiment(self) -> Path:
        """The experiment over real questions."""
        return self.path / TRY_EXPERIMENTS[0]

    @property
    def titles_experiment(self) -> Path:
        """The experiment over questions made from titles."""
        return self.path / TRY_EXPERIMENTS[1]

    @property
    def titles(self) -> Path:
        """The data set for questions made from titles: the documents without them."""
        return self.path / "titles"

    @property
    def questions(self) -> Path:
        """The folder of the real questions, and of the labels of people."""
        return self.path / "questions"

    @property
    def questions_file(self) -> Path:
        """The real questions."""
        return self.questions / QUESTIONS_FILE

    @property
    def judgments(self) -> Path:
        """The labels."""
        return self.questions / JUDGMENTS_FILE

    @property
    def results(self) -> Path:
        """The folder of all results."""
        return self.path / "results"

    @property
    def judging_page(self) -> Path:
        """The page for people who judge."""
        return self.path / "judge.html"

    @property
    def rankings_page(self) -> Path:
        """The page of rankings side by side."""
        return self.path / "rankings.html"

    @property
    def reference(self) -> DatasetReference:
        """The data set: the user's documents, and the trial's questions."""
        return DatasetReference(
            self.questions,
            format="tables",
            documents=self._documents_from_questions(),
            queries=(QUESTIONS_FILE,),
            gitignore=True,
        )

    def _documents_from_questions(self) -> str:
        """Return the path of the documents, relative to the questions."""
        source = find_documents(self.documents)
        try:
            relative = os.path.relpath(source, self.questions)
        except ValueError:  # another drive of Windows
            return source.resolve().as_posix()
        return Path(relative).as_posix()


def try_folder(documents: Path) -> TryFolder:
    """Return where the trial of some documents is.

    Raises:
        InputError: the documents do not exist, or are a trial's own folder.
    """
    if not documents.exists():
        remedy = suggest_path(documents) or "name a folder of documents"
        noun = "file" if documents.suffix else "folder"
        raise InputError(Problem(str(documents), f"no such {noun}", remedy))
    if documents.is_dir() and is_try_folder(documents):
        remedy = "name the folder of the documents"
        problem = "was written by harness try; it holds no documents"
        raise InputError(Problem(str(documents), problem, remedy))
    name = documents.resolve().name if documents.is_dir() else documents.stem
    name = valid_name(name)
    return TryFolder(documents, name, Path(f"{name}{TRY_SUFFIX}"))


def find_documents(documents: Path) -> Path:
    """Return the table of documents in a folder; without one, what the user named."""
    table = find_table(_top_files(documents), DOCUMENT_TABLE_STEMS)
    return documents if table is None else table.path


def find_questions(documents: Path) -> Path | None:
    """Return the file of questions in the documents' folder; None without one."""
    table = find_table(_top_files(documents), QUERY_TABLE_STEMS, PLAIN_TEXT_SUFFIXES)
    return None if table is None else table.path


def _top_files(documents: Path) -> Files:
    """Return the files at the top of a folder; {} for an archive or a table."""
    if not documents.is_dir():
        return {}
    return top_files(list_files(documents, gitignore=True))
