"""Tables that may hold the queries of a folder."""

import shlex
from pathlib import PurePosixPath
from typing import NamedTuple

from harness.dataset.file import Files
from harness.dataset.judgment import JUDGMENTS_FILE
from harness.dataset.read_problems import ReadProblems
from harness.dataset.row import NO_ROW
from harness.dataset.rows import TABLE_SUFFIXES, read_file_rows
from harness.dataset.usual_names import is_label_name, usual_column
from retrievers.remedy import Option, Remedy, Setting, compose_remedy

MAX_EXAMINED_TABLES = 20
"""Tables of a folder that are opened to look for queries."""
MARKDOWN_QUERIES = "queries.json"
"""The file of queries in a folder of Markdown."""
DOCUMENT_TABLE_STEMS = ("documents", "corpus", "docs", "passages")
"""Names of a table of documents, without suffixes and in lower case."""
TEXT_NAME = "text"
"""The name of a column of queries, or of documents: it shows nothing."""


class QueryTable(NamedTuple):
    """A table with a column of queries under another name than `queries`."""

    path: str
    column: str
    has_labels: bool
    """Whether the name of a column says that it has labels."""

    def remedy(self) -> Remedy:
        """Return how an experiment and an option name the table."""
        return compose_remedy(
            f"{self.path!r} has a column {self.column!r}: if it holds the queries, ",
            Setting("queries", self.path),
            Option(f"--queries {shlex.quote(self.path)}"),
        )


def find_query_table(files: Files) -> QueryTable | None:
    """Return the likely table of queries, one with labels first; None if none is."""
    tables: list[QueryTable] = []
    paths = [path for path, file in files.items() if file.suffix in TABLE_SUFFIXES]
    for path in paths[:MAX_EXAMINED_TABLES]:
        name = PurePosixPath(path)
        if name.name == JUDGMENTS_FILE or name.stem.lower() in DOCUMENT_TABLE_STEMS:
            continue
        first_row = next(read_file_rows(files[path], ReadProblems()), NO_ROW)
        columns = tuple(map(str, first_row.column_names))
        others = tuple(column for column in columns if column.lower() != TEXT_NAME)
        query_column = usual_column("query", others)
        if query_column is not None:
            has_labels = any(map(is_label_name, columns))
            tables.append(QueryTable(path, query_column, has_labels))
    return max(tables, key=lambda table: table.has_labels, default=None)
