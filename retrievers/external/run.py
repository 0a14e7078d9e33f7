"""`kind = "run"`: rankings that another system saved, as a retriever among the others."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from retrievers.errors import InputError, Problem
from retrievers.external import ExternalRetriever
from retrievers.meter import Meter
from retrievers.remote.redaction import Expanded
from retrievers.runs import LONGEST_LINE, LineProblems, RunScores, read_run
from retrievers.types import Floats, Query, Ranking, ranked

QUERY = ("query_id", "query-id", "qid", "query")
DOCUMENT = ("doc_id", "document_id", "corpus-id", "corpus_id", "docno", "docid", "document")
SCORE = ("score",)
ROW = '{"query_id": "q1", "doc_id": "d1", "score": 0.5}'


class RunRetriever(ExternalRetriever):
    """Answers with the hits of a file: TREC lines (plain or gzip), or rows of JSON Lines or Parquet."""

    def __init__(self, *, path: str) -> None:
        """Name the file; it is read when it is checked or asked.

        Args:
            path: a TREC run, or *.jsonl or *.parquet with query_id, doc_id and score; seen from the working directory.
        """
        self._path = Path(path).expanduser()
        self._shown = path.written if isinstance(path, Expanded) else self._path.name
        self._run: dict[str, tuple[tuple[str, ...], Floats]] | None = None
        """Query id -> documents and their scores, as they stand in the file."""

    @property
    def provenance(self) -> Mapping[str, str]:
        """The file and the digest of its bytes."""
        with self._path.open("rb") as file:
            return {"run": self._shown, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}

    def check(self) -> None:
        """Read the file whole; raises InputError where it is none, or a line of it is wrong."""
        self._read()

    def search(self, queries: Sequence[Query], depth: int, meter: Meter) -> list[Ranking]:
        """Return each query's hits, by score; a query that the file lacks has none, and is noted."""
        run = self._read()
        with meter.stage("search", total=len(queries)):
            for query in queries:
                if query.id not in run:
                    meter.note("not-answered-query", query.id)
            meter.count(texts=len(queries))
            hits = [run.get(query.id, ((), ())) for query in queries]
            rankings = [ranked(documents, scores, depth) for documents, scores in hits]
        return self._recognised(rankings, meter)

    def _read(self) -> dict[str, tuple[tuple[str, ...], Floats]]:
        if self._run is None:
            if self._path.exists() and not self._path.is_file():  # it is read twice, which a pipe cannot be
                raise InputError(Problem(str(self._path), "is no regular file", "write it to a file first"))
            rows = {".jsonl": _json_rows, ".ndjson": _json_rows, ".parquet": _parquet_rows}.get(self._path.suffix)
            read = read_run(self._path) if rows is None else _gathered(self._path, rows(self._path))
            # Runs are kept until the last one was asked: as arrays they take a fraction, and share their documents.
            self._run = {
                query: (tuple(map(sys.intern, hits)), np.fromiter(hits.values(), np.float64, len(hits)))
                for query, hits in read.items()
            }
        return self._run


def _gathered(path: Path, rows: Iterable[tuple[int, Any]]) -> RunScores:
    run: RunScores = {}
    problems = LineProblems(path)
    for number, row in rows:
        query, document, score = (_value(row, names) for names in (QUERY, DOCUMENT, SCORE))
        if query is None or document is None or score is None:
            problems.add(number, "has no query, document or score", ROW)
        elif isinstance(score, bool) or not isinstance(score, int | float) or not _is_finite(score):
            problems.add(number, f"{score!r:.60} is no score", "a score is a finite number")
        elif str(document) in run.setdefault(str(query), {}):
            problems.add(number, f"document {document!r} is ranked twice for query {query!r}", "keep one")
        else:
            run[str(query)][str(document)] = float(score)
    problems.refuse(nothing=not run)
    return run


def _is_finite(score: float) -> bool:
    """Whether a score is a finite number; a whole number may be larger than any float."""
    return abs(score) <= sys.float_info.max


def _value(row: Any, names: Iterable[str]) -> Any:
    return next((row[name] for name in names if name in row), None) if isinstance(row, Mapping) else None


def _json_rows(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), 1):
                if len(raw) > LONGEST_LINE:
                    raise InputError(Problem(f"{path}:{number}", f"is longer than {LONGEST_LINE:,} bytes", ROW))
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                if line.strip():
                    try:
                        yield number, json.loads(line)
                    except RecursionError:
                        raise InputError(Problem(f"{path}:{number}", "is nested too deep", ROW)) from None
                    except ValueError as error:
                        raise InputError(Problem(f"{path}:{number}", f"is not JSON: {error}", ROW)) from None
    except OSError as error:
        raise InputError(Problem(str(path), f"cannot be read: {error.strerror}", "see that it is there")) from None
    except UnicodeDecodeError:
        raise InputError(Problem(str(path), "is not UTF-8", "save the file as UTF-8")) from None


def _parquet_rows(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        remedy = 'pip install pyarrow, or the extra "formats"'
        raise InputError(Problem(str(path), "needs the package pyarrow", remedy)) from None
    try:
        with pq.ParquetFile(path) as file:
            rows = (row for batch in file.iter_batches() for row in batch.to_pylist())
            yield from enumerate(rows, 1)
    except (pa.ArrowException, OSError) as error:
        what = f"is no Parquet file that can be read: {str(error).splitlines()[0]}"
        raise InputError(Problem(str(path), what, "write it again")) from None
