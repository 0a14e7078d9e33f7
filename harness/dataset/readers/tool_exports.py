"""Files of evaluation tools.

A `ToolExport` says under which names a tool writes questions, labels and answers. The
documents are elsewhere: the reference names them, or the tool's own folder has them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from harness.dataset.columns import (
    Columns,
    declaration,
    declared_field_names,
)
from harness.dataset.file import File, Files
from harness.dataset.listing import file_named
from harness.dataset.query_tables import DOCUMENT_TABLE_STEMS
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers.dataset_folder import (
    find_folder,
    find_table,
    open_documents,
)
from harness.dataset.readers.shards import list_table_files, read_first_row
from harness.dataset.reference import DatasetReference, DeclaredColumn
from harness.dataset.row import Row
from harness.dataset.source import FunctionSource
from harness.dataset.table_source import RowSource, TableSource, rows_of_files
from harness.dataset.usual_names import DOCUMENT_NAMING_KINDS, FIELDS_KIND
from harness.dataset.written_values import parse_cell
from harness.english import first_names
from retrievers.errors import InputError, Problem
from retrievers.remedy import compose_remedy

MAX_SHOWN_NAMES = 3
"""Names, at most, that a message shows."""
DEFAULT_EXPORT_FILE = "testset.jsonl"
QUESTION_KEYS = ("question", "query", "input", "user_input")
USUAL_EXPORT_NAMES = {
    "query_id": ("id",),
    "contexts": ("reference_contexts",),
    "claims": ("claims",),
}


class ToolParts(NamedTuple):
    """The parts in the folder of a tool; empty if it writes no folder."""

    questions: str = ""
    """Name of the file of questions."""
    documents: str = ""
    """Name of the folder of documents."""


class ToolExport(NamedTuple):
    """The names under which a tool exports questions, labels and answers.

    A name such as `outputs.contexts` is a path into objects. The first of several names
    that a row has counts. Other keys are declared, for example
    columns = { query = "inputs.ask", relevant = "outputs.ids" }.
    """

    recognised: tuple[tuple[str, ...], ...]
    """Names by which rows are recognised: each row has one of each tuple."""
    names: Mapping[str, tuple[str, ...]]
    """Kind of column -> its names; if a row has no id, its number is used."""
    fields: tuple[str, ...] = ()
    """Further names whose values become fields of the query."""
    objects: tuple[str, ...] = ()
    """The objects with the question and with the answer, if these are objects."""
    parts: ToolParts = ToolParts()
    exported: frozenset[str] = frozenset()
    """Names of an exported data set; empty if further names do not matter.

    With any further name, such as `run_type`, rows may be what a system did.
    """

    def matches(self, reference: DatasetReference, files: Files) -> bool:
        """Whether the reference is a file that the tool wrote."""
        row = read_first_row(self._with_parts(reference), files)
        if not row.cells:
            return False
        return not any(row.cells.keys().isdisjoint(names) for names in self.recognised)

    def read(self, reference: DatasetReference, files: Files) -> FunctionSource:
        """Open the queries; the reference names the documents.

        Raises:
            InputError: no documents are named, or they do not exist.
        """
        reference = self._with_parts(reference)
        tables = list_table_files(reference, files)
        if not tables:
            names = reference.queries or (DEFAULT_EXPORT_FILE,)
            tables = [file_named(files, names[0], reference.folder)]
        is_file = not reference.scheme and reference.folder.is_file()
        folder = find_folder(reference, {} if is_file else files)
        has_table = find_table(folder.files, DOCUMENT_TABLE_STEMS) is not None
        if reference.documents is None and not has_table:
            remedy = (
                'this export has the questions alone: documents = "…", '
                "a folder or a table of documents"
            )
            raise InputError(Problem(reference.name, "names no documents", remedy))
        query_table = self._query_table(reference, tables)
        return FunctionSource(
            documents=open_documents(reference, folder),
            queries=query_table.queries,
            labels=query_table.labels,
        )

    def _with_parts(self, reference: DatasetReference) -> DatasetReference:
        """Return the file of questions in the tool's own folder, with its documents."""
        questions, documents = self.parts
        if reference.scheme or not questions:
            return reference
        folder = reference.folder
        if not folder.is_dir():
            folder = folder.parent
        question_file = folder / questions
        if not question_file.is_file():
            return reference
        if reference.folder not in (folder, question_file):
            return reference
        document_folder = documents if (folder / documents).is_dir() else None
        return replace(
            reference,
            path=question_file,
            documents=reference.documents or document_folder,
        )

    def _query_table(
        self, reference: DatasetReference, tables: Sequence[File]
    ) -> TableSource:
        # The documents of an export are in no order: each of them has grade 1.
        declared: list[DeclaredColumn] = []
        for kind, column in Columns(reference.columns).declared:
            kind_of_labels = "label_document" if kind == "relevant" else kind
            declared.append(DeclaredColumn(kind_of_labels, column))
        columns = Columns(tuple(declared), usual_names=self.names)
        query_rows = partial(self._query_rows, rows_of_files(*tables), columns)
        return TableSource(rows_of_files(), query_rows, None, columns)

    def _query_rows(
        self, rows: RowSource, columns: Columns, problems: ReadProblems
    ) -> Iterator[Row]:
        """Yield the used columns of each row, without empty values."""
        names = chain.from_iterable(self.names.values())
        declared_paths = [column for _, column in columns.declared]
        paths = [*names, *declared_paths, *self.fields]
        used_columns = {path.partition(".")[0] for path in paths}
        used_columns -= set(declared_field_names(columns.declared))
        are_declared = any(map(columns.is_declared, DOCUMENT_NAMING_KINDS))
        for number, row in enumerate(rows(problems)):
            cells: dict[str, Any] = {"id": f"q{number}"}
            for column, cell in row.cells.items():
                if column in used_columns and not _is_empty(cell):
                    cells[column] = _without_empty_values(cell)
            query_row = self._with_usual_paths(Row(row.location, cells), columns)
            others = [key for key in row.cells if key not in self.exported]
            if self.exported and others and not are_declared:
                labels = self._label_paths(query_row, columns)
                _report_returned(row, others, labels, problems)
                are_declared = bool(labels)  # so that later rows add no problem
            yield query_row

    def _label_paths(self, row: Row, columns: Columns) -> list[DeclaredColumn]:
        """Return the paths of a row that name documents, with their kinds."""
        paths = [(kind, columns.name(kind, row)) for kind in DOCUMENT_NAMING_KINDS]
        return [DeclaredColumn(kind, path) for kind, path in paths if path is not None]

    def _with_usual_paths(self, row: Row, columns: Columns) -> Row:
        """Return a row in which an only text is under a usual name.

        The only text of an object is the question, and a text instead of an object is
        the answer.
        """
        cells = dict(row.cells)
        new_row = Row(row.location, cells)
        # A tool that names its columns has no objects.
        for column, kind in zip(self.objects, ("query", "reference"), strict=False):
            cell = parse_cell(row.cells.get(column))
            text = _only_text(cell, may_be_object=kind == "query")
            if text is not None and columns.name(kind, new_row) is None:
                key = self.names[kind][0].partition(".")[2]
                cells[column] = {key: text}
        return new_row


