"""The documents that labels mean."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.dataset.check_corpus import (
    DROP_REMEDY,
    MAX_COMPARED_IDS,
    CheckedDocuments,
    documents_with_text,
)
from harness.dataset.columns import declaration, not_labels_remedy
from harness.dataset.labels import Labels
from harness.dataset.read_problems import ReadProblems
from harness.dataset.source import PlacedLabels, Source, SourceLocation
from harness.dataset.usual_names import DOCUMENT_NAMING_KINDS, normalised_name
from harness.english import count_of, first_names
from retrievers.errors import nearest_word
from retrievers.ids import IdMatch, common_folder, normalise_text
from retrievers.types import Query

MAX_LOST_SHARE = 0.1
"""Share of the labels that may be lost, whatever takes them away."""
MIN_LABELS_OF_ONE_CAUSE = 3
"""Labels from which on one cause makes one problem."""
UnmatchedLabel = tuple[SourceLocation, str, str]
"""Place, query and document of a label that names no document."""


@dataclass(slots=True)
class MatchedLabels:
    """The labels of a data set with the ids of their documents."""

    labels: dict[str, Labels] = field(default_factory=dict)
    matched_by: Counter[str] = field(default_factory=Counter)
    """By what labels name their documents -> how many do."""
    unmatched: list[UnmatchedLabel] = field(default_factory=list)
    lost_by_cause: Counter[str] = field(default_factory=Counter)
    """What is wrong with labels that were taken away -> how many are."""


def match_labels(
    source: Source,
    seen: ReadProblems,
    documents: CheckedDocuments,
    queries: Mapping[str, Query],
    *,
    drop: bool,
) -> MatchedLabels:
    """Read the labels and find the documents that they name.

    Args:
        source: where they come from.
        seen: takes the problems, and what is counted.
        documents: what is known of the corpus.
        queries: by id.
        drop: count labels of what is not there instead of refusing them.
    """
    rows = list(source.labels(seen))
    found = MatchedLabels()
    guessed = [
        one
        for one in columns_read_as(seen, DOCUMENT_NAMING_KINDS[:2])
        if not normalised_name(one[1]).rstrip("s").endswith("id")
    ]
    matches = _matches(source, documents, rows, any_label=bool(guessed))
    strangers = [(place, query) for place, query, _ in rows if query not in queries]
    if not drop and queries:
        _refuse_absent_queries(strangers, len(rows), queries, seen)
    for place, query_id, given in rows:
        if query_id not in queries:
            seen.note("dangling-query", query_id)
            found.lost_by_cause["are of queries that do not exist"] += len(
                given.documents
            )
            continue
        if not queries[query_id].text.strip():
            who = (
                "a judged query"
                if has_unnamed_queries(seen, place)
                else f"judged query {query_id!r}"
            )
            seen.add(place, f"{who} is blank", "write its text, or remove its labels")
        found.labels[query_id] = _with_ids(place, query_id, given, matches, found, seen)
    if documents.ids and not drop:
        _refuse_absent(found, guessed, documents, seen)
    if documents.ids and queries:
        _refuse_losses(found, documents, seen, str(rows[0][0].file) if rows else "")
    return found


def _matches(
    source: Source,
    documents: CheckedDocuments,
    rows: Sequence[PlacedLabels],
    *,
    any_label: bool,
) -> dict[str, IdMatch]:
    """What labels name; passages and, if any label may be one, whole texts take a pass over the documents."""
    quoted = {doc: given.quoted for *_, given in rows for doc in given.documents}
    matches = documents.match(quoted)
    unknown = {
        doc: normalise_text(doc)
        for doc in quoted
        if doc not in matches and (any_label or quoted[doc])
    }
    wanted = {key for key in unknown.values() if key}
    if not wanted or documents.by_field:
        return matches
    whole = wanted - {key for doc, key in unknown.items() if quoted[doc]}
    holders = documents_with_text(
        wanted, (document for _, document in source.documents(ReadProblems())), whole
    )
    return matches | {
        doc: IdMatch(holders[key], "text")
        for doc, key in unknown.items()
        if key in holders
    }


def _with_ids(
    place: SourceLocation,
    query_id: str,
    given: Labels,
    matches: Mapping[str, IdMatch],
    found: MatchedLabels,
    seen: ReadProblems,
) -> Labels:
    """One query's labels under the ids of the documents; what names none is noted, and left out."""
    names, dangling = dict[str, str](), dict[str, int]()
    for position, doc in enumerate(given.documents):
        if doc in matches:
            names[doc] = matches[doc].document
            found.matched_by[matches[doc].matched_by] += 1
        else:
            dangling.setdefault(doc, position)
    for doc, position in dangling.items():
        if given.quoted:
            found.lost_by_cause["are passages that no document holds"] += 1
            seen.note("unmatched-context", f"{query_id}: {' '.join(doc.split())[:80]}")
            continue
        found.lost_by_cause["name no document"] += 1
        found.unmatched.append((place.of_document(position), query_id, doc))
        # A line, where the query has no id of its own.
        seen.note(
            "dangling-document",
            f"{place.of_document(position) if has_unnamed_queries(seen, place) else query_id} {doc}",
        )
    same = not dangling and all(doc == name for doc, name in names.items())
    return replace(given if same else given.with_renamed_documents(names), quoted=False)


