"""Rankings that somebody saved."""

import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from retrievers.errors import BackendError, InputError, Problem, require_package
from retrievers.external import ExternalRetriever, is_finite_number
from retrievers.facts import Origin, RetrieverFacts
from retrievers.files.run_scores import RunContradictions, find_contradictions
from retrievers.files.text_files import file_digest, user_path
from retrievers.files.trec_files import read_run, stream_run
from retrievers.files.trec_lines import AddProblem, TrecLine, read_blocks
from retrievers.ids import document_id
from retrievers.meter import Meter
from retrievers.options.placeholders import expand
from retrievers.query import Query
from retrievers.ranking import Ranking, ranked

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
"""One row of a saved run."""


class SavedHits(NamedTuple):
    """The hits of one query, in the order of the file."""

    doc_ids: tuple[str, ...]
    scores: npt.ArrayLike


NO_SAVED_HITS = SavedHits((), ())


class NumberedRow(NamedTuple):
    """A row of a file that is not TREC lines."""

    number: int
    content: Any


RowReader = Callable[[Path], Iterator[NumberedRow]]


class SavedRun(ExternalRetriever):
    """Answers with the hits of a file: TREC lines (plain or gzip), or rows of JSON
    Lines or Parquet.
    """  # noqa: D205

    expands: ClassVar[bool] = True
    positional_option = "path"
    path: str
    """A TREC run, or *.jsonl or *.parquet with query_id, doc_id and score; seen from
    the working directory."""
    _path: Path
    _shown_path: str
    """The path in the manifest, and in messages about queries: as it is written if it
    has `${NAME}`, else the file's name. Problems of lines have the path itself."""
    _run: dict[str, SavedHits] | None = None
    """Query id -> its hits; None until the file is read."""

    def model_post_init(self, _: object) -> None:
        """Set the path; the file is read when it is checked or searched."""
        expanded_path = expand(self.path)
        self._path = user_path(expanded_path)
        has_variables = expanded_path != self.path
        self._shown_path = self.path if has_variables else self._path.name

    @property
    def facts(self) -> RetrieverFacts:
        """The file and the digest of its bytes."""
        digest = file_digest(self._path)
        return RetrieverFacts(origin=Origin(run=self._shown_path, sha256=digest))

    def check(self) -> None:
        """Read the file; raise InputError if it is missing, or a line is wrong."""
        self._read()

    def check_queries(self, query_ids: Collection[str]) -> None:
        """Raise InputError if the file answers none of these queries."""
        run = self._read()
        if run.keys().isdisjoint(query_ids):
            problem = f"answers none of the queries, but such as {next(iter(run))!r}"
            remedy = f"its ids have to be those of the data set: {min(query_ids)!r}"
            raise InputError(Problem(self._shown_path, problem, remedy))

    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Return each query's hits, by score.

        A query that the file lacks has none, and is noted.
        """
        run = self._read()
        with meter.stage("search", total=len(queries)):
            missing_queries = [query for query in queries if query.id not in run]
            for query in missing_queries:
                meter.note("not-answered-query", query.id)
            meter.count(texts=len(queries))
            # A single query is timed after all were answered: it may have no hits.
            is_timed = len(queries) == 1
            if queries and not is_timed and len(missing_queries) == len(queries):
                raise BackendError(
                    f"{self._shown_path} answers none of the queries, but such as "
                    f"{next(iter(run))!r}: its ids have to be those of the data set"
                )
            if not self._has_noted_hits:  # of the first search alone
                self._note_contradictions(self._contradictions(run), meter)
            hit_lists = [run.get(query.id, NO_SAVED_HITS) for query in queries]
            rankings = [ranked(hits.doc_ids, hits.scores, depth) for hits in hit_lists]
        return self._with_document_ids(rankings, meter)

    def _contradictions(self, run: Mapping[str, SavedHits]) -> RunContradictions:
        """Return the queries whose scores contradict the ranks in the file."""
        # Hits have no ranks any more: those of TREC lines are read from the file.
        has_ranks = _row_reader(self._path) is None
        return find_contradictions(
            ((query_id, hits.scores) for query_id, hits in run.items()),
            self._path if has_ranks else None,
        )

    def _read(self) -> dict[str, SavedHits]:
        """Return the hits of all queries; only the first call reads the file.

        They stay in memory: as arrays with shared ids they take a fraction of the space
        of dictionaries.
        """
        if self._run is None:
            line_reader = None
            row_reader = _row_reader(self._path)
            if row_reader is not None:
                line_reader = partial(_read_lines, row_reader, self._path)
            run: dict[str, SavedHits] = {}
            for query_id, doc_ids, scores in stream_run(self._path, line_reader):
                if query_id in run:  # its lines are not grouped: read them all again
                    run = _saved_hits(read_run(self._path, line_reader))
                    break
                run[query_id] = SavedHits(doc_ids, scores)
            self._run = run
        return self._run


def _saved_hits(run: Mapping[str, Mapping[str, float]]) -> dict[str, SavedHits]:
    """Return the hits of a run, with one text for each document id."""
    hits_by_query = {}
    for query_id, scores in run.items():
        doc_ids = tuple(map(sys.intern, scores))
        hits_by_query[query_id] = SavedHits(doc_ids, np.array([*scores.values()]))
    return hits_by_query


def _row_reader(path: Path) -> RowReader | None:
    """Return what reads the rows of a file; None for TREC lines.

    The last suffix decides: `.jsonl.gz` is read as TREC lines.
    """
    suffix = path.suffix.lower()
    if suffix in (".jsonl", ".ndjson"):
        return _read_json_rows
    if suffix == ".parquet":
        return _read_parquet_rows
    return None


def _read_lines(
    read_rows: RowReader, path: Path, add_problem: AddProblem
) -> Iterator[TrecLine]:
    """Yield the rows of a file as lines of a run; report rows that are not."""
    for number, row in read_rows(path):
        query_id = document_id(_first_cell(row, RUN_QUERY_COLUMNS))
        doc_id = document_id(_first_cell(row, RUN_DOCUMENT_COLUMNS))
        score = _first_cell(row, RUN_SCORE_COLUMNS)
        if query_id is None or doc_id is None or score is None:
            add_problem(number, "has no query, document or score", RUN_ROW_EXAMPLE)
        elif not is_finite_number(score):
            problem = f"{score!r:.60} is not a score"
            add_problem(number, problem, "a score is a finite number")
        else:
            yield TrecLine(number, query_id, doc_id, float(score))


def _first_cell(row: Any, columns: Iterable[str]) -> Any:
    """Return the cell of the first of these columns in a row; None without any."""
    if not isinstance(row, Mapping):
        return None
    return next((row[column] for column in columns if column in row), None)


def _read_json_rows(path: Path) -> Iterator[NumberedRow]:
    for first_number, block in read_blocks(path, RUN_ROW_EXAMPLE):
        for number, line in enumerate(block.split(b"\n"), first_number):
            try:
                if line.strip():
                    yield NumberedRow(number, json.loads(line.decode()))
            except (ValueError, RecursionError) as error:  # also: not UTF-8
                location = f"{path}:{number}"
                problem = f"is not JSON: {error}"
                raise InputError(Problem(location, problem, RUN_ROW_EXAMPLE)) from None


def _read_parquet_rows(path: Path) -> Iterator[NumberedRow]:
    with require_package(str(path), "pyarrow", "formats"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        with path.open("rb") as raw_file, pq.ParquetFile(raw_file) as file:
            rows = (row for batch in file.iter_batches() for row in batch.to_pylist())
            for number, row in enumerate(rows, 1):
                yield NumberedRow(number, row)
    except (pa.ArrowException, OSError) as error:
        problem = f"cannot be read as Parquet: {str(error).splitlines()[0]}"
        remedy = "write it again"
        reason = getattr(error, "strerror", None)
        if reason:  # of the file system: such as a file that does not exist
            problem = f"cannot be read: {reason}"
            remedy = RUN_ROW_EXAMPLE
        raise InputError(Problem(str(path), problem, remedy)) from None
