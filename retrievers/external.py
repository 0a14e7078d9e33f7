"""Systems beside ours: rankings that somebody saved, and a function of the user's own."""

import asyncio
import inspect
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import pairwise
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from retrievers.cache import Corpus
from retrievers.errors import BackendError, InputError, Problem, needing
from retrievers.ids import KnownDocuments, document_id, hit_id
from retrievers.meter import Meter
from retrievers.opening import file_digest
from retrievers.options import Configured, Text
from retrievers.placeholders import expand
from retrievers.runs import Add, Line, blocks_of, read_run, stream_run
from retrievers.types import (
    CONTROL,
    Document,
    Floats,
    Query,
    Ranking,
    Retriever,
    collapsed,
    ranked,
)
from retrievers.user_objects import NamedObject, called, wrap_user_errors

SHAPE = "for each query a list of ids, or of pairs of id and score, best first"
"""What a function returns."""
QUERY = ("query_id", "query-id", "qid", "q_id", "query")
DOCUMENT = (
    "doc_id",
    "document_id",
    "corpus-id",
    "corpus_id",
    "docno",
    "docid",
    "document",
)
SCORE = ("score",)
ROW = '{"query_id": "q1", "doc_id": "d1", "score": 0.5}'
"""Of a saved run, as rows."""
UnknownHits = Literal["", "irrelevant"]
MOST_UNKNOWN = 0.2
"""Share of the hits that may be no document of the data set."""
RISES = 10
"""Of scores that are given best first, from which on they are not chance."""


