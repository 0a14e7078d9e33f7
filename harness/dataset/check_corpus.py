"""One pass over the documents.

`check_documents` collects the ids, what labels may name documents by, and a digest; of
the documents it keeps a sample alone. Later passes are `reread_documents`, which
compares the digest, and `quoted_texts`, which looks for texts that labels quote.
"""

import hashlib
import json
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.dataset.columns import declaration
from harness.dataset.convert import CONVERTED_SUFFIXES, CONVERTER_REMEDY, can_convert
from harness.dataset.labels import FIELD_SEPARATOR
from harness.dataset.read_problems import ReadProblems
from harness.dataset.settings import PAGES
from harness.dataset.source import Source, SourceLocation
from harness.dataset.usual_names import normalised_name
from harness.dataset.written_values import id_problem
from retrievers.errors import DataChanged, InputError, Problem, nearest_word
from retrievers.ids import WHOLE_FLOAT, IdMatch, KnownDocuments, normalise_text, to_nfc
from retrievers.remedy import Option, Remedy, Setting, compose_remedy
from retrievers.types import Document, sample_documents

MAX_COMPARED_IDS = 2_000
"""Ids, at most, that a remedy compares with an unknown one."""
DROP_REMEDY = compose_remedy(
    "set ", Setting("dangling", "drop", "relevance"), Option("--dangling drop")
)
TEXT_KEY_BYTES = 12
"""Bytes of a text's digest: with millions of texts, no two get the same by chance."""
HALF_CHARACTER_REMEDY = "write the character whole, or remove it"
_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True)


@dataclass(slots=True)
class CheckedDocuments:
    """The ids of a corpus, with the fields by which labels may name documents."""

    known_documents: KnownDocuments = field(default_factory=KnownDocuments)
    documents_by_value: dict[str, list[str]] = field(default_factory=dict)
    """Value of the field that labels name, if any -> the documents with it; the first
    represents the others."""
    by_field: bool = False
    """Whether labels name documents by that field, not by their ids."""
    field_names: set[str] = field(default_factory=set)
    """The fields that any document has."""
    digest: str = ""
    """SHA-256 of all documents in their order; empty until the pass has ended."""
    sample: tuple[Document, ...] = ()
    _known_values: KnownDocuments = field(default_factory=KnownDocuments)
    """The values of the field, which are matched like ids."""

    @property
    def ids(self) -> set[str]:
        """The ids of all documents."""
        return self.known_documents.ids

    def match(self, labels: Iterable[str]) -> dict[str, IdMatch]:
        """Return the documents that labels name, by a field or by an id.

        Labels that name none are missing.
        """
        if not self.by_field:
            return self.known_documents.match(labels)
        if len(self._known_values.ids) != len(self.documents_by_value):
            self._known_values = KnownDocuments(set(self.documents_by_value))
        return {
            label: IdMatch(self.documents_by_value[match.document][0], "field")
            for label, match in self._known_values.match(labels).items()
        }

    def nearest_remedy(self, label: str) -> Remedy:
        """Return the remedy for a label that names no document."""
        hint = self.nearest(label) or self.example()
        beginning = f"{hint} correct the id, or ".lstrip()
        return compose_remedy(beginning, DROP_REMEDY)

    def nearest(self, label: str) -> str:
        """Return "did you mean …?" with the nearest name of a document, or "".

        It is "" if none is near, or if there are too many to compare.
        """
        names = self.documents_by_value if self.by_field else self.ids
        return nearest_word(label, names) if len(names) <= MAX_COMPARED_IDS else ""

    def example(self) -> str:
        """Return what labels look like, with an example; "" without documents."""
        names = self.documents_by_value if self.by_field else self.ids
        if not names:
            return ""
        noun = "values" if self.by_field else "ids"
        return f"{noun} look like {min(names)!r};"

    def add_key(self, document: Document, match: tuple[str, ...]) -> bool:
        """Add the value by which labels name a document; False if it lacks a field."""
        values = [document.fields.get(field_name, "") for field_name in match]
        if not all(values):
            return False
        key = FIELD_SEPARATOR.join(map(_key_part, values))
        self.documents_by_value.setdefault(key, []).append(document.id)
        return True

    def representatives(self) -> dict[str, str]:
        """Return each further document with a value, and the first one with it."""
        first_by_document: dict[str, str] = {}
        for first, *others in self.documents_by_value.values():
            first_by_document |= dict.fromkeys(others, first)
        return first_by_document


def _key_part(value: str) -> str:
    """Return the value of a field as labels spell it: 3 for 3.0."""
    number = WHOLE_FLOAT.fullmatch(value)
    return number[1] if number else to_nfc(value)


