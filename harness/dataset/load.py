"""The formats and which opens a reference; from files to a checked Dataset, every fault found in one pass."""

import hashlib
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path, PurePosixPath

from harness.dataset.columns import FIELDS, LABELLING, NAMING, OF_DOCUMENTS, folded
from harness.dataset.corpus import (
    CONVERTED,
    REMEDY,
    check_documents,
    digest_line,
    installed,
    read_again,
)
from harness.dataset.dataset_model import (
    Dataset,
    DatasetReference,
    Labels,
    reference_as_json,
    reference_of,
)
from harness.dataset.files import AGAIN, File, Files, Reader, is_results, listing_of
from harness.dataset.judgments import note_changes, overlay, read_overlay
from harness.dataset.matched_labels import columns_taken, match_labels
from harness.dataset.rows import SUFFIXES, read_rows
from harness.dataset.source import Findings, Source, SourceLocation, id_problem
from harness.dataset.table_source import label_column, refuse_overlooked
from harness.english import counted, first_few
from retrievers.errors import InputError, Problem, did_you_mean, nearest
from retrievers.types import Query
from retrievers.user_objects import OBJECT, NamedObject

FORMATS = {
    "hub": "published:HUB",
    "ir_datasets": "published:CATALOGUE",
    "beir": "published:BEIR",
    "huggingface": "published:HUGGINGFACE",
    "autorag": "tool_exports:AUTORAG",
    "trec": "trec:COLLECTION",
    "ragas": "tool_exports:RAGAS",
    "langsmith": "tool_exports:LANGSMITH",
    "phoenix": "tool_exports:PHOENIX",
    "langfuse": "tool_exports:LANGFUSE",
    "llama-index-rag": "tool_exports:LLAMA_INDEX_RAG",
    "embench": "tool_exports:EMBENCH",
    "llama-index": "tool_exports:LLAMA_INDEX",
    "squad": "published:SQUAD",
    "hotpotqa": "published:HOTPOT",
    "quoted": "published:ROWS",
    "msmarco": "published:MSMARCO",
    "tables": "table_folder",
    "markdown": "markdown_folder",
}
"""Format -> its file in this room, and its name there where a file has several; tried in this order where no format is
named."""


def reader_of(name: str) -> Reader:
    """Import the reader of a format."""
    file, _, attribute = FORMATS[name].partition(":")
    module = import_module(f"harness.dataset.{file}")
    found = getattr(module, attribute) if attribute else module
    return Reader(found.matches, found.read)


def open_source(reference: DatasetReference) -> tuple[str, Source]:
    """Find the reader of a reference, and open it.

    Raises:
        InputError: there is nothing there, the format is unknown, or no reader takes what is there.
    """
    if isinstance(reference.path, NamedObject):
        return "memory", reference.path.value(reference.columns)
    if reference.scheme == OBJECT:
        what = "were in the memory of another process"
        raise InputError(
            Problem(
                reference.name.removeprefix(OBJECT), what, "give them again in Python"
            )
        )
    if not reference.scheme and not (path := reference.folder).exists():
        other = "a folder, a zip archive or a file; hf:… or irds:…"
        remedy = (
            suggestion(path) or other
            if path.parent.is_dir()
            else f"nor is there a folder {path.parent}"
        )
        raise InputError(Problem(reference.name, "no such folder", remedy))
    if reference.format is not None and reference.format not in FORMATS:
        raise InputError(
            Problem(
                "dataset.format",
                f"unknown format {reference.format!r}",
                did_you_mean(reference.format, FORMATS),
            )
        )
    files = listing_of(reference)
    name = reference.format or format_of(reference, files)
    if name is None:
        raise InputError(Problem(reference.name, *_not_known(reference, files)))
    return name, reader_of(name).read(reference, files)


def format_of(reference: DatasetReference, files: Files) -> str | None:
    """The format of what is there, None where no reader takes it.

    Args:
        reference: its folder.
        files: what is there, listed once for all readers.

    Raises:
        InputError: a run wrote it. Its files look like tables, but they hold the beginnings of the texts alone.
    """
    if not reference.scheme and is_results(reference.folder):
        place = shlex.quote(str(reference.folder))
        remedy = f"harness report {place} shows what it says; harness check takes its experiment file or its data set"
        raise InputError(
            Problem(reference.name, "is a results folder, no data set", remedy)
        )
    return next(
        (name for name in FORMATS if reader_of(name).matches(reference, files)), None
    )