class ExternalRetriever(Configured, Retriever):
    """A retriever with an index of its own: its hits are only ids, matched with the documents by `KnownDocuments`."""

    own_index: ClassVar[bool] = True
    unknown_hits: UnknownHits = ""
    """"irrelevant" if its index holds more documents than the data set."""
    _known: KnownDocuments | None = None

    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Keep only ids and titles, to recognise the documents among the hits."""
        self._known = known_documents(documents)

    def _recognised(self, rankings: list[Ranking], meter: Meter) -> list[Ranking]:
        """The rankings under the ids of the documents, if these are known."""
        if self._known is None:
            return rankings
        return recognised(
            rankings, self._known, meter, irrelevant=bool(self.unknown_hits)
        )


def known_documents(documents: Iterable[Document]) -> KnownDocuments:
    """The ids and titles of a corpus, made once for all retrievers of a run."""
    made = documents.made if isinstance(documents, Corpus) else {}
    if "known" not in made:
        made["known"] = KnownDocuments()
        for document in documents:
            made["known"].add(document.id, document.title)
    found: KnownDocuments = made["known"]
    return found


def recognised(
    rankings: Sequence[Ranking],
    known: KnownDocuments,
    meter: Meter,
    *,
    irrelevant: bool = False,
) -> list[Ranking]:
    """Return rankings with the ids of the documents, matched where they are written otherwise; the rest is counted.

    Args:
        rankings: what a retriever answered.
        known: the documents.
        meter: takes the notes: hits that were matched, and hits that are unknown. These keep their places.
        irrelevant: whether any number of them may be unknown.

    Raises:
        BackendError: more than one hit in five is unknown; or an id is none that a document can have.
    """
    if known.ids.issuperset(set().union(*(ranking.doc_ids for ranking in rankings))):
        return list(rankings)
    hits = Counter(doc for ranking in rankings for doc in ranking.doc_ids)
    matches = known.match(hits)
    unknown = {doc: number for doc, number in hits.items() if doc not in matches}
    for doc_id in sorted(unknown):
        if not doc_id.strip() or CONTROL.search(doc_id):
            what = "it is blank, or holds a control character"
            raise BackendError(
                f"{doc_id[:80]!r} is among the hits, which is not an id: {what}"
            )
        meter.note("not-in-corpus", doc_id)
    lost = sum(unknown.values())
    if lost > MOST_UNKNOWN * hits.total() and not irrelevant:
        theirs, ours = next(iter(unknown)), min(known.ids, default="nothing")
        remedy = 'give the same ids on both sides, or, if its index holds more documents, unknown_hits = "irrelevant"'
        raise BackendError(
            f"{lost:,} of {hits.total():,} hits have unknown ids, such as {theirs!r}; "
            f"ids of documents look like {ours!r}: {remedy}"
        )
    if lost:
        meter.count(foreign_hits=lost, hits_given=hits.total())
    renamed = {
        doc: match.document for doc, match in matches.items() if match.document != doc
    }
    if not renamed:
        return list(rankings)
    for doc, document in renamed.items():
        meter.note("matched-hit", f"{doc} -> {document} (by {matches[doc].by})")
    return [
        one if renamed.keys().isdisjoint(one.doc_ids) else collapsed(one, renamed)
        for one in rankings
    ]


def refuse_distances(answers: Iterable[Sequence[float]]) -> None:
    """Raise BackendError where scores of hits, best first, rise ten times and never fall: they would be reversed.

    >>> refuse_distances([[3.0, 1.0, *range(20)]])  # scores of hits in no order
    """
    steps = [later - first for scores in answers for first, later in pairwise(scores)]
    if sum(step > 0 for step in steps) >= RISES and min(steps) >= 0:
        what = "its scores rise from the first hit to the last, as distances do"
        raise BackendError(
            f"{what}: give hits best first, the highest score the best; of distances, none or negated"
        )


def accepted(
    answers: Mapping[str, Ranking], known: KnownDocuments, depth: int, meter: Meter
) -> dict[str, Ranking]:
    """Return the rankings of another package's retriever, by query id, in our order and at most `depth` hits long.

    Raises:
        BackendError: a query has a document twice, or as `recognised` does.

    >>> accepted({"q": ranked(["a", "b"], [1, 2])}, KnownDocuments({"a", "b"}), 1, Meter())["q"].doc_ids
    ('b',)
    """
    for query_id, ranking in answers.items():
        if len(set(ranking.doc_ids)) < len(ranking):
            raise BackendError(f"query {query_id!r} has a document twice")
    kept = [
        ranked(ranking.doc_ids, ranking.scores, depth) for ranking in answers.values()
    ]
    return dict(zip(answers, recognised(kept, known, meter), strict=True))


class Function(ExternalRetriever):
    """Asks a function, which may be async, for the hits of queries.

    One that is named is called as `function(queries: list[str], depth: int)` and returns a list for each query; one
    that is given in Python, `Function(search)`, as `function(query, depth)`. A list holds ids, or pairs of id and
    score, best first; where the ids are places in a list of texts, numbers, as NumPy's argsort gives them.
    """

    first = "call"
    call: Text
    """"package.module:function", found as Python finds modules, the working directory included."""
    batch_size: Annotated[int, Field(ge=0)] = 0
    """Queries a call; 0: all of them at once."""
    _function: Callable[[list[str], int], Any] | None = None

    def __init__(self, *given: Any, **options: Any) -> None:
        """Take the function, or its name; nothing is imported before it is checked or asked."""
        if given and callable(given[0]):
            given, options = (
                (NamedObject.of(_each(given[0])),),
                {"batch_size": 1, **options},
            )
        super().__init__(*given, **options)

    @property
    def provenance(self) -> Mapping[str, str]:
        """What was called, and the version of its package where that has one."""
        module = sys.modules.get(self.call.partition(":")[0].partition(".")[0])
        version = getattr(module, "__version__", None)
        return {"call": self.call, **({"version": str(version)} if version else {})}

    def check(self) -> None:
        """Import the function: the code of its module runs."""
        self._imported()

    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Call the function on the texts of the queries.

        Raises:
            BackendError: it raised an exception, or did not return one list of hits per query.
        """
        size = self.batch_size or max(len(queries), 1)
        rankings: list[Ranking] = []
        with meter.stage("search", total=len(queries)):
            for start in range(0, len(queries), size):
                some = queries[start : start + size]
                answers = self._called([query.text for query in some], depth)
                hits = [
                    self._hits(query, given)
                    for query, given in zip(some, answers, strict=True)
                ]
                refuse_distances(scores for _, scores in hits)
                rankings += [ranked(ids, scores, depth) for ids, scores in hits]
                meter.count(calls=1, texts=len(some))
        return self._recognised(rankings, meter)

    def _called(self, texts: list[str], depth: int) -> list[Any]:
        with wrap_user_errors((self.call,)):
            returned = self._imported()(texts, depth)
            answers = list(
                asyncio.run(returned) if inspect.iscoroutine(returned) else returned
            )
        if len(answers) != len(texts):
            raise BackendError(
                f"{self.call} returned {len(answers)} lists for {len(texts)} queries; {SHAPE}"
            )
        return answers

    def _hits(self, query: Query, hits: Any) -> tuple[list[str], list[float]]:
        try:
            if isinstance(
                hits, str | Mapping | AbstractSet
            ):  # which have no order, or none that was meant
                raise TypeError
            pairs = [
                (hit, None) if isinstance(hit, str | Real) else (hit[0], float(hit[1]))
                for hit in hits
            ]
        except (TypeError, ValueError, IndexError, KeyError, OverflowError):
            raise BackendError(
                f"{self.call}: the hits of query {query.id!r} cannot be read; {SHAPE}"
            ) from None
        named = [hit_id(hit) for hit, _ in pairs]
        ids = [one for one in named if one is not None]
        scores = [
            float(len(pairs) - place) if score is None else score
            for place, (_, score) in enumerate(pairs)
        ]
        if len(ids) < len(pairs) or not all(map(math.isfinite, scores)):
            places = range(len(pairs))
            wrong = next(
                pairs[place]
                for place in places
                if named[place] is None or not math.isfinite(scores[place])
            )
            shape = "an id is a text or a whole number, a score a finite number"
            raise BackendError(
                f"{self.call}: {wrong!r:.60} is among the hits of query {query.id!r}; {shape}"
            )
        if len(set(ids)) < len(ids):
            raise BackendError(f"{self.call}: query {query.id!r} has a document twice")
        return ids, scores

    def _imported(self) -> Callable[[list[str], int], Any]:
        if self._function is None:
            self._function = called(self.call)
        return self._function


