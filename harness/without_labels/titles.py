"""Questions made from titles."""

import json
from collections import Counter
from shlex import quote
from typing import NamedTuple

from harness.dataset import Dataset, DatasetReference
from harness.labels.pool import shuffle_key
from harness.without_labels.layout import QUESTIONS_FILE, TryFolder
from harness.without_labels.questions import write_questions
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import explain_write_errors, open_text_file
from retrievers.types import Document, Query

MADE_QUESTIONS = 20
"""Questions made from titles: enough to show where retrievers differ."""
MIN_TITLE_WORDS = 2
"""A title of one word, such as "Introduction", asks nothing."""
MAX_TITLE_WORDS = 20
"""A longer title is a passage, not a question."""
DOCUMENTS_FILE = "documents.jsonl"
HEADING_MARKS = "#=* \r\t"
"""Characters around a line that is a heading, which may belong to the title: C#."""
MADE_FIELD = "made"
"""The field of a query that says what it was made from."""


class DocumentTitle(NamedTuple):
    """The title of one document, "" if it has none."""

    document_id: str
    text: str


class TitledCorpus(NamedTuple):
    """The documents without titles as a data set, and their titles."""

    reference: DatasetReference
    titles: tuple[DocumentTitle, ...]


def write_untitled_corpus(folder: TryFolder, dataset: Dataset) -> TitledCorpus:
    """Write a corpus without titles, with questions made from up to twenty of them.

    A question that is a title would find its document by the title's own words.

    Raises:
        InputError: no document has a title that can be a question.
    """
    titles: list[DocumentTitle] = []
    temporary = folder.titles / f"{DOCUMENTS_FILE}.part"
    with explain_write_errors(temporary):
        folder.titles.mkdir(parents=True, exist_ok=True)
        with open_text_file(temporary, "w") as file:
            for document in dataset.documents():
                titles.append(DocumentTitle(document.id, document.title))
                row = {"id": document.id, "text": text_without_title(document)}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        temporary.replace(folder.titles / DOCUMENTS_FILE)
    chosen = _choose_titles(titles)
    if not chosen:
        problem = "no document has a title that could be a question"
        command = f"harness try {quote(folder.documents.as_posix())}"
        remedy = f'ask your own: {command} -q "…"'
        raise InputError(Problem(str(folder.documents), problem, remedy))
    questions = [
        Query(f"t{number}", title.text, {MADE_FIELD: "from a title"})
        for number, title in enumerate(chosen, 1)
    ]
    write_questions(folder.titles / QUESTIONS_FILE, questions)
    reference = DatasetReference(
        folder.titles,
        format="tables",
        documents=DOCUMENTS_FILE,
        queries=(QUESTIONS_FILE,),
    )
    return TitledCorpus(reference, tuple(titles))


def _choose_titles(titles: list[DocumentTitle]) -> list[DocumentTitle]:
    """Return up to twenty titles that can be questions, in the order of a hash.

    Each belongs to one document alone, and has a question's length.
    """
    occurrences = Counter(title.text.casefold() for title in titles)
    usable = [
        title
        for title in titles
        if occurrences[title.text.casefold()] == 1
        and MIN_TITLE_WORDS <= len(title.text.split()) <= MAX_TITLE_WORDS
    ]
    usable.sort(key=lambda title: shuffle_key(0, title.document_id))
    return usable[:MADE_QUESTIONS]


def text_without_title(document: Document) -> str:
    r"""Return the text without the line that is its title.

    >>> text_without_title(Document("a", "Annual leave", "# Annual leave\n25 days."))
    '25 days.'
    """
    lines = document.text.split("\n")
    title = document.title.strip(HEADING_MARKS)
    for number, line in enumerate(lines):
        if title and line.strip(HEADING_MARKS) == title:
            end = number + 1
            if end < len(lines) and _is_underline(lines[end]):
                end += 1
            del lines[number:end]
            break
    return "\n".join(lines).strip()


def _is_underline(line: str) -> bool:
    """Whether a line only marks the line above it as a heading."""
    characters = set(line.strip())
    return len(characters) == 1 and characters <= set("=-~^")