def _refuse_absent_queries(
    strangers: Sequence[tuple[SourceLocation, str]],
    labelled: int,
    queries: Mapping[str, Query],
    seen: ReadProblems,
) -> None:
    if len(strangers) == labelled >= MIN_LABELS_OF_ONE_CAUSE:
        (place, query), example = strangers[0], next(iter(queries))
        what = f"none of the {labelled:,} labelled queries exists: labels name {query!r}, and ids look like {example!r}"
        seen.add(place.file, what, "give labels and queries the same ids")
        return
    for place, query in strangers:
        near = nearest_word(query, queries) if len(queries) <= MAX_COMPARED_IDS else ""
        seen.add(
            place,
            f"labels name query {query!r}, which does not exist",
            f"{near} correct the id, or {DROP_REMEDY}".lstrip(),
        )


def _refuse_absent(
    found: MatchedLabels,
    guessed: Sequence[tuple[str, str]],
    documents: CheckedDocuments,
    seen: ReadProblems,
) -> None:
    """Complain of labels that name no document: one cause, one problem."""
    failed = dict(
        note.split(": ", 1) for note in seen.notes.get("unconverted-file", ())
    )
    names = list(dict.fromkeys(doc for *_, doc in found.unmatched if doc not in failed))
    shown = first_names([*map(repr, names)], MIN_LABELS_OF_ONE_CAUSE)
    folder = common_folder(names) if len(names) >= MIN_LABELS_OF_ONE_CAUSE else ""
    if guessed and not found.matched_by and len(found.unmatched) > 1 and not folder:
        file, column = guessed[0]
        remedy = f"name documents by their ids; or say which column does: {declaration('label_document')}"
        what = f"Column {column!r}: no value is the id of a document. Found {shown}; {documents.example()}"
        seen.add(file, what.rstrip("; "), f"{remedy}; {not_labels_remedy(column)}")
        return
    if len(names) >= MIN_LABELS_OF_ONE_CAUSE and (folder or not found.matched_by):
        begin = f" begin with {folder!r} and" if folder else ""
        what = f"{count_of(len(names), 'label')}{begin} name no document: {shown}; {documents.example()}"
        seen.add(
            found.unmatched[0][0].file,
            what.rstrip("; "),
            f"correct the ids, or {DROP_REMEDY}",
        )
        found.unmatched = [one for one in found.unmatched if one[2] in failed]
    for place, query_id, doc in found.unmatched:
        # A line alone, where the row has no id of its own.
        who = (
            "names" if has_unnamed_queries(seen, place) else f"query {query_id!r} names"
        )
        why = (
            f"which could not be converted: {failed[doc]}"
            if doc in failed
            else "which does not exist"
        )
        remedy = (
            "write the file again, or as text"
            if doc in failed
            else documents.nearest_remedy(doc)
        )
        seen.add(place, f"{who} document {doc!r}, {why}", remedy)


def _refuse_losses(
    found: MatchedLabels, documents: CheckedDocuments, seen: ReadProblems, where: str
) -> None:
    """Refuse labels if more than one in ten is lost, for any reason."""
    lost = found.lost_by_cause.total()
    total = lost + sum(found.matched_by.values())
    if seen or lost <= MAX_LOST_SHARE * total:
        return
    told = ", ".join(
        f"{number:,} {cause}" for cause, number in found.lost_by_cause.items() if number
    )
    example = (
        f", such as {found.unmatched[0][2]!r}; {documents.example()}".rstrip("; ")
        if found.unmatched
        else ""
    )
    what = (
        f"{lost:,} of {total:,} labels are lost, more than one in ten: {told}{example}"
    )
    seen.add(where, what, "correct them, or remove them from the file")


def has_unnamed_queries(seen: ReadProblems, place: SourceLocation) -> bool:
    """Whether queries of a table have no ids of their own: then the line says which is meant."""
    taken = seen.columns_used.get(place.file)
    return taken is not None and not {"query_id", "label_query"} & {*taken.values()}


def columns_read_as(
    seen: ReadProblems, kinds: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """File and column of each that was read as one of these kinds."""
    for file, columns in seen.columns_used.items():
        yield from ((file, column) for column, kind in columns.items() if kind in kinds)
