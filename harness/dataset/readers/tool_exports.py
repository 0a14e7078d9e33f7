"""Files of evaluation tools."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from harness.dataset.columns import Columns
from harness.dataset.file import Files
from harness.dataset.listing import file_named
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers.dataset_folder import (
    DOCUMENT_TABLE_STEMS,
    find_table,
    open_documents,
    search_folder,
)
from harness.dataset.readers.shards import list_table_files, read_first_row
from harness.dataset.reference import DatasetReference
from harness.dataset.source import FunctionSource, SourceLocation, TableRow
from harness.dataset.table_source import RowSource, TableSource, rows_of_files
from harness.dataset.written_values import parse_cell
from retrievers.errors import InputError, Problem


class ToolExport(NamedTuple):
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
        row = read_first_row(self._within(reference), files)
        return bool(row) and all(
            any(name in row for name in names) for names in self.recognised
        )

    def read(self, reference: DatasetReference, files: Files) -> FunctionSource:
        """Open the queries; the documents are where the reference says.

        Raises:
            InputError: no documents are named, or they are not there.
        """
        reference = self._within(reference)
        names = reference.queries or ("testset.jsonl",)
        tables = list_table_files(reference, files) or [
            file_named(files, names[0], reference.folder)
        ]
        folder, beside = search_folder(
            reference,
            {} if not reference.scheme and reference.folder.is_file() else files,
        )
        if (
            reference.documents is None
            and find_table(beside, DOCUMENT_TABLE_STEMS) is None
        ):
            remedy = 'this export has the questions alone: documents = "…", a folder or a table of documents'
            raise InputError(Problem(reference.name, "names no documents", remedy))
        # Documents of an export are named in no order: each has grade 1.
        declared = {
            "label_document" if kind == "relevant" else kind: name
            for kind, name in Columns(reference.columns).declared.items()
        }
        columns = Columns(declared, usual_names=self.names)
        asked = TableSource(
            rows_of_files(),
            partial(self._rows, rows_of_files(*tables), columns),
            None,
            columns,
        )
        return FunctionSource(
            open_documents(reference, folder, beside), asked.queries, asked.labels
        )

    def _rows(
        self, rows: RowSource, columns: Columns, problems: ReadProblems
    ) -> Iterator[tuple[SourceLocation, TableRow]]:
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
                held = parse_cell(row.get(name))
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


def _of_objects(inputs: str, outputs: str) -> ToolExport:
    """The names of a tool that fixes none within its objects: the usual ones, those of outputs before metadata's."""

    def within(*names: str) -> tuple[str, ...]:
        return tuple(
            f"{part}.{name}" for name in names for part in (outputs, "metadata")
        )

    asked = tuple(
        f"{inputs}.{name}" for name in ("question", "query", "input", "user_input")
    )
    return ToolExport(
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


USUAL_EXPORT_NAMES = {
    "query_id": ("id",),
    "contexts": ("reference_contexts",),
    "claims": ("claims",),
}
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
"""Test sets of Ragas, as SingleTurnSample has it (ragas 0.4.3, `dataset_schema.py`): JSON Lines, JSON, CSV, Parquet."""
LANGSMITH = _of_objects("inputs", "outputs")
"""Examples of a LangSmith data set (langsmith 0.15.0), JSON Lines or JSON."""
PHOENIX = _of_objects("input", "output")
"""`Dataset.to_dict()` of arize-phoenix-client 3.5.0 as JSON."""
LANGFUSE = _of_objects("input", "expectedOutput")
"""Items of a Langfuse data set, as its interface gives them (`GET /api/public/dataset-items`)."""
LLAMA_INDEX_RAG = ToolExport(
    recognised=(("query",), ("reference_contexts",), ("reference_answer",)),
    names={
        **USUAL_EXPORT_NAMES,
        "query": ("query",),
        "reference": ("reference_answer",),
    },
    parts=("rag_dataset.json", "source_files"),
)
"""LlamaIndex's LabelledRagDataset as it saves itself, alone or in the folder that its downloads are."""