def suggestion(path: Path) -> str:
    """What may have been meant by a path that does not exist: the nearest name beside it; "" where none is near."""
    return (
        nearest(path.name, (file.name for file in path.parent.iterdir()))
        if path.parent.is_dir()
        else ""
    )


def _not_known(reference: DatasetReference, files: Files) -> tuple[str, str]:
    path = reference.folder
    if tables := [name for name, file in files.items() if file.table]:
        what = f"holds {', '.join(map(repr, tables[:8]))}, and none of them is called queries"
        return (
            what,
            f"say which hold what: --queries {shlex.quote(tables[0])} --documents …",
        )
    if not path.is_file() or files:
        suffixes = sorted({file.suffix or file.name for file in files.values()})
        there = f": only {', '.join(suffixes[:8])}" if suffixes else ""
        return (
            f"holds no documents{there}",
            "corpus.jsonl, tables of documents and queries, or files *.md or *.txt",
        )
    if path.suffix.lower() == ".zip" or not path.stat().st_size:
        return (
            "is not a zip archive that can be read"
            if path.stat().st_size
            else "is empty",
            AGAIN,
        )
    if File(path).suffix not in SUFFIXES:
        return (
            "is a file that no reader takes",
            f'say what it is: format = "…", one of {", ".join(FORMATS)}',
        )
    seen = Findings()
    next(read_rows(File(path), seen), None)
    if seen:
        raise InputError(seen.problems)
    return (
        "is a table that names no documents",
        'say where they are: documents = "…" under dataset, or --documents',
    )


UNLABELLED = "no query has a relevant document", "nothing could be compared"
CLICK = "click"
"""In the name of a column of labels: nobody judged, somebody clicked."""


def load(
    reference: DatasetReference | str | Path,
    *,
    drop_dangling: bool = False,
    sampled: int = 0,
) -> Dataset:
    """Read and check a data set.

    Args:
        reference: where it is: a path, a name (`hf:…`, `irds:…`), or what says more.
        drop_dangling: count judgments of absent documents or queries instead of refusing them.
        sampled: how many documents the data set keeps of this pass, for who looks at their texts.

    Raises:
        InputError: with every problem that was found.

    >>> found = load("datasets/survey-templates-en")
    >>> found.count, len(found.queries)
    (182, 13)
    """
    reference = (
        reference
        if isinstance(reference, DatasetReference)
        else reference_of(reference)
    )
    name, source = open_source(reference)
    seen = Findings()
    queries = _check_queries(source, seen)
    documents = check_documents(source, seen, reference.match, sampled)
    seen.names_document = lambda cell: bool(documents.match([cell]))
    drop = drop_dangling or reference.drop_dangling
    matched = match_labels(source, seen, documents, queries, drop=drop)
    labels = matched.labels
    refuse_overlooked(seen, reference.columns)
    if labels and any(
        CLICK in folded(column) for _, column in columns_taken(seen, LABELLING)
    ):
        seen.ledger["clicked-label"] = [*labels]
    if (
        not labels
        and documents.ids
        and (found := label_column(seen, documents, reference.columns))
    ):
        named = replace(reference, columns={**reference.columns, **found})
        dataset = load(named, drop_dangling=drop, sampled=sampled)
        return replace(
            dataset,
            found_columns=found,
            ledger={**dataset.ledger, "found-labels": (*found.values(),)},
        )
    judgments = read_overlay(reference, seen)
    if judgments is not None:
        labels = overlay(labels, judgments, queries, documents.ids, seen)
        note_changes(source, judgments, queries, seen)
    # Questions without any label are a beginning, and so are those that people are judging: all are answered.
    beginning = judgments is not None or not labels
    asked = tuple(
        query
        for query in queries.values()
        if _is_asked(query, labels.get(query.id), beginning)
    )
    _note_labels(queries, labels, beginning, seen)
    if not asked and not seen:
        seen.wrong(
            reference.name,
            *(UNLABELLED if queries else ("there is no query", "no query to search")),
        )
    recorded = labels.keys() | {query.id for query in asked}
    if seen:
        raise InputError(seen.problems)

    digest = hashlib.sha256(f"{documents.digest}\n".encode())
    for query in queries.values():
        query_labels = labels.get(query.id)
        row = [
            query.id,
            query.text,
            dict(query.fields),
            query_labels and query_labels.as_json(),
        ]
        more = filter(None, (reference_as_json(query.reference), query.history))
        digest.update(digest_line([*row, *more]))
    return Dataset(
        path=reference.name,
        format=name,
        queries=asked,
        judged=tuple(query for query in queries.values() if query.id in labels),
        recorded=tuple(query for query in queries.values() if query.id in recorded),
        labels=labels,
        count=len(documents.ids),
        digest=digest.hexdigest(),
        corpus_digest=documents.digest,
        columns=seen.taken,
        sizes=seen.sizes,
        matched=matched.ways,
        unknown=tuple(doc for *_, doc in matched.absent),
        ledger={kind: tuple(ids) for kind, ids in seen.ledger.items()},
        field_names=frozenset(documents.field_names),
        same_as=documents.same_as,
        sample=documents.sample,
        documents=partial(read_again, source, reference.name, documents.digest),
    )