def _report_returned(
    row: Row,
    others: Sequence[str],
    labels: Sequence[DeclaredColumn],
    problems: ReadProblems,
) -> None:
    """Add a problem for labels that may be what a system returned.

    Args:
        row: of a file that has them.
        others: its columns that the tool's data sets do not have.
        labels: paths that would be labels.
        problems: takes the problems.
    """
    shown = first_names([*map(repr, others)], MAX_SHOWN_NAMES)
    for kind, path in labels:
        problems.add(
            row.location.file,
            f"{path!r} may be what a system returned: "
            f"rows have {shown}, unlike this tool's data sets",
            compose_remedy(
                "if people chose these documents: ",
                declaration(kind, path),
                "; if a system did: ",
                declaration(FIELDS_KIND, path.partition(".")[0]),
            ),
        )


def _only_text(cell: Any, *, may_be_object: bool) -> str | None:
    """Return the only text in a cell; None if there are several, or none.

    Args:
        cell: a text or an object.
        may_be_object: whether the text may be in an object.
    """
    if isinstance(cell, str):
        return cell
    if not may_be_object or not isinstance(cell, dict):
        return None
    texts = [value for value in cell.values() if isinstance(value, str)]
    return texts[0] if len(texts) == 1 else None


def _is_empty(cell: Any) -> bool:
    return cell in (None, "")


def _without_empty_values(cell: Any) -> Any:
    """Return a value; an object without its empty values."""
    if not isinstance(cell, dict):
        return cell
    return {key: value for key, value in cell.items() if not _is_empty(value)}


def _object_export(inputs: str, outputs: str, exported: str = "") -> ToolExport:
    """Return the export of a tool that does not define the names in its objects.

    Usual names are recognised, in outputs before those in metadata.

    Args:
        inputs: the key of the question, or of the object with it.
        outputs: the key of the answer.
        exported: the names of an exported data set, with spaces between them.
    """

    def paths(*keys: str) -> tuple[str, ...]:
        return tuple(f"{part}.{key}" for key in keys for part in (outputs, "metadata"))

    return ToolExport(
        recognised=((inputs,), (outputs,)),
        names={
            "query_id": ("id",),
            "query": tuple(f"{inputs}.{key}" for key in QUESTION_KEYS),
            "label_document": paths("reference_context_ids", "document_ids", "doc_ids"),
            "contexts": paths("reference_contexts", "contexts"),
            "reference": (f"{outputs}.reference",),
            "claims": (f"{outputs}.claims",),
        },
        fields=("metadata",),
        objects=(inputs, outputs),
        exported=frozenset(exported.split()),
    )


RAGAS = ToolExport(
    recognised=(("user_input",), ("reference_contexts", "reference_context_ids")),
    names={
        **USUAL_EXPORT_NAMES,
        "query": ("user_input", "question", "query"),
        "label_document": ("reference_context_ids",),
        "reference": ("reference",),
    },
    fields=("synthesizer_name", "persona_name", "query_style", "query_length"),
)
"""Test sets of Ragas, as `SingleTurnSample` in `dataset_schema.py` (ragas 0.4.3).

They are JSON Lines, JSON, CSV or Parquet.
"""
LANGSMITH = _object_export(
    "inputs",
    "outputs",
    "id example_id dataset_id inputs outputs metadata created_at modified_at "
    "source_run_id runs attachments split splits",
)
"""Examples of a LangSmith data set (langsmith 0.15.0), JSON Lines or JSON."""
PHOENIX = _object_export(
    "input", "output", "id node_id example_id input output metadata updated_at splits"
)
"""`Dataset.to_dict()` of arize-phoenix-client 3.5.0 as JSON."""
LANGFUSE = _object_export("input", "expectedOutput")
"""Items of a Langfuse data set, as `GET /api/public/dataset-items` returns them."""
LLAMA_INDEX_RAG = ToolExport(
    recognised=(("query",), ("reference_contexts",), ("reference_answer",)),
    names={
        **USUAL_EXPORT_NAMES,
        "query": ("query",),
        "reference": ("reference_answer",),
    },
    parts=ToolParts("rag_dataset.json", "source_files"),
)
"""LlamaIndex's saved LabelledRagDataset, alone or in the folder of a download."""
