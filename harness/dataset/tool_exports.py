"""What evaluation tools write: for each tool one row that says under which names it keeps what.

Ragas, LangSmith, Phoenix and Langfuse export questions, with ids or texts of the documents that answer them; the
documents are where the reference says. embench, LlamaIndex and AutoRAG write documents and labels, too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from harness.dataset.columns import Columns
from harness.dataset.dataset_model import DatasetReference
from harness.dataset.files import File, Files, Reader, listing, pick
from harness.dataset.rows import Row, read_json
from harness.dataset.source import Findings, Parts, SourceLocation, written_value
from harness.dataset.table_folder import (
    DOCUMENTS,
    documents_of,
    first_row,
    looked_in,
    named,
    table_files,
)
from harness.dataset.table_source import RowSource, TableSource, rows_of
from retrievers.errors import InputError, Problem
from retrievers.ids import document_id


class Export(NamedTuple):
    """Under which names a tool keeps questions and what they should rest on.

    A name such as `outputs.contexts` is a path into objects. Of several names the first that a row has counts; keys of
    one's own are declared: columns = { query = "inputs.ask", relevant = "outputs.ids", reference = "outputs.answer" }.
    """

    recognised: tuple[tuple[str, ...], ...]
    """Its rows have one name of each; of a JSON object whose rows are under a key, the object itself."""
    names: Mapping[str, tuple[str, ...]]
    """Kind of column -> its names; where a row has no id, its number is used."""
    fields: tuple[str, ...] = ()
    """Further names whose values become fields of the query."""
    objects: tuple[str, ...] = ()
    """What holds the question and what holds the answer, where these are objects."""
    parts: tuple[str, str] = ("", "")
    """The file of questions and the folder of documents, where the tool writes a folder of its own."""

    def _within(self, reference: DatasetReference) -> DatasetReference:
        """The questions of the tool's own folder, with the documents beside them."""
        questions, documents = self.parts
        if reference.scheme or not questions:
            return reference
        folder = (
            reference.folder if reference.folder.is_dir() else reference.folder.parent
        )
        if not (folder / questions).is_file() or reference.folder not in (
            folder,
            folder / questions,
        ):
            return reference
        beside = documents if (folder / documents).is_dir() else None
        return replace(
            reference, path=folder / questions, documents=reference.documents or beside
        )

    def matches(self, reference: DatasetReference, files: Files) -> bool:
        """Whether the reference is a file that the tool wrote."""
        row = first_row(self._within(reference), files)
        return bool(row) and all(
            any(name in row for name in names) for names in self.recognised
        )

    def read(self, reference: DatasetReference, files: Files) -> Parts:
        """Open the queries; the documents are where the reference says.

        Raises:
            InputError: no documents are named, or they are not there.
        """
        reference = self._within(reference)
        names = reference.queries or ("testset.jsonl",)
        tables = table_files(reference, files) or [
            pick(files, names[0], reference.folder)
        ]
        folder, beside = looked_in(
            reference,
            {} if not reference.scheme and reference.folder.is_file() else files,
        )
        if reference.documents is None and named(beside, DOCUMENTS) is None:
            remedy = 'this export has the questions alone: documents = "…", a folder or a table of documents'
            raise InputError(Problem(reference.name, "names no documents", remedy))
        # Documents of an export are named in no order: each has grade 1.
        declared = {
            "label_document" if kind == "relevant" else kind: name
            for kind, name in Columns(reference.columns).declared.items()
        }
        columns = Columns(declared, known=self.names)
        asked = TableSource(
            rows_of(), partial(self._rows, rows_of(*tables), columns), None, columns
        )
        return Parts(
            documents_of(reference, folder, beside), asked.queries, asked.labels
        )

    def _rows(
        self, rows: RowSource, columns: Columns, problems: Findings
    ) -> Iterator[tuple[SourceLocation, Row]]:
        """What is used of each row; the only text of an object is the question, and a text alone the answer."""
        paths = [*chain(*self.names.values()), *columns.declared.values(), *self.fields]
        used = {path.partition(".")[0] for path in paths}
        for number, (place, whole) in enumerate(rows(problems)):
            row: dict[str, Any] = {"id": f"q{number}"}
            row |= {
                name: _filled(value)
                for name, value in whole.items()
                if name in used and value not in (None, "")
            }
            for name, kind in zip(self.objects, ("query", "reference"), strict=False):
                held = written_value(row.get(name))
                texts = (
                    [one for one in held.values() if isinstance(one, str)]
                    if isinstance(held, dict)
                    else [held]
                )
                alone = (
                    len(texts) == 1
                    and isinstance(texts[0], str)
                    and (kind == "query" or held is texts[0])
                )
                if alone and columns.name(kind, row) is None:
                    row[name] = {self.names[kind][0].partition(".")[2]: texts[0]}
            yield place, row


