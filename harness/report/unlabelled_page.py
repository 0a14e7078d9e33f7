"""The report of rankings without labels.

No retriever is shown to be better: the page says how far their first hits agree, on
which queries they differ most, and what labelling takes.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from harness.english import count_of, count_queries
from harness.evaluation.costs import RetrieverCost, retriever_costs
from harness.evaluation.judging_effort import (
    judging_effort,
    pool_command,
    sampled_effort,
)
from harness.evaluation.pair_diagnostics import (
    DEFAULT_CUTOFF,
    RankingsOverlap,
    ranking_overlaps,
)
from harness.pages import visible_text
from harness.records import Results
from harness.report.language import data_language, language_attribute
from harness.report.query_browser import build_query_browser
from harness.report.query_evidence import (
    DocumentNumbers,
    Evidence,
    EvidenceGroup,
    LabelledDocument,
    QueryEvidence,
)
from harness.report.sections.fails import MAX_PAGE_BYTES
from harness.report.sections.provenance import (
    repetition_sentence,
    reproducible_path,
)
from harness.report.templates import render_page
from harness.report.view import document_heading
from harness.wording.dates import date_text
from harness.wording.labelling import effort_sentence, next_steps
from harness.wording.numerals import capital_numeral, numeral

DIFFERENT_QUERIES = 20
"""Queries of the group "Differ most", at most."""
QUERY_BYTES = 150
"""About as much as a query with two rankings takes, packed."""
HEAT_STEPS = 10
"""Shades of the table of common documents."""
SCRIPTS = ("start", "sort", "card", "picture", "queries")


class CommonCell(NamedTuple):
    """The documents that two retrievers have in common."""

    retriever: str
    documents: float
    """Mean over the queries, among the first ten."""
    shade: int


class OverlapRow(NamedTuple):
    """One retriever against the others."""

    retriever: str
    cells: tuple[CommonCell | None, ...]
    """Cells of the row; None for the retriever itself."""
    alone: float
    """Documents among its first ten that no other has there; mean over the queries."""
    cost: RetrieverCost


@dataclass(frozen=True, slots=True)
class UnlabelledView:
    """Rankings without labels, in reading order."""

    results: Results
    first_hits: Mapping[str, Mapping[str, tuple[str, ...]]]
    """Query id -> retriever -> its first ten documents."""
    shows_texts: bool

    @property
    def retrievers(self) -> tuple[str, ...]:
        """The retrievers in the order of the experiment."""
        return self.results.retrievers

    def finders(self, query_id: str) -> Counter[str]:
        """Document -> the number of retrievers that have it among their first ten."""
        return Counter(
            doc for hits in self.first_hits[query_id].values() for doc in hits
        )

    def pool_size(self, query_id: str) -> int:
        """The number of different documents to label: those among a first ten."""
        return len(self.finders(query_id))


def unlabelled_page(results: Results, *, shows_texts: bool = True) -> str:
    """Return the report as one HTML file.

    Args:
        results: of a run without labels.
        shows_texts: whether texts of queries and documents are shown, or their ids.
    """
    view = read_unlabelled_view(results, shows_texts=shows_texts)
    evidence = unlabelled_evidence(view)
    overlaps = list(ranking_overlaps(results))
    variables = {
        "manifest": results.manifest,
        "facts": _facts(results),
        "effort": effort_sentence(sampled_effort(results)),
        "next_steps": next_steps(judging_effort(results)),
        "command": pool_command(results),
        "rows": list(_overlap_rows(view, overlaps)),
        "queries": len(results.queries),
        "is_timed": any(
            cost.p95 is not None for cost in retriever_costs(results).values()
        ),
        "overlaps": overlaps,
        "lang": language_attribute(data_language(results)),
        "folder": reproducible_path(results),
        "repetition": repetition_sentence(results.manifest),
        "browser": build_query_browser(evidence, _difference_sentence(view, evidence)),
    }
    return render_page("unlabelled.html", variables, SCRIPTS)


def read_unlabelled_view(results: Results, *, shows_texts: bool) -> UnlabelledView:
    """Read the first hits of every query."""
    first_hits: dict[str, dict[str, tuple[str, ...]]] = {
        query_id: dict.fromkeys(results.retrievers, ()) for query_id in results.queries
    }
    for retriever in results.retrievers:
        for query_id, ranking in results.iter_rankings(retriever):
            if query_id in first_hits:
                hits = tuple(ranking.doc_ids[:DEFAULT_CUTOFF])
                first_hits[query_id][retriever] = hits
    return UnlabelledView(results, first_hits, shows_texts)


def _facts(results: Results) -> tuple[str, ...]:
    return (
        f"{count_queries(len(results.queries))} without labels",
        count_of(results.manifest.dataset.documents, "document"),
        date_text(results.manifest.started),
    )


def _overlap_rows(
    view: UnlabelledView, overlaps: Sequence[RankingsOverlap]
) -> Iterator[OverlapRow]:
    """Yield for each retriever how many documents it has in common with each other."""
    common: dict[tuple[str, str], float] = {}
    for row in overlaps:
        common[row.a, row.b] = row.common
        common[row.b, row.a] = row.common
    costs = retriever_costs(view.results)
    alone = _found_alone(view)
    for name in view.retrievers:
        cells: list[CommonCell | None] = []
        for other in view.retrievers:
            if other == name:
                cells.append(None)
                continue
            documents = common[name, other]
            shade = round((HEAT_STEPS - 1) * documents / DEFAULT_CUTOFF)
            cells.append(CommonCell(other, documents, shade))
        yield OverlapRow(name, tuple(cells), alone[name], costs[name])


def _found_alone(view: UnlabelledView) -> dict[str, float]:
    """Retriever -> documents that it alone finds, mean over the queries."""
    totals = dict.fromkeys(view.retrievers, 0)
    for query_id, hits_by_retriever in view.first_hits.items():
        finders = view.finders(query_id)
        for name, hits in hits_by_retriever.items():
            totals[name] += sum(finders[doc] == 1 for doc in hits)
    queries = len(view.first_hits) or 1
    return {name: total / queries for name, total in totals.items()}


def _difference_sentence(view: UnlabelledView, evidence: Evidence) -> str:
    query = evidence.first_query
    if query is None:
        return ""
    hit_count = sum(map(len, query.hits))
    if len(view.retrievers) == 1:
        return f"{view.retrievers[0]} returns {count_of(hit_count, 'document')} here."
    number = numeral(len(view.retrievers))
    documents = query.amount
    return (
        f"On this query the {number} return {documents} different documents "
        f"in {hit_count} places."
    )


def unlabelled_evidence(view: UnlabelledView) -> Evidence:
    """The rankings of the queries with most documents to label, as far as they fit."""
    numbers = DocumentNumbers()
    by_pool = sorted(
        view.first_hits, key=lambda query_id: (-view.pool_size(query_id), query_id)
    )
    bytes_per_query = QUERY_BYTES * max(1, len(view.retrievers) // 2)
    on_page = by_pool[: max(1, MAX_PAGE_BYTES // bytes_per_query)]
    queries = tuple(_query_evidence(view, query_id, numbers) for query_id in on_page)
    count = len(view.retrievers)
    key = ""
    if count > 1:
        key = (
            f"Boxed: how many of the {numeral(count)} retrievers have the document in "
            f"their first {DEFAULT_CUTOFF}. Lines join the same document."
        )
    return Evidence(
        title=visible_text(view.results.manifest.name),
        section="where the retrievers differ",
        measure="",
        query_count=len(view.first_hits),
        cutoff=DEFAULT_CUTOFF,
        is_labelled=False,
        retrievers=view.retrievers,
        means=(),
        documents=tuple(_title(view, doc) for doc in numbers.document_ids),
        queries=queries,
        groups=tuple(_groups(view, by_pool, len(on_page))),
        key=key,
    )


def _title(view: UnlabelledView, doc: str) -> str:
    document = view.results.documents.get(doc)
    if document is None or not view.shows_texts:
        return visible_text(doc)
    return document_heading(document)


def _query_evidence(
    view: UnlabelledView, query_id: str, numbers: DocumentNumbers
) -> QueryEvidence:
    """Return what the page shows of one query, and which documents several found."""
    hits_by_retriever = view.first_hits[query_id]
    hits = tuple(numbers.numbers(hits_by_retriever[name]) for name in view.retrievers)
    shared: list[LabelledDocument] = []
    for doc, finders in view.finders(query_id).most_common():
        if finders > 1:
            ranks = tuple(
                documents.index(doc) + 1 if doc in documents else 0
                for documents in hits_by_retriever.values()
            )
            shared.append(LabelledDocument(numbers.number(doc), finders, ranks))
    text = visible_text(query_id)
    if view.shows_texts:
        text = visible_text(view.results.queries[query_id].query.text)
    return QueryEvidence(
        id=visible_text(query_id),
        text=text,
        scores=(),
        hits=hits,
        labelled=tuple(shared),
        pair=_least_common_pair(hits),
        properties="",
        amount=str(view.pool_size(query_id)),
    )


def _least_common_pair(hits: Sequence[Sequence[int]]) -> tuple[int, int]:
    """The pair with the fewest documents in common, at least one if any pair has."""
    pairs = list(combinations(range(len(hits)), 2))
    if not pairs:
        return 0, 0

    def shared(pair: tuple[int, int]) -> tuple[bool, int]:
        count = len(set(hits[pair[0]]) & set(hits[pair[1]]))
        return count == 0, count

    return min(pairs, key=shared)


def _groups(
    view: UnlabelledView, query_ids: Sequence[str], on_page: int
) -> Iterator[EvidenceGroup]:
    """The groups of the list that have queries; the first `on_page` ids have cards."""
    number_by_id = {query_id: number for number, query_id in enumerate(query_ids)}
    groups: dict[str, Sequence[str]] = {}
    if len(view.retrievers) > 1:
        groups |= _groups_by_agreement(view, query_ids)
    groups["All queries"] = query_ids
    for title, group_ids in groups.items():
        numbers = [number_by_id[query_id] for query_id in group_ids]
        page_numbers = tuple(number for number in numbers if number < on_page)
        if numbers:
            yield EvidenceGroup(title, len(numbers), page_numbers)


def _groups_by_agreement(
    view: UnlabelledView, all_ids: Sequence[str]
) -> dict[str, Sequence[str]]:
    """Title -> the queries on which the retrievers agree, or differ, in that way."""
    count = len(view.retrievers)
    without_common: list[str] = []
    different_first: list[str] = []
    same_first: list[str] = []
    for query_id in all_ids:
        first = [hits[0] for hits in view.first_hits[query_id].values() if hits]
        different = len(set(first))
        if max(view.finders(query_id).values(), default=0) < count:
            without_common.append(query_id)
        if different == count:
            different_first.append(query_id)
        if different == 1 and len(first) == count:
            same_first.append(query_id)
    return {
        "Differ most": all_ids[:DIFFERENT_QUERIES],
        f"No document in all {numeral(count)}": without_common,
        f"{capital_numeral(count)} different first documents": different_first,
        "The same first document in all": same_first,
    }
