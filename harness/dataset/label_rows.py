"""Rows to labels.

The same query labelled by several people, as ordered lists, is merged by one rule, and each list is kept. A model's
list is merged with no person's: where people listed a query, theirs count alone. A document's place is the sum of its
places in the lists, a list that does not name it counting one place beyond the tenth, or beyond the longest list; ties
are ordered by the better single place, then by id. At most ten are kept, or as many as the longest list has.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.dataset.cell_paths import read_texts
from harness.dataset.columns import declaration, not_labels_remedy
from harness.dataset.label_lists import read_label_list, split_cell
from harness.dataset.labels import Labels
from harness.dataset.placed_row import PlacedRow
from harness.dataset.source import PlacedLabels, SourceLocation
from harness.dataset.usual_names import CLICKS_COLUMN, normalised_name
from harness.dataset.written_values import (
    GRADE_REMEDY,
    parse_cell,
    parse_grade,
    quoted_value,
)
from retrievers.ids import document_id

HOP_PATTERN = re.compile(r"^\s*<\d+-hop>\s*")
"""Stands before each context of Ragas's questions that need several."""


GatheredLabels = tuple[SourceLocation, dict[str, int], "array[int]"]
"""Labels of one query, one per row: the place of the first, grades by document, and the line of each."""


def read_labels(
    lines: Iterable[PlacedRow], queries: Mapping[str, str] | None = None
) -> Iterator[PlacedLabels]:
    """Labels in any of three shapes: a row a judgment with a grade, a row a relevant document, or a list a query.

    A list is best first, a list of lists are groups of alternatives, an object holds grades; in one cell of text it is
    JSON, or ids with `|`, `;`, line feeds or commas between. A pair on several rows without a grade is
    counted once, and clicks on it are added up.

    Args:
        lines: of the labels, or of queries that carry their labels.
        queries: text -> id, where the rows have no column for a query's id.
    """
    gathered: dict[str, GatheredLabels] = {}
    listed, any_quoted = dict[str, SourceLocation](), False
    lacking: PlacedRow | None = None
    for line in lines:
        query = _query_of(line, queries)
        if query is None:
            continue
        quoted = line.name("contexts") is not None
        named, relevant = line.value("label_document"), line.value("relevant")
        lists = (
            cell
            for cell in map(parse_cell, (named, relevant))
            if isinstance(cell, list)
        )
        objects = next(
            (cell for cell in lists if any(isinstance(one, Mapping) for one in cell)),
            None,
        )
        if named is None and line.name("grade"):
            named = relevant
        any_quoted |= quoted
        if objects is None and (named is not None or quoted):
            into = gathered.setdefault(query, (line.place, {}, array("I")))
            _gather(line, named, into, query, named_query=queries is None)
        elif objects is None and line.name("relevant") is None:
            lacking = (
                lacking or line
            )  # a query without labels may lack the column where others have lists
        elif query in listed:
            line.add_problem(
                f"query {query!r} has labels on two rows", f"also {listed[query]}"
            )
        else:
            labels = read_label_list(objects or relevant, line.problems.names_document)
            listed[query] = line.place
            if isinstance(labels, Labels):
                yield line.place, query, labels
            else:
                line.add_problem(*labels)
    if lacking is not None and not listed:
        _refuse_unnamed(lacking)
    for query, (place, grades, numbers) in gathered.items():
        yield (
            place._replace(lines=numbers),
            query,
            Labels(grades=grades, quoted=any_quoted),
        )


def _gather(
    line: PlacedRow, named: Any, into: GatheredLabels, query: str, *, named_query: bool
) -> None:
    """Take in the judgments of one row.

    A document that comes again is counted if no column grades it, its clicks are added up, and else it is a problem.
    """
    _, grades, numbers = into
    graded = line.name("grade")
    for document, grade in _graded(line, named):
        if document not in grades:
            grades[document] = grade
            numbers.append(line.place.line or 0)
        elif not graded:
            line.problems.note("repeated-label", f"{query} {document}")
        elif normalised_name(graded) == CLICKS_COLUMN:
            grades[document] += grade
        else:
            who = f"query {query!r}" if named_query else "the query"
            line.add_problem(
                f"{who} and document {document!r} are judged twice",
                "keep one of the two",
            )


def _query_of(line: PlacedRow, queries: Mapping[str, str] | None) -> str | None:
    if queries is not None:
        return queries.get(
            str(line.value("query"))
        )  # what has no text was told with the queries
    named = line.name("label_query") or "label_query" in line.columns.declared
    return line.id("label_query" if named else "query_id")


def _graded(line: PlacedRow, named: Any) -> Iterator[tuple[str, int]]:
    """The documents of a row, by id or by passage, with their grades: one for each, or one for all, else 1."""
    if named is None:
        passages = read_texts(
            line.value("contexts"),
            line.name("contexts") or "",
            line.place,
            line.problems,
        )
        documents: list[str | None] = [HOP_PATTERN.sub("", text) for text in passages]
    else:
        held = (
            split_cell(named, line.problems.names_document)
            if isinstance(named, str)
            else named
        )
        documents = [
            document_id(one) for one in (held if isinstance(held, list) else [held])
        ]
        if None in documents or not documents:
            line.add_problem(
                f"the document's id is {quoted_value(named)}", "an id is text"
            )
            documents = []
    written = 1 if line.name("grade") is None else line.value("grade")
    several = (
        written
        if isinstance(written, list) and len(written) == len(documents)
        else [written] * len(documents)
    )
    grades = list(map(parse_grade, several))
    if None in grades:
        line.add_problem(
            f"grade {quoted_value(written)} is not a whole number", GRADE_REMEDY
        )
    else:
        yield from (
            (str(doc), grade or 0) for doc, grade in zip(documents, grades, strict=True)
        )


def _refuse_unnamed(line: PlacedRow) -> None:
    """Complain that no column names documents."""
    grades = line.name("grade")
    if grades is None or line.name("label_query") is not None:
        line.add_problem(*line.columns.missing_column("label_document", line.row))
    else:
        what = f"{grades!r} could hold grades, and no column names the documents"
        line.add_problem(
            what,
            f"say which: {declaration('label_document')}; {not_labels_remedy(grades)}",
        )