def _filled(value: Any) -> Any:
    """A value; an object without what is empty in it."""
    return (
        {key: held for key, held in value.items() if held not in (None, "")}
        if isinstance(value, dict)
        else value
    )


def _of_objects(inputs: str, outputs: str) -> Export:
    """The names of a tool that fixes none within its objects: the usual ones, those of outputs before metadata's."""

    def within(*names: str) -> tuple[str, ...]:
        return tuple(
            f"{part}.{name}" for name in names for part in (outputs, "metadata")
        )

    asked = tuple(
        f"{inputs}.{name}" for name in ("question", "query", "input", "user_input")
    )
    return Export(
        recognised=((inputs,), (outputs,)),
        names={
            "query_id": ("id",),
            "query": asked,
            "label_document": within(
                "reference_context_ids", "document_ids", "doc_ids"
            ),
            "contexts": within("reference_contexts", "contexts"),
            "reference": (f"{outputs}.reference",),
            "claims": (f"{outputs}.claims",),
        },
        fields=("metadata",),
        objects=(inputs, outputs),
    )


USUAL = {
    "query_id": ("id",),
    "contexts": ("reference_contexts",),
    "claims": ("claims",),
}
RAGAS = Export(
    recognised=(("user_input",), ("reference_contexts", "reference_context_ids")),
    names={
        **USUAL,
        "query": ("user_input", "question", "query"),
        "label_document": ("reference_context_ids",),
        "reference": ("reference",),
    },
    fields=("synthesizer_name", "persona_name", "query_style", "query_length"),
)
"""Test sets of Ragas, as SingleTurnSample has it (ragas 0.4.3, `dataset_schema.py`): JSON Lines, JSON, CSV, Parquet."""
LANGSMITH = _of_objects("inputs", "outputs")
"""Examples of a LangSmith data set (langsmith 0.15.0), JSON Lines or JSON."""
PHOENIX = _of_objects("input", "output")
"""`Dataset.to_dict()` of arize-phoenix-client 3.5.0 as JSON."""
LANGFUSE = _of_objects("input", "expectedOutput")
"""Items of a Langfuse data set, as its interface gives them (`GET /api/public/dataset-items`)."""
LLAMA_INDEX_RAG = Export(
    recognised=(("query",), ("reference_contexts",), ("reference_answer",)),
    names={**USUAL, "query": ("query",), "reference": ("reference_answer",)},
    parts=("rag_dataset.json", "source_files"),
)
"""LlamaIndex's LabelledRagDataset as it saves itself, alone or in the folder that its downloads are."""


class KeyedFile(NamedTuple):
    """A JSON object with `queries` and `corpus`, texts by id, and under a key the documents of each query."""

    labels: str
    """Grades by document; or a list in no order, whose documents have grade 1."""

    def matches(self, reference: DatasetReference, files: Files) -> bool:
        """Whether the reference is such a file."""
        return holds_keys(
            _only_file(reference, files), "queries", "corpus", self.labels
        )

    def read(self, reference: DatasetReference, files: Files) -> TableSource:
        """Open the file."""
        reference = _only_file(reference, files)
        if reference.scheme or not reference.folder.is_file():
            raise InputError(
                Problem(reference.name, "is not a file", "name the JSON file itself")
            )
        path, whole = reference.folder, read_json(File(reference.folder))
        held: dict[str, Any] = whole if isinstance(whole, dict) else {}
        if wrong := [
            key
            for key in ("corpus", "queries", self.labels)
            if not isinstance(held.get(key), dict)
        ]:
            raise InputError(
                Problem(
                    str(path),
                    f"{wrong[0]!r} is missing, or not an object",
                    "its keys are ids",
                )
            )

        def rows_under(
            key: str, row_of: Callable[[Any], Row], _: Findings
        ) -> Iterator[tuple[SourceLocation, Row]]:
            for id_, written in held[key].items():
                yield (
                    SourceLocation(Path(f"{path}: {key}[{id_!r}]")),
                    {"_id": id_, **row_of(written)},
                )

        return TableSource(
            partial(
                rows_under,
                "corpus",
                lambda written: (
                    written if isinstance(written, dict) else {"text": written}
                ),
            ),
            partial(rows_under, "queries", lambda written: {"text": written}),
            partial(rows_under, self.labels, _unordered),
        )