def check_documents(
    source: Source,
    problems: ReadProblems,
    match: tuple[str, ...],
    *,
    place: str,
    sample_size: int = 0,
) -> CheckedDocuments:
    """Read a corpus once and check it.

    Args:
        source: has the documents.
        problems: takes the problems and the notes.
        match: the fields by which labels name documents; empty if they name ids.
        place: where the corpus is, for a message.
        sample_size: how many documents are sampled, by their ids.
    """
    documents = CheckedDocuments(by_field=bool(match))
    checked = _check_each(source, problems, match, documents)
    if sample_size:
        documents.sample = tuple(sample_documents(checked, size=sample_size))
    deque(checked, maxlen=0)  # without a sample nothing has been read yet
    if not documents.ids and not problems:
        problems.add(place, "the corpus is empty", _empty_corpus_remedy(problems))
    if match and documents.ids and not documents.documents_by_value:
        field_names = " and ".join(map(repr, match))
        problem = f"no document has {field_names} among its fields"
        remedy = compose_remedy("see how they are spelt")
        if any(
            CONVERTED_SUFFIXES[".pdf"] in size for size in problems.table_sizes.values()
        ):
            remedy = compose_remedy(
                remedy, "; ", PAGES, " makes each page of a PDF a document"
            )
        problems.add("dataset.match", problem, remedy)
    return documents


def _empty_corpus_remedy(problems: ReadProblems) -> str:
    unread_files = [name.lower() for name in problems.notes.get("unread-file", ())]
    suffixes = tuple(CONVERTED_SUFFIXES)
    has_convertible = any(name.endswith(suffixes) for name in unread_files)
    if has_convertible and not can_convert():
        return CONVERTER_REMEDY
    return "there must be a document"


def _check_each(
    source: Source,
    problems: ReadProblems,
    match: tuple[str, ...],
    documents: CheckedDocuments,
) -> Iterator[Document]:
    """Yield each document once, and add it to `documents`."""
    digest = hashlib.sha256()
    first_id_by_text: dict[bytes, str] = {}
    for location, document in source.documents(problems):
        line = _digest_line_of(document, location, documents, problems)
        if line is None:
            continue
        documents.known_documents.add(document.id, document.title)
        yield document
        digest.update(line)
        if document.fields:
            documents.field_names.update(document.fields)
        if match and not documents.add_key(document, match):
            problems.note("document-without-key", document.id)
        content = document.content
        if not content or content.isspace():
            problems.note("empty-document", document.id)
            continue
        first_id = first_id_by_text.setdefault(text_key(content), document.id)
        if first_id != document.id:
            problems.note("duplicate-text", f"{document.id} (as {first_id})")
    documents.digest = digest.hexdigest()


def _digest_line_of(
    document: Document,
    location: SourceLocation,
    documents: CheckedDocuments,
    problems: ReadProblems,
) -> bytes | None:
    """Return the line of a document; None, with a problem, if it cannot be used."""
    reason = id_problem(document.id)
    if reason:
        problem = f"document id {document.id!r} {reason}"
        problems.add(location, problem, "give it another id")
        return None
    if document.id in documents.ids:
        remedy = _repeated_id_remedy(problems, location)
        problems.add(location, f"document id {document.id!r} occurs twice", remedy)
        return None
    try:
        return _document_line(document)
    except UnicodeEncodeError as error:
        problem = f"document {document.id!r} {half_character_problem(error)}"
        problems.add(location, problem, HALF_CHARACTER_REMEDY)
        return None


def _repeated_id_remedy(problems: ReadProblems, location: SourceLocation) -> Remedy:
    """Return the remedy for an id that occurs twice: another column may be the id."""
    for column, kind in problems.columns_used.get(location.file, {}).items():
        is_key = normalised_name(column).endswith(("id", "key"))
        if kind != "document_id" and is_key:
            return compose_remedy(
                f"ids must be unique; or is {column!r} the id? ",
                declaration("document_id", column),
            )
    return compose_remedy("ids must be unique")


def reread_documents(source: Source, name: str, digest: str) -> Iterator[Document]:
    """Yield the corpus once more.

    Raises:
        DataChanged: a document can no longer be read; or, at the end, the corpus is not
            the same as at first.
    """
    problems = ReadProblems()
    current = hashlib.sha256()
    try:
        for _, document in source.documents(problems):
            current.update(_document_line(document))
            yield document
    except InputError as error:
        raise DataChanged(error.problems) from None
    if problems:
        raise DataChanged(problems.problems)
    if current.hexdigest() != digest:
        reason = "documents were added, removed or rewritten"
        problem = f"has changed since this run began: {reason}"
        remedy = "leave it alone until the run is done, and run again"
        raise DataChanged(Problem(name, problem, remedy))


def _document_line(document: Document) -> bytes:
    fields = dict(document.fields)
    return digest_line([document.id, document.title, document.text, fields])


def text_key(text: str) -> bytes:
    """Return a digest that ignores differences of white space and case."""
    normal = normalise_text(text).encode()
    return hashlib.blake2b(normal, digest_size=TEXT_KEY_BYTES).digest()


def digest_line(row: list[Any]) -> bytes:
    """Return a document or a query as one line of JSON, for a digest.

    Raises:
        UnicodeEncodeError: it holds half a surrogate pair; no file could have it.
    """
    return _ENCODER.encode(row).encode() + b"\n"


def half_character_problem(error: UnicodeEncodeError) -> str:
    """Return what is wrong with a text that UTF-8 has no bytes for."""
    return f"holds half a character, \\u{ord(error.object[error.start]):x}"
