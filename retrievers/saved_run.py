"""Rankings that somebody saved."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from retrievers.errors import BackendError, InputError, Problem, require_package
from retrievers.external import ExternalRetriever, is_finite_number
from retrievers.files.text_files import file_digest
from retrievers.files.trec_files import read_run, stream_run
from retrievers.files.trec_lines import AddProblem, TrecLine, read_blocks
from retrievers.ids import document_id
from retrievers.meter import Meter
from retrievers.options.placeholders import expand
from retrievers.query import Query
from retrievers.ranking import Floats, Ranking, ranked

RUN_QUERY_COLUMNS = ("query_id", "query-id", "qid", "q_id", "query")
RUN_DOCUMENT_COLUMNS = (
    "doc_id",
    "document_id",
    "corpus-id",
    "corpus_id",
    "docno",
    "docid",
    "document",
)
RUN_SCORE_COLUMNS = ("score",)
RUN_ROW_EXAMPLE = '{"query_id": "q1", "doc_id": "d1", "score": 0.5}'
"""Of a saved run, as rows."""


class SavedRun(ExternalRetriever):
    """Answers with the hits of a file: TREC lines (plain or gzip), or rows of JSON Lines or Parquet."""

    expands: ClassVar[bool] = True
    positional_option = "path"
    path: str
    """A TREC run, or *.jsonl or *.parquet with query_id, doc_id and score; seen from the working directory."""
    _path: Path
    _shown: str
    _run: dict[str, tuple[tuple[str, ...], Floats]] | None = None
    """Query id -> documents and their scores, as they are in the file."""

    def model_post_init(self, _: object) -> None:
        """Name the file; it is read when it is checked or asked."""
        self._path = Path(expand(self.path)).expanduser()
        self._shown = self.path if expand(self.path) != self.path else self._path.name

    @property
    def provenance(self) -> Mapping[str, str]:
        """The file and the digest of its bytes."""
        return {"run": self._shown, "sha256": file_digest(self._path)}

    def check(self) -> None:
        """Read the file whole; raises InputError where it is none, or a line of it is wrong."""
        self._read()

    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Return each query's hits, by score; a query that the file lacks has none, and is noted."""
        run = self._read()
        with meter.stage("search", total=len(queries)):
            for query in queries:
                if query.id not in run:
                    meter.note("not-answered-query", query.id)
            meter.count(texts=len(queries))
            if len(queries) > 1 and not any(
                query.id in run for query in queries
            ):  # one alone is timed
                what = f"{self._shown} answers none of the queries, but such as {next(iter(run))!r}"
                raise BackendError(f"{what}: its ids have to be those of the data set")
            hits = [run.get(query.id, ((), ())) for query in queries]
            rankings = [ranked(documents, scores, depth) for documents, scores in hits]
        return self._recognised(rankings, meter)

    def _read(self) -> dict[str, tuple[tuple[str, ...], Floats]]:
        if self._run is None:
            rows = {
                ".jsonl": _json_rows,
                ".ndjson": _json_rows,
                ".parquet": _parquet_rows,
            }.get(self._path.suffix)
            lines = None if rows is None else partial(_lines, rows, self._path)
            # Runs are kept until the last one was asked: as arrays, whose documents they share, they take a fraction.
            run: dict[str, tuple[tuple[str, ...], Floats]] = {}
            for query, documents, scores in stream_run(self._path, lines):
                if query in run:  # its lines are not grouped
                    whole = read_run(self._path, lines)
                    run = {
                        id_: (tuple(map(sys.intern, one)), np.array([*one.values()]))
                        for id_, one in whole.items()
                    }
                    break
                run[query] = documents, scores
            self._run = run
        return self._run


def _lines(
    rows: Callable[[Path], Iterator[tuple[int, Any]]], path: Path, add: AddProblem
) -> Iterator[TrecLine]:
    for number, row in rows(path):
        query, document = (
            document_id(_value(row, names))
            for names in (RUN_QUERY_COLUMNS, RUN_DOCUMENT_COLUMNS)
        )
        score = _value(row, RUN_SCORE_COLUMNS)
        if query is None or document is None or score is None:
            add(number, "has no query, document or score", RUN_ROW_EXAMPLE)
        elif not is_finite_number(score):
            add(number, f"{score!r:.60} is not a score", "a score is a finite number")
        else:
            yield number, query, document, float(score)


def _value(row: Any, names: Iterable[str]) -> Any:
    return (
        next((row[name] for name in names if name in row), None)
        if isinstance(row, Mapping)
        else None
    )


def _json_rows(path: Path) -> Iterator[tuple[int, Any]]:
    for first, block in read_blocks(path, RUN_ROW_EXAMPLE):
        for number, line in enumerate(block.split(b"\n"), first):
            try:
                if line.strip():
                    yield number, json.loads(line.decode())
            except (ValueError, RecursionError) as error:  # of UTF-8, too
                raise InputError(
                    Problem(
                        f"{path}:{number}", f"is not JSON: {error}", RUN_ROW_EXAMPLE
                    )
                ) from None


def _parquet_rows(path: Path) -> Iterator[tuple[int, Any]]:
    with require_package(str(path), "pyarrow", "formats"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        with pq.ParquetFile(path) as file:
            rows = (row for batch in file.iter_batches() for row in batch.to_pylist())
            yield from enumerate(rows, 1)
    except (pa.ArrowException, OSError) as error:
        what = f"cannot be read as Parquet: {str(error).splitlines()[0]}"
        raise InputError(Problem(str(path), what, "write it again")) from None