def _unordered(written: Any) -> Row:
    """The documents of a query; those of a list have grade 1, since it has no order."""
    ids = [document_id(one) for one in written] if isinstance(written, list) else [None]
    return {"relevant": written if None in ids else dict.fromkeys(ids, 1)}


EMBENCH = KeyedFile("qrels")
"""embench 0.1.0."""
LLAMA_INDEX = KeyedFile("relevant_docs")
"""LlamaIndex's EmbeddingQAFinetuneDataset as it saves itself (llama-index-finetuning 0.4.2)."""


PAIR = ("corpus.parquet", "qa.parquet")
COLUMNS = {
    "document_id": "doc_id",
    "text": "contents",
    "query_id": "qid",
    "query": "query",
    "relevant": "retrieval_gt",
}
"""Of AutoRAG's two tables, in a folder or in the `data` of a project; answers are called as they are known to be."""


def _pair(reference: DatasetReference, files: Files) -> Sequence[File]:
    """AutoRAG's two tables: in a folder, in the data of a project, or in the folder of one of them."""
    if (
        not reference.scheme
        and reference.folder.is_file()
        and reference.folder.name in PAIR
    ):
        files = listing(reference.folder.parent)
    pairs = (
        [files.get(f"{folder}{name}") for name in PAIR] for folder in ("", "data/")
    )
    return next(([*filter(None, pair)] for pair in pairs if all(pair)), ())


def _read_pair(reference: DatasetReference, files: Files) -> TableSource:
    """Open the pair; its labels are groups, all needed, each of alternatives, and a plain list is one group."""
    labels, pair = COLUMNS["relevant"], _pair(reference, files)
    texts, asked = map(
        rows_of, pair or (pick(files, name, reference.folder) for name in PAIR)
    )

    def questions(problems: Findings) -> Iterator[tuple[SourceLocation, Row]]:
        for place, row in asked(problems):
            groups = row.get(labels)
            if isinstance(groups, list) and not any(
                isinstance(one, list) for one in groups
            ):
                groups = [groups]
            used = {
                name: value
                for name, value in row.items()
                if name in (*COLUMNS.values(), "generation_gt")
            }
            yield (
                place,
                {**used, labels: [[groups]] if isinstance(groups, str) else groups},
            )

    return TableSource(texts, questions, None, Columns(COLUMNS))


AUTORAG = Reader(lambda reference, files: bool(_pair(reference, files)), _read_pair)
"""AutoRAG 0.3.27."""


def _only_file(reference: DatasetReference, files: Files) -> DatasetReference:
    """The one JSON file of a folder that holds no other; else what was given."""
    if reference.scheme or not reference.folder.is_dir():
        return reference
    top = [file for name, file in files.items() if "/" not in name]
    return (
        replace(reference, path=top[0].path)
        if len(top) == 1 and top[0].suffix == ".json"
        else reference
    )


def holds_keys(reference: DatasetReference, *keys: str) -> bool:
    """Whether the reference is a JSON file whose keys are these."""
    if (
        reference.scheme
        or not reference.folder.is_file()
        or File(reference.folder).suffix != ".json"
    ):
        return False
    text = File(reference.folder).read().decode("utf-8", "replace")
    return text.lstrip("\ufeff \r\n\t").startswith("{") and all(
        f'"{key}"' in text for key in keys
    )
