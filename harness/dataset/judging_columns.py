"""Unused columns beside documents that may judge or order them."""

from collections.abc import Iterator, Sequence
from numbers import Real
from typing import Any

from harness.dataset.usual_names import (
    SCORE_NAME,
    judges_documents,
    normalised_name,
    words_of_name,
)
from harness.dataset.written_values import (
    NEGATIVE_FLAGS,
    NEGATIVE_VERDICTS,
    parse_cell,
    parse_flag,
    parse_grade,
)

MAX_GUESSED_GRADE = 10
"""Whole numbers from 0 to this one, at most, may be grades."""
MAX_SHOWN_VERDICTS = 3
"""Verdicts that a message names as examples."""
ORDER_NAMES = frozenset(
    (
        "rank",
        "position",
        "documentposition",
        "documentrank",
        "distance",
        "similarity",
        "documentscore",
        "retrievalscore",
        "similarityscore",
        "bm25score",
        "system",
        "systemname",
        "retriever",
        "retrievername",
        "engine",
        "run",
        "runid",
        "runname",
    )
)
"""Names of columns of what orders the documents that a system returned."""
RANK_WORDS = frozenset(("rank", "ranking", "distance"))
"""Words in names of what is best if it is low; of `SCORE_WORDS`, if it is high."""
SCORE_WORDS = frozenset(
    (
        "similarity",
        "cosine",
        "score",
        "bm25",
        "logit",
        "confidence",
        "probability",
        "prob",
    )
)
ORDER_WORDS = RANK_WORDS | SCORE_WORDS | {"position"}
"""Words in the name of a column of numbers that a system computed."""
VERDICT_NAMES = frozenset(
    (
        "verdict",
        "vote",
        "feedback",
        "thumbs",
        "thumb",
        "annotation",
        "assessment",
        "approved",
        "accepted",
        "ok",
        "match",
        "hit",
        "answers",
        "supports",
    )
)
"""Words in the name of a column of verdicts, besides those that judge."""


def guessed_grades(column: str, cells: Sequence[Any], *, is_label: bool) -> str:
    """Return the values of a column, in brackets, that may be grades; else "".

    They are small whole numbers from 0 or -1 on, or words with a no among them.

    Args:
        column: its name.
        cells: in rows of documents.
        is_label: whether the rows are of a table of labels, where any flag judges.

    >>> guessed_grades("usefulness", [2, 0, 1], is_label=False)
    ' (0, 1, 2)'
    >>> guessed_grades("is_relevant", ["True", "False"], is_label=False)
    ' (False, True)'
    >>> guessed_grades("typo", ["yes", "no"], is_label=False)
    ''
    >>> guessed_grades("gold_answer", ["yes", "no"], is_label=False)
    ''
    """
    numbers = _grades_in(list(_single_cells(column, cells)))
    if numbers:
        return f" ({', '.join(map(str, numbers))})"
    verdicts = sorted({str(cell).strip() for cell in cells})
    if len(verdicts) < 2 or not _says_no(column, verdicts, cells, is_label=is_label):
        return ""
    return f" ({', '.join(verdicts[:MAX_SHOWN_VERDICTS])})"


def _single_cells(column: str, cells: Sequence[Any]) -> Iterator[Any]:
    """Yield the cells, and the elements of lists if the name says that they judge."""
    for cell in cells:
        parsed = parse_cell(cell)
        if isinstance(parsed, list) and judges_documents(column):
            yield from parsed
        else:
            yield cell


def _grades_in(cells: Sequence[Any]) -> list[int]:
    """Return the different numbers in a column; empty if they cannot be grades."""
    if any(isinstance(cell, list | dict) for cell in cells):
        return []
    grades = {parse_grade(cell) for cell in cells}
    numbers = sorted(grade for grade in grades if grade is not None)
    if len(numbers) < 2 or len(numbers) < len(grades):
        return []
    # Without a value for "not relevant" they may be ranks or numbers of pages.
    if numbers[0] not in (-1, 0) or numbers[-1] > MAX_GUESSED_GRADE:
        return []
    return numbers


def _says_no(
    column: str, verdicts: Sequence[str], cells: Sequence[Any], *, is_label: bool
) -> bool:
    """Whether one of the verdicts says that a document is not relevant."""
    folded = {verdict.casefold() for verdict in verdicts}
    if not folded.isdisjoint(NEGATIVE_VERDICTS):
        return True
    if is_label and all(parse_flag(cell) is not None for cell in cells):
        return True
    words = words_of_name(column)
    is_judging = judges_documents(column) or bool(words & VERDICT_NAMES)
    is_answer = "answer" in words  # to a question of yes or no
    return is_judging and not is_answer and not folded.isdisjoint(NEGATIVE_FLAGS)


def orders_documents(column: str, cells: Sequence[Any]) -> bool:
    """Whether a column has what orders the documents that a system returned.

    >>> orders_documents("rank", []), orders_documents("cosine_similarity", [0.5])
    (True, True)
    >>> orders_documents("score_by", ["Ann"])
    False
    """
    column_name = normalised_name(column)
    if column_name in ORDER_NAMES:
        return True
    if column_name == SCORE_NAME or ORDER_WORDS.isdisjoint(words_of_name(column)):
        return False
    return bool(cells) and all(map(_is_number, cells))


def _is_number(cell: Any) -> bool:
    if isinstance(cell, str):
        try:
            float(cell)
        except ValueError:
            return False
        return True
    return isinstance(cell, Real) and not isinstance(cell, bool)
