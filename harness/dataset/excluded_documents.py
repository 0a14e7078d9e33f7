"""Documents left out of one query's ranking.

`read_excluded` reads a cell while the corpus is unknown, so that a text with separators
stays whole; `match_excluded` splits it and finds the ids.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import Any

from harness.dataset.check_corpus import CheckedDocuments
from harness.dataset.labels import NO_LABELS, Labels
from harness.dataset.read_problems import ReadProblems
from harness.dataset.source import SourceLocation
from harness.dataset.split_cell import split_cell
from harness.dataset.written_values import parse_cell, quoted_value
from harness.english import first_names
from retrievers.ids import document_id
from retrievers.types import Query

NOTHING_WORDS = ("n/a", "na", "none", "null", "nan", "-")
"""Words in a cell, or alone in a list, that mean: no document is left out."""
MAX_SHOWN_QUERY_LENGTH = 60
"""Characters of a query that a message shows."""
MAX_SHOWN_DOCUMENTS = 3
"""Documents that a message names as examples."""


def read_excluded(
    cell: Any, location: SourceLocation, problems: ReadProblems
) -> tuple[str, ...]:
    """Return the documents that a cell leaves out, as they are written.

    >>> read_excluded('["d1", 7]', SourceLocation("q"), ReadProblems())
    ('d1', '7')
    >>> read_excluded("d1; d2", SourceLocation("q"), ReadProblems())
    ('d1; d2',)
    """
    parsed = parse_cell(cell)
    if parsed is None:
        return ()
    elements: list[object] = [parsed]
    if isinstance(parsed, list | tuple | Set):
        elements = [*parsed]
    ids = [document_id(element) for element in elements]
    if None in ids:
        problem = f"documents to leave out cannot be read: {quoted_value(cell)}"
        problems.add(location, problem, "a list of ids")
        return ()
    return tuple(map(str, ids))


def match_excluded(
    queries: Mapping[str, Query],
    labels: Mapping[str, Labels],
    documents: CheckedDocuments,
    problems: ReadProblems,
    *,
    drop: bool,
) -> dict[str, Query]:
    """Return the queries with the ids of the documents that they leave out.

    Args:
        queries: by id, with these documents as they are written.
        labels: by query; a document that is left out cannot be relevant.
        documents: the ids of the corpus.
        problems: takes the problem of documents that do not exist, or are relevant.
        drop: whether unknown documents are noted, not refused.
    """
    matched = dict(queries)
    if not documents.ids:
        return matched
    groups = documents.documents_by_value.values()
    same_value_by_first = {group[0]: group for group in groups}
    for query in queries.values():
        if not query.excluded:
            continue
        names = _split(query.excluded, problems)
        matches = documents.match(names)
        unknown = [name for name in names if name not in matches]
        if unknown and not _says_nothing(names):
            _add_unknown(query, unknown, documents, problems, drop=drop)
        alike: set[str] = set()  # if labels name a field, all documents of its value
        for match in matches.values():
            first_id = match.document
            alike.update(same_value_by_first.get(first_id, [first_id]))
        excluded = tuple(sorted(alike))
        relevant = labels.get(query.id, NO_LABELS).relevant
        both = [document for document in relevant if document in excluded]
        if both:
            problem = (
                f"{_shown(query)} leaves out {both[0]!r}, which is relevant for it"
            )
            problems.add("exclude", problem, "remove it from one of the two")
        matched[query.id] = replace(query, excluded=excluded)
    return matched


def _split(written: Iterable[str], problems: ReadProblems) -> list[str]:
    """Return the ids in some texts, each of which may list several."""
    ids: dict[str, None] = {}
    for text in written:
        parts = split_cell(text, problems.names_document)
        ids |= dict.fromkeys(map(str, parts if isinstance(parts, list) else [parts]))
    return list(ids)


def _says_nothing(names: list[str]) -> bool:
    return len(names) == 1 and names[0].strip().casefold() in NOTHING_WORDS


def _add_unknown(
    query: Query,
    unknown: list[str],
    documents: CheckedDocuments,
    problems: ReadProblems,
    *,
    drop: bool,
) -> None:
    if drop:
        for name in unknown:
            problems.note("dangling-exclusion", f"{query.id} {name}")
        return
    examples = first_names([*map(repr, unknown)], MAX_SHOWN_DOCUMENTS)
    problem = f"{_shown(query)} leaves out {examples}, which does not exist"
    problems.add("exclude", problem, documents.nearest_remedy(unknown[0]))


def _shown(query: Query) -> str:
    return f"query {query.text[:MAX_SHOWN_QUERY_LENGTH]!r}"