def load_documents(reference: DatasetReference) -> Dataset:
    """Read and check the documents alone, with what queries there are: for those who have none yet.

    Raises:
        InputError: with every problem of the documents.
    """
    name, source = open_source(reference)
    seen = Findings()
    documents = check_documents(source, seen, ())
    if seen:
        raise InputError(seen.problems)
    asked, digest = (
        tuple(query for _, query in source.queries(Findings())),
        documents.digest,
    )
    again = partial(read_again, source, reference.name, digest)
    return Dataset(
        reference.name,
        name,
        asked,
        (),
        {},
        len(documents.ids),
        digest,
        digest,
        asked,
        documents=again,
    )


def _check_queries(source: Source, seen: Findings) -> dict[str, Query]:
    queries: dict[str, Query] = {}
    first: dict[str, SourceLocation] = {}
    for place, query in source.queries(seen):
        if reason := id_problem(query.id):
            seen.wrong(place, f"query id {query.id!r} {reason}", "give it another id")
        elif query.id in queries:
            remedy = f"ids must be unique; it is at {first[query.id]} too"
            seen.wrong(place, f"query id {query.id!r} occurs twice", remedy)
        else:
            queries[query.id], first[query.id] = query, place
            if not query.text.strip():
                seen.note("blank-query", query.id)
    return queries


def _is_asked(query: Query, labels: Labels | None, beginning: bool) -> bool:
    if labels is not None and labels.relevant:
        return True
    return (
        beginning or query.unanswerable or _is_measured_by_claims(query, labels)
    ) and query.text.strip() != ""


def _is_measured_by_claims(query: Query, labels: Labels | None) -> bool:
    """Whether a query has claims; or an answer to take them from, if it has no labels."""
    return bool(query.reference.claims or (labels is None and query.reference.answers))


def _note_labels(
    queries: dict[str, Query],
    labels: dict[str, Labels],
    beginning: bool,
    seen: Findings,
) -> None:
    """Count the queries that make no score: without a relevant document, or without labels."""
    for query_id in labels:
        if queries[query_id].unanswerable and labels[query_id].relevant:
            what = f"query {query_id!r} is said to have no answer, and has relevant documents"
            seen.wrong("answerable", what, "remove one of the two")
        if (
            labels[query_id].judged
            and not labels[query_id].relevant
            and not queries[query_id].unanswerable
        ):
            seen.note("no-relevant-document", query_id)
    asked_of = (
        query_id for query_id, query in queries.items() if query.text.strip()
    )  # blank ones are counted as such
    unjudged = sorted(
        query_id
        for query_id in asked_of
        if query_id not in labels or not labels[query_id].judged
    )
    for query_id in unjudged if not seen else ():
        if queries[query_id].unanswerable:
            seen.note("unanswerable-query", query_id)
            continue
        asked = beginning or _is_measured_by_claims(
            queries[query_id], labels.get(query_id)
        )
        seen.note("unlabelled-query" if asked else "unjudged-query", query_id)


