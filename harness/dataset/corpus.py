"""Reads a corpus as a stream: checks each document, keeps ids and digest, and finds the documents that labels name.

Documents in other forms (PDF, HTML, Word, …) are converted to Markdown by markitdown once, and kept. A label names a
document by its id, by its name as a file, or by a field; else by a title, a text, or a passage of it, without regard to
white space and case.
"""

import contextlib
import hashlib
import importlib.util
import io
import json
import os
import sys
import warnings
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from typing import Any

from harness.dataset.columns import declaring, folded
from harness.dataset.dataset_model import JOINED
from harness.dataset.files import File
from harness.dataset.source import Findings, Source, SourceLocation, id_problem
from retrievers.errors import DataChanged, InputError, Problem, nearest
from retrievers.ids import WHOLE, KnownDocuments, Match, nfc, plain_text
from retrievers.opening import cache_folder
from retrievers.types import Document, sample

CONVERTED = {
    ".pdf": "PDF",
    ".html": "HTML",
    ".htm": "HTML",
    ".docx": "Word",
    ".pptx": "PowerPoint",
    ".xlsx": "Excel",
    ".epub": "EPUB",
    ".ipynb": "Jupyter",
}
"""What markitdown is asked to read, and what it is called."""
REMEDY = 'pip install "markitdown[docx,pdf,pptx,xlsx]", or the extra "documents"'


class NotConverted(Exception):
    """A file that holds no text which could be read, with the reason."""


