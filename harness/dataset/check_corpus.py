"""One pass over the documents."""

import hashlib
import json
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.dataset.columns import declaration
from harness.dataset.convert import CONVERTED_SUFFIXES, CONVERTER_REMEDY, can_convert
from harness.dataset.labels import FIELD_SEPARATOR
from harness.dataset.read_problems import ReadProblems
from harness.dataset.source import Source, SourceLocation
from harness.dataset.usual_names import normalised_name
from harness.dataset.written_values import id_problem
from retrievers.errors import DataChanged, InputError, Problem, nearest_word
from retrievers.ids import WHOLE_FLOAT, IdMatch, KnownDocuments, normalise_text, to_nfc
from retrievers.types import Document, sample_documents

MAX_COMPARED_IDS = 2_000
"""Ids, at most, among which the nearest is looked for where a label names one that does not exist."""
DROP_REMEDY = 'set dangling = "drop" under [relevance] (--dangling drop)'
ANCHOR_WORDS = 5
"""Words of a passage by whose place a document that may hold it is found."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True)


@dataclass(slots=True)
class CheckedDocuments:
    """What is kept of a corpus while it streams by: ids, and which of its texts are asked."""

    known: KnownDocuments = field(default_factory=KnownDocuments)
    document_by_value: dict[str, str] = field(default_factory=dict)
    """Where labels name a field: its value -> the first document that has it."""
    representatives: dict[str, str] = field(default_factory=dict)
    """Document -> the first one with the same value of that field."""
    by_field: bool = False
    field_names: set[str] = field(default_factory=set)
    digest: str = ""
    sample: tuple[Document, ...] = ()
    _values: KnownDocuments = field(default_factory=KnownDocuments)
    """The keys, as ids are matched."""

    @property
    def ids(self) -> set[str]:
        """The ids of all documents."""
        return self.known.ids

    def match(self, labels: Iterable[str]) -> dict[str, IdMatch]:
        """The documents that labels name: by a field if the data set says so, else by id or what matches it."""
        if not self.by_field:
            return self.known.match(labels)
        if len(self._values.ids) != len(self.document_by_value):
            self._values = KnownDocuments(set(self.document_by_value))
        return {
            name: IdMatch(self.document_by_value[one.document], "field")
            for name, one in self._values.match(labels).items()
        }

    def nearest_remedy(self, label: str) -> str:
        """A remedy for a label that names nothing."""
        known = self.document_by_value if self.by_field else self.ids
        near = nearest_word(label, known) if len(known) <= MAX_COMPARED_IDS else ""
        return f"{near or self.example()} correct the id, or {DROP_REMEDY}".lstrip()

    def example(self) -> str:
        """What a label may look like."""
        known = self.document_by_value if self.by_field else self.ids
        return (
            f"{'values' if self.by_field else 'ids'} look like {min(known)!r};"
            if known
            else ""
        )

    def add_key(self, document: Document, match: tuple[str, ...]) -> bool:
        """Note the value by which labels name a document; False where it has none."""
        values = [document.fields.get(name, "") for name in match]
        if not all(values):
            return False
        whole = (WHOLE_FLOAT.fullmatch(value) for value in values)
        key = FIELD_SEPARATOR.join(
            number[1] if number else to_nfc(value)
            for value, number in zip(values, whole, strict=True)
        )
        first = self.document_by_value.setdefault(key, document.id)
        if first != document.id:
            self.representatives[document.id] = first
        return True


def check_documents(
    source: Source, seen: ReadProblems, match: tuple[str, ...], sample_size: int = 0
) -> CheckedDocuments:
    """Read a corpus once and note its faults.

    Args:
        source: where the documents come from.
        seen: takes the faults, and what is allowed and worth knowing.
        match: the fields by which labels name documents; empty where they name ids.
        sample_size: how many documents are kept, a sample that their ids decide.
    """
    documents = CheckedDocuments(by_field=bool(match))
    checked = _checked(source, seen, match, documents)
    documents.sample = (
        tuple(sample_documents(checked, size=sample_size)) if sample_size else ()
    )
    deque(checked, maxlen=0)  # where no sample was drawn
    if not documents.ids and not seen:
        unread = [
            name
            for name in seen.notes.get("unread-file", ())
            if name.lower().endswith(tuple(CONVERTED_SUFFIXES))
        ]
        remedy = (
            CONVERTER_REMEDY
            if unread and not can_convert()
            else "there must be a document"
        )
        seen.add("documents", "the corpus is empty", remedy)
    if match and documents.ids and not documents.document_by_value:
        what = f"no document has {' and '.join(map(repr, match))} among its fields"
        seen.add("dataset.match", what, "see how they are spelt")
    return documents


def _checked(
    source: Source,
    seen: ReadProblems,
    match: tuple[str, ...],
    documents: CheckedDocuments,
) -> Iterator[Document]:
    """Yield each document once, while what is to be kept of all of them is noted."""
    digest, contents = hashlib.sha256(), dict[bytes, str]()
    for place, document in source.documents(seen):
        if reason := id_problem(document.id):
            seen.add(
                place, f"document id {document.id!r} {reason}", "give it another id"
            )
            continue
        if document.id in documents.ids:
            remedy = f"ids must be unique{_other_id(seen, place)}"
            seen.add(place, f"document id {document.id!r} occurs twice", remedy)
            continue
        documents.known.add(document.id, document.title)
        yield document
        digest.update(_document_line(document))
        if document.fields:
            documents.field_names.update(document.fields)
        if match and not documents.add_key(document, match):
            seen.note("document-without-key", document.id)
        content = document.content
        if not content or content.isspace():
            seen.note("empty-document", document.id)
            continue
        if (
            first_with := contents.setdefault(text_key(content), document.id)
        ) != document.id:
            seen.note("duplicate-text", f"{document.id} (as {first_with})")
    documents.digest = digest.hexdigest()


def _other_id(seen: ReadProblems, place: SourceLocation) -> str:
    """A hint at another column of ids in a table of documents."""
    columns = seen.columns_used.get(place.file, {})
    others = [
        name
        for name, kind in columns.items()
        if kind != "document_id" and normalised_name(name).endswith(("id", "key"))
    ]
    return (
        f"; or is {others[0]!r} the id? {declaration('document_id', others[0])}"
        if others
        else ""
    )


def reread_documents(source: Source, name: str, digest: str) -> Iterator[Document]:
    """Yield the corpus once more.

    Raises:
        DataChanged: at the end, if it was not what it was at first; or where something can no longer be read.
    """
    seen, current = ReadProblems(), hashlib.sha256()
    try:
        for _, document in source.documents(seen):
            current.update(_document_line(document))
            yield document
    except InputError as error:
        raise DataChanged(error.problems) from None
    if seen:
        raise DataChanged(seen.problems)
    if current.hexdigest() != digest:
        what = "has changed since this run began: documents were added, removed or rewritten"
        raise DataChanged(
            Problem(name, what, "leave it alone until the run is done, and run again")
        )


def _document_line(document: Document) -> bytes:
    return digest_line(
        [document.id, document.title, document.text, dict(document.fields)]
    )


def text_key(text: str) -> bytes:
    """A digest that is equal for texts that differ in white space or case only."""
    return hashlib.blake2b(normalise_text(text).encode(), digest_size=12).digest()


def digest_line(row: list[Any]) -> bytes:
    """A document or a query as one line of JSON, for a digest."""
    return _ENCODER.encode(row).encode("utf-8", "surrogatepass") + b"\n"


def documents_with_text(
    texts: Iterable[str], documents: Iterable[Document], whole: Collection[str] = ()
) -> dict[str, str]:
    """Return for each text the document that equals it, else the first that holds it; white space and case are ignored.

    One pass over the documents; a text that none holds is left out.

    Args:
        texts: the texts.
        documents: the corpus.
        whole: those of the texts that a document must be, and not only hold.
    """
    texts = set(texts)
    same, holds = dict[str, str](), dict[str, str]()
    anchors: dict[tuple[str, ...], list[str]] = {}
    for key in texts.difference(whole):
        anchors.setdefault(tuple(key.split(" ")[:ANCHOR_WORDS]), []).append(key)
    short = [anchor for anchor in anchors if len(anchor) < ANCHOR_WORDS]
    for document in documents:
        for text in (document.text, document.content):
            if (key := normalise_text(text)) in texts:
                same.setdefault(key, document.id)
        if not anchors:
            continue
        text = normalise_text(document.content)
        words = text.split(" ")
        near = {
            tuple(words[i : i + ANCHOR_WORDS])
            for i in range(len(words) - ANCHOR_WORDS + 1)
        } & anchors.keys()
        for anchor in (*near, *short):
            for key in anchors[anchor]:
                if key not in holds and key in text:
                    holds[key] = document.id
    return {**holds, **same}