MEANINGS = {
    "document_id": "the document's id",
    "title": "the document's title",
    "text": "the document's text",
    "query_id": "the query's id",
    "query": "the query's text",
    "label_query": "the query's id",
    "label_document": "the relevant document",
    "relevant": "the relevant documents",
    "contexts": "passages of the relevant documents",
    "grade": "its grade",
    "reference": "the reference answer",
    "claims": "the claims of a right answer",
    "history": "what was said before the query",
    "": "not used",
}


def column_lines(dataset: Dataset) -> Iterator[str]:
    """Every table with its rows and all its columns: what each was read as, how many labels; and folders."""
    for file, columns in dataset.columns.items():
        rows = dataset.sizes.get(file, {}).get("row")
        yield f"{file}: {counted(rows, 'row')}" if rows else f"{file}:"
        names = [" ".join(name.split()) or "(no name)" for name in columns]
        width = max(map(len, names), default=0)
        of = (
            "document"
            if "query" not in columns.values()
            and set(columns.values()) & set(OF_DOCUMENTS)
            else "query"
        )
        for column, kind in zip(names, columns.values(), strict=True):
            meaning = (
                f"kept as a field of the {of}" if kind == FIELDS else MEANINGS[kind]
            )
            counts = _counts(dataset, kind)
            yield f"  {column:<{width}} -> {meaning}{counts and f' ({counts})'}"
    for folder, kinds in dataset.sizes.items():
        if folder not in dataset.columns and (len(kinds) > 1 or folder != dataset.path):
            (first, number), *others = sorted(kinds.items(), key=lambda kind: -kind[1])
            files = ", ".join(
                [
                    counted(number, f"{first} file"),
                    *(f"{many:,} {kind}" for kind, many in others),
                ]
            )
            yield f"{folder}: {files} -> {counted(dataset.count, 'document')}"


def grade_counts(labels: Iterable[Labels]) -> tuple[tuple[int, int], ...]:
    """Grade and how often it is given; empty where labels are lists."""
    counts = Counter(
        grade
        for one in labels
        if one.grades is not None
        for grade in one.grades.values()
    )
    return tuple(sorted(counts.items()))


def _counts(dataset: Dataset, kind: str) -> str:
    """A count of the labels of a kind of column; "" for what is no label."""
    if kind == "grade":
        return ", ".join(
            f"{grade}: {number:,}"
            for grade, number in grade_counts(dataset.labels.values())
        )
    if kind not in NAMING:
        return ""
    found, unmatched = (
        sum(dataset.matched.values()),
        len(dataset.ledger.get("unmatched-context", ())),
    )
    named = first_few([*map(repr, dict.fromkeys(dataset.unknown))])
    ways = ", ".join(
        f"{number:,} by {way}" for way, number in dataset.matched.items() if way != "id"
    )
    missing = f"; not found: {named}" if named else ""
    return f"matched {found:,} of {found + len(dataset.unknown) + unmatched:,}{ways and f', {ways}'}{missing}"


def reading_line(dataset: Dataset) -> str:
    """How many of a folder's files are read, and what would read the others; "" where all are."""
    ledger = dataset.ledger
    return reading_sentence(
        dataset.count, ledger.get("unread-file", ()), ledger.get("unconverted-file", ())
    )


def reading_sentence(
    count: int, unread: Sequence[str], failed: Sequence[str] = ()
) -> str:
    """How many files are read, and what would read the others; "" where all are.

    Args:
        count: documents that are read.
        unread: names of the files that no reader takes.
        failed: those that could not be converted.
    """
    if not unread and not failed:
        return ""
    suffixes = Counter(
        PurePosixPath(name).suffix.lower() or PurePosixPath(name).name
        for name in unread
    )
    parts = [f"{count:,} of {count + len(unread) + len(failed):,} files are read"]
    if unread:
        common = sorted(suffixes.items(), key=lambda item: (-item[1], item[0]))
        kinds = first_few([f"{suffix} {count:,}" for suffix, count in common])
        parts.append(
            f"{len(unread):,} {'is' if len(unread) == 1 else 'are'} not ({kinds})"
        )
    if failed:
        parts.append(f"{len(failed):,} could not be converted")
    if not installed() and suffixes.keys() & CONVERTED:
        parts.append(REMEDY)
    return "; ".join(parts)