def convert(file: File) -> tuple[str, str]:
    """The title of a file, where its format has one, and its text as Markdown.

    It is converted, or was kept beside the cache of vectors, by content and by markitdown's version.

    Raises:
        NotConverted: it is damaged, protected, or holds no text (a scanned page, say).
        InputError: it cannot be read.
    """
    raw = file.read()
    name = (
        f"{version('markitdown')}, no plain text\0{file.suffix}\0".encode()
    )  # as older versions took it for
    kept = (
        cache_folder() / "documents" / f"{hashlib.sha256(name + raw).hexdigest()}.json"
    )
    try:
        conversion: dict[str, str] = json.loads(kept.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        conversion = convert_bytes(raw, file.suffix)
        temporary = kept.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(
            OSError
        ):  # keeping it saves time and changes no result
            kept.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(
                json.dumps(conversion, ensure_ascii=False),
                encoding="utf-8",
                newline="\n",
            )
            temporary.replace(kept)
    if "failed" in conversion:
        raise NotConverted(conversion["failed"])
    return conversion["title"], conversion["text"]


def convert_bytes(raw: bytes, suffix: str) -> dict[str, str]:
    """Return `title` and `text` of a document, or `failed` with the reason."""
    from markitdown import StreamInfo

    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
            warnings.simplefilter("ignore")  # of parsers, about what they repaired
            made = _engine().convert_stream(
                io.BytesIO(raw), stream_info=StreamInfo(extension=suffix)
            )
    except (
        Exception
    ) as error:  # whatever a parser of somebody else's document may raise
        return {"failed": (" ".join(str(error).split()) or type(error).__name__)[:200]}
    text = made.markdown.encode("utf-8", "replace").decode().strip()
    heading = next((line[2:] for line in text.split("\n") if line.startswith("# ")), "")
    title = " ".join((made.title or heading).split())
    return (
        {"title": title, "text": text} if text else {"failed": "there is no text in it"}
    )


def installed() -> bool:
    """Whether markitdown is there."""
    return importlib.util.find_spec("markitdown") is not None


@cache
def _engine() -> Any:
    import markitdown.converters
    from markitdown import MarkItDown

    engine = MarkItDown(enable_builtins=False, enable_plugins=False)
    for kind in (
        "Html",
        "Ipynb",
        "Pdf",
        "Docx",
        "Pptx",
        "Xlsx",
        "Epub",
    ):  # none takes damaged files for text
        engine.register_converter(getattr(markitdown.converters, f"{kind}Converter")())
    return engine


COMPARABLE = 2_000
"""Ids, at most, among which the nearest is looked for where a label names one that does not exist."""
DROP = 'set dangling = "drop" under [relevance] (--dangling drop)'
ANCHOR = 5
"""Words of a passage by whose place a document that may hold it is found."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True)


@dataclass(slots=True)
class CheckedDocuments:
    """What is kept of a corpus while it streams by: ids, and which of its texts are asked."""

    known: KnownDocuments = field(default_factory=KnownDocuments)
    keys: dict[str, str] = field(default_factory=dict)
    """Where labels name a field: its value -> the first document that has it."""
    same_as: dict[str, str] = field(default_factory=dict)
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

    def match(self, labels: Iterable[str]) -> dict[str, Match]:
        """The documents that labels name: by a field if the data set says so, else by id or what matches it."""
        if not self.by_field:
            return self.known.match(labels)
        if len(self._values.ids) != len(self.keys):
            self._values = KnownDocuments(set(self.keys))
        return {
            name: Match(self.keys[one.document], "field")
            for name, one in self._values.match(labels).items()
        }

    def nearest(self, label: str) -> str:
        """A remedy for a label that names nothing."""
        known = self.keys if self.by_field else self.ids
        near = nearest(label, known) if len(known) <= COMPARABLE else ""
        return f"{near or self.example()} correct the id, or {DROP}".lstrip()

    def example(self) -> str:
        """What a label may look like."""
        known = self.keys if self.by_field else self.ids
        return (
            f"{'values' if self.by_field else 'ids'} look like {min(known)!r};"
            if known
            else ""
        )

    def take_key(self, document: Document, match: tuple[str, ...]) -> bool:
        """Note the value by which labels name a document; False where it has none."""
        values = [document.fields.get(name, "") for name in match]
        if not all(values):
            return False
        whole = (WHOLE.fullmatch(value) for value in values)
        key = JOINED.join(
            number[1] if number else nfc(value)
            for value, number in zip(values, whole, strict=True)
        )
        first = self.keys.setdefault(key, document.id)
        if first != document.id:
            self.same_as[document.id] = first
        return True


def check_documents(
    source: Source, seen: Findings, match: tuple[str, ...], sampled: int = 0
) -> CheckedDocuments:
    """Read a corpus once and note its faults.

    Args:
        source: where the documents come from.
        seen: takes the faults, and what is allowed and worth knowing.
        match: the fields by which labels name documents; empty where they name ids.
        sampled: how many documents are kept, a sample that their ids decide.
    """
    documents = CheckedDocuments(by_field=bool(match))
    checked = _checked(source, seen, match, documents)
    documents.sample = tuple(sample(checked, size=sampled)) if sampled else ()
    deque(checked, maxlen=0)  # where no sample was drawn
    if not documents.ids and not seen:
        unread = [
            name
            for name in seen.ledger.get("unread-file", ())
            if name.lower().endswith(tuple(CONVERTED))
        ]
        remedy = REMEDY if unread and not installed() else "there must be a document"
        seen.wrong("documents", "the corpus is empty", remedy)
    if match and documents.ids and not documents.keys:
        what = f"no document has {' and '.join(map(repr, match))} among its fields"
        seen.wrong("dataset.match", what, "see how they are spelt")
    return documents


def _checked(
    source: Source, seen: Findings, match: tuple[str, ...], documents: CheckedDocuments
) -> Iterator[Document]:
    """Yield each document once, while what is to be kept of all of them is noted."""
    digest, contents = hashlib.sha256(), dict[bytes, str]()
    for place, document in source.documents(seen):
        if reason := id_problem(document.id):
            seen.wrong(
                place, f"document id {document.id!r} {reason}", "give it another id"
            )
            continue
        if document.id in documents.ids:
            remedy = f"ids must be unique{_other_id(seen, place)}"
            seen.wrong(place, f"document id {document.id!r} occurs twice", remedy)
            continue
        documents.known.add(document.id, document.title)
        yield document
        digest.update(_document_line(document))
        if document.fields:
            documents.field_names.update(document.fields)
        if match and not documents.take_key(document, match):
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


def _other_id(seen: Findings, place: SourceLocation) -> str:
    """A hint at another column of ids in a table of documents."""
    columns = seen.taken.get(place.file, {})
    others = [
        name
        for name, kind in columns.items()
        if kind != "document_id" and folded(name).endswith(("id", "key"))
    ]
    return (
        f"; or is {others[0]!r} the id? {declaring('document_id', others[0])}"
        if others
        else ""
    )


def read_again(source: Source, name: str, digest: str) -> Iterator[Document]:
    """Yield the corpus once more.

    Raises:
        DataChanged: at the end, if it was not what it was at first; or where something can no longer be read.
    """
    seen, current = Findings(), hashlib.sha256()
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
    return hashlib.blake2b(plain_text(text).encode(), digest_size=12).digest()


def digest_line(row: list[Any]) -> bytes:
    """A document or a query as one line of JSON, for a digest."""
    return _ENCODER.encode(row).encode("utf-8", "surrogatepass") + b"\n"


def holders_of(
    wanted: Iterable[str], documents: Iterable[Document], whole: Collection[str] = ()
) -> dict[str, str]:
    """Return for each text the document that equals it, else the first that holds it; white space and case are ignored.

    One pass over the documents; a text that none holds is left out.

    Args:
        wanted: the texts.
        documents: the corpus.
        whole: those of the texts that a document must be, and not only hold.
    """
    wanted = set(wanted)
    same, holds = dict[str, str](), dict[str, str]()
    anchors: dict[tuple[str, ...], list[str]] = {}
    for key in wanted.difference(whole):
        anchors.setdefault(tuple(key.split(" ")[:ANCHOR]), []).append(key)
    short = [anchor for anchor in anchors if len(anchor) < ANCHOR]
    for document in documents:
        for text in (document.text, document.content):
            if (key := plain_text(text)) in wanted:
                same.setdefault(key, document.id)
        if not anchors:
            continue
        text = plain_text(document.content)
        words = text.split(" ")
        near = {
            tuple(words[i : i + ANCHOR]) for i in range(len(words) - ANCHOR + 1)
        } & anchors.keys()
        for anchor in (*near, *short):
            for key in anchors[anchor]:
                if key not in holds and key in text:
                    holds[key] = document.id
    return {**holds, **same}