def _each(function: Callable[[str, int], Any]) -> Callable[[list[str], int], list[Any]]:
    """Ask a function of one query for each of several."""

    def each(queries: list[str], depth: int) -> list[Any]:
        answers = [function(query, depth) for query in queries]
        # What has no order, or none that was meant, stays as it is: it is refused.
        return [
            hits if isinstance(hits, str | Mapping | AbstractSet) else list(hits)
            for hits in answers
        ]

    each.__qualname__ = getattr(function, "__qualname__", type(function).__qualname__)
    return each


class SavedRun(ExternalRetriever):
    """Answers with the hits of a file: TREC lines (plain or gzip), or rows of JSON Lines or Parquet."""

    expands: ClassVar[bool] = True
    first = "path"
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
    rows: Callable[[Path], Iterator[tuple[int, Any]]], path: Path, add: Add
) -> Iterator[Line]:
    for number, row in rows(path):
        query, document = (
            document_id(_value(row, names)) for names in (QUERY, DOCUMENT)
        )
        score = _value(row, SCORE)
        if query is None or document is None or score is None:
            add(number, "has no query, document or score", ROW)
        elif not is_score(score):
            add(number, f"{score!r:.60} is not a score", "a score is a finite number")
        else:
            yield number, query, document, float(score)


def is_score(value: object) -> bool:
    """Whether a value is a finite number; a whole number may be larger than any float."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max
    )


def _value(row: Any, names: Iterable[str]) -> Any:
    return (
        next((row[name] for name in names if name in row), None)
        if isinstance(row, Mapping)
        else None
    )


def _json_rows(path: Path) -> Iterator[tuple[int, Any]]:
    for first, block in blocks_of(path, ROW):
        for number, line in enumerate(block.split(b"\n"), first):
            try:
                if line.strip():
                    yield number, json.loads(line.decode())
            except (ValueError, RecursionError) as error:  # of UTF-8, too
                raise InputError(
                    Problem(f"{path}:{number}", f"is not JSON: {error}", ROW)
                ) from None


def _parquet_rows(path: Path) -> Iterator[tuple[int, Any]]:
    with needing(str(path), "pyarrow", "formats"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        with pq.ParquetFile(path) as file:
            rows = (row for batch in file.iter_batches() for row in batch.to_pylist())
            yield from enumerate(rows, 1)
    except (pa.ArrowException, OSError) as error:
        what = f"cannot be read as Parquet: {str(error).splitlines()[0]}"
        raise InputError(Problem(str(path), what, "write it again")) from None
