"""AutoRAG's pair of tables."""

from collections.abc import Iterator, Sequence

from harness.dataset.columns import Columns
from harness.dataset.file import File, Files
from harness.dataset.listing import file_named, list_files
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import DatasetReference
from harness.dataset.source import FormatReader, SourceLocation, TableRow
from harness.dataset.table_source import TableSource, rows_of_files

AUTORAG_FILES = ("corpus.parquet", "qa.parquet")
AUTORAG_COLUMNS = {
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
        and reference.folder.name in AUTORAG_FILES
    ):
        files = list_files(reference.folder.parent)
    pairs = (
        [files.get(f"{folder}{name}") for name in AUTORAG_FILES]
        for folder in ("", "data/")
    )
    return next(([*filter(None, pair)] for pair in pairs if all(pair)), ())


def _read_pair(reference: DatasetReference, files: Files) -> TableSource:
    """Open the pair; its labels are groups, all needed, each of alternatives, and a plain list is one group."""
    labels, pair = AUTORAG_COLUMNS["relevant"], _pair(reference, files)
    texts, asked = map(
        rows_of_files,
        pair or (file_named(files, name, reference.folder) for name in AUTORAG_FILES),
    )

    def questions(problems: ReadProblems) -> Iterator[tuple[SourceLocation, TableRow]]:
        for place, row in asked(problems):
            groups = row.get(labels)
            if isinstance(groups, list) and not any(
                isinstance(one, list) for one in groups
            ):
                groups = [groups]
            used = {
                name: value
                for name, value in row.items()
                if name in (*AUTORAG_COLUMNS.values(), "generation_gt")
            }
            yield (
                place,
                {**used, labels: [[groups]] if isinstance(groups, str) else groups},
            )

    return TableSource(texts, questions, None, Columns(AUTORAG_COLUMNS))


AUTORAG = FormatReader(
    lambda reference, files: bool(_pair(reference, files)), _read_pair
)
"""AutoRAG 0.3.27."""
